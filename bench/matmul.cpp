// pleat-bench matmul: matrix products.
#include <CLI/CLI.hpp>

#include "pleat/bench/case.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/matmul/matmul_kernels.h"
#include "pleat/ops/shape/view.h"

namespace pleat::bench {
namespace {

class Matmul : public OperationSubcommand {
 public:
  Matmul()
      : OperationSubcommand(
            "matmul", "matrix products",
            {.name = "--size",
             .description =
                 "m,n,k: rows, columns and depth of a product; one number for all three; b,m,n,k: a batch",
             .usual = {"256", "512", "1024", "2048", "131072,64,576", "64,576,131072"},
             .quick = {"128", "256,64,576"},
             .must_have = "1, 3 or 4 numbers",
             .fits = [](std::size_t n) { return n == 1 || n == 3 || n == 4; }}) {
    operands_.precision = "highest";
  }

  void add_options(CLI::App& app) override {
    OperationSubcommand::add_options(app);
    add_choice(app, "--transpose", transpose_, {"none", "a", "b", "both"},
               "which operand lies transposed in memory: none, a, b or both");
  }

  std::string plot(const std::vector<Record>& records) const override {
    const std::string device = records.empty() ? "cpu" : records[0].label("device");
    return roofline("Matrix products", "measured ceilings", records, "dtype", ceilings(device));
  }

 protected:
  std::vector<Case> cases(const Shape& size, const std::string&,
                          const std::vector<OperandKind>& kinds) const override {
    const int64_t batch = size.size() == 4 ? size[0] : 1, k = size.back();
    const int64_t n = size.size() == 1 ? k : size[size.size() - 2],
                  m = size.size() == 1 ? k : size[size.size() - 3];
    const std::string batch_text = batch == 1 ? "" : fmt::format("b{} ", batch);
    const std::string problem = fmt::format("{}m{} n{} k{}{}", batch_text, m, n, k,
                                            transpose_ == "none" ? "" : ", transposed " + transpose_);
    std::vector<Case> all;
    for (const OperandKind& kind : kinds) {
      Case& one = all.emplace_back(make_case(name(), problem, {{"precision", operands_.precision}}, kind));
      const auto matrix = [&](int64_t rows, int64_t columns, const char* which, uint64_t seed) {
        const bool transposed = transpose_ == which || transpose_ == "both";
        if (transposed) std::swap(rows, columns);
        const Tensor x = operand(batch == 1 ? Shape{rows, columns} : Shape{batch, rows, columns}, kind, seed);
        return transposed ? ops::transpose(x, -2, -1) : x;
      };
      one.operands = {matrix(m, k, "a", 1), matrix(k, n, "b", 2)};
      one.prepare = function_of([](const Tensors& t) { return std::vector{ops::matmul(t[0], t[1])}; });
      one.flops = 2 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
                  static_cast<double>(k);
      one.precision = precisions.at(operands_.precision);
    }
    return all;
  }

 private:
  std::string transpose_ = "none";
};

}  // namespace

SubcommandPointer make_matmul() { return std::make_unique<Matmul>(); }

}  // namespace pleat::bench
