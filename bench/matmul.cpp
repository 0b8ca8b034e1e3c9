// pleat-bench matmul: matrix products.
#include "pleat/ops/matmul/matmul.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/case.h"
#include "pleat/bench/charts.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/shape/view.h"

namespace pleat::bench {
namespace {

class Matmul : public OperationSubcommand {
 public:
  Matmul() : OperationSubcommand("matmul", "matrix products") {}

  void add_options(CLI::App& app) override {
    app.add_option("--size", shapes_,
                   "m,n,k: rows, columns and depth of a product; one number for all three; b,m,n,k: a batch. "
                   "Several may be given")
        ->take_all();
    app.add_option("--transpose", transpose_, "which operand lies transposed in memory: none, a, b or both")
        ->check(CLI::IsMember({"none", "a", "b", "both"}))
        ->capture_default_str();
    add_operand_options(app, operands_, With::precision);
  }

  std::string plot(const std::vector<Record>& records) const override {
    const std::string device = records.empty() ? "cpu" : records[0].label("device");
    return roofline("Matrix products", "measured ceilings", records, "dtype", ceilings(device));
  }

 protected:
  void list(const CommonOptions& common, const Block& block) const override {
    std::vector<Shape> sizes =
        shapes(common, {"256", "512", "1024", "2048", "131072,64,576", "64,576,131072"},
               {"128", "256,64,576"}, "--size");
    for (Shape& size : sizes) {
      check<UsageError>(size.size() == 1 || size.size() == 3 || size.size() == 4,
                        "matmul: --size: must have 1, 3 or 4 numbers, got \"{}\"", fmt::join(size, ","));
      if (size.size() == 1) size = {size[0], size[0], size[0]};
      if (size.size() == 3) size.insert(size.begin(), 1);
    }
    for (const Shape& size : sizes) {
      std::vector<Case> cases;
      for (const OperandKind& kind : operands_.kinds(common.chosen_device()))
        cases.push_back(case_of(size[0], size[1], size[2], size[3], kind));
      block(cases, true);
    }
  }

 private:
  Case case_of(int64_t batch, int64_t m, int64_t n, int64_t k, const OperandKind& kind) const {
    const auto matrix = [&](int64_t rows, int64_t columns, const char* which, uint64_t seed) {
      const bool transposed = transpose_ == which || transpose_ == "both";
      if (transposed) std::swap(rows, columns);
      const Tensor x = operand(batch == 1 ? Shape{rows, columns} : Shape{batch, rows, columns}, kind, seed);
      return transposed ? ops::transpose(x, -2, -1) : x;
    };
    Case one = make_case(name(),
                         fmt::format("{}m{} n{} k{}{}", batch == 1 ? "" : fmt::format("b{} ", batch), m, n, k,
                                     transpose_ == "none" ? "" : ", transposed " + transpose_),
                         {{"precision", operands_.precision}}, kind);
    one.operands = {matrix(m, k, "a", 1), matrix(k, n, "b", 2)};
    one.prepare = [](const std::vector<Tensor>& operands) -> Compute {
      return [a = operands[0], b = operands[1]] { return std::vector<Tensor>{ops::matmul(a, b)}; };
    };
    const auto b = static_cast<double>(batch), rows = static_cast<double>(m),
               columns = static_cast<double>(n), depth = static_cast<double>(k);
    one.flops = 2 * b * rows * columns * depth;
    one.bytes =
        b * (rows * depth + depth * columns + rows * columns) * static_cast<double>(size_of(one.dtype));
    one.precision = parse_precision(operands_.precision);
    return one;
  }

  std::string transpose_ = "none";
};

}  // namespace

SubcommandPointer make_matmul() { return std::make_unique<Matmul>(); }

}  // namespace pleat::bench
