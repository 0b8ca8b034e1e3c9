// pleat-bench matmul: matrix products.
#include "pleat/ops/matmul/matmul.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/candidate.h"
#include "pleat/bench/parse.h"
#include "pleat/bench/pictures.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/shape/view.h"

namespace pleat::bench {
namespace {

class Matmul : public Subcommand {
 public:
  std::string name() const override { return "matmul"; }
  std::string summary() const override { return "matrix products"; }

  void add_options(CLI::App& app) override {
    app.add_option("--size", sizes_,
                   "m,n,k: rows, columns and depth of a product; one number for all three; b,m,n,k: a batch. "
                   "Several may be given")
        ->take_all();
    app.add_option("--transpose", transpose_, "which operand lies transposed in memory: none, a, b or both")
        ->check(CLI::IsMember({"none", "a", "b", "both"}))
        ->capture_default_str();
    add_dtype_option(app, operands_);
    add_precision_option(app, operands_);
    add_check_option(app, operands_);
  }

  void run(const CommonOptions& common, Report& report) override {
    std::vector<std::string> texts = sizes_;
    if (texts.empty())
      texts = common.quick
                  ? std::vector<std::string>{"128", "256,64,576"}
                  : std::vector<std::string>{"256", "512", "1024", "2048", "131072,64,576", "64,576,131072"};
    std::vector<Shape> sizes;
    for (const std::string& text : texts) sizes.push_back(parse(text));
    std::vector<Column> columns{label_column("type", "dtype")};
    for (Column& column : measured_columns()) columns.push_back(std::move(column));
    report.set_layout({.heading = {"problem"}, .columns = std::move(columns), .race = {}});
    for (const Shape& size : sizes) {
      std::vector<Candidate> candidates;
      for (const std::string& dtype : operands_.dtypes) candidates.push_back(candidate(size, dtype, common));
      report.add(measure(name(), candidates, common, operands_.check));
    }
  }

  bool has_plot() const override { return true; }
  std::string plot(const std::vector<Record>& records) const override {
    return roofline("Matrix products", records, "dtype");
  }

 private:
  /// Always [batch, m, n, k].
  static Shape parse(const std::string& text) {
    const Shape sizes = parse_sizes("matmul: --size", text);
    if (sizes.size() == 1) return {1, sizes[0], sizes[0], sizes[0]};
    if (sizes.size() == 3) return {1, sizes[0], sizes[1], sizes[2]};
    if (sizes.size() == 4) return sizes;
    fail<UsageError>("matmul: --size: must have 1, 3 or 4 numbers, got \"{}\"", text);
  }

  Candidate candidate(const Shape& size, const std::string& dtype_name, const CommonOptions& common) const {
    const int64_t batch = size[0], m = size[1], n = size[2], k = size[3];
    const DType dtype = parse_dtype(dtype_name);
    const Device device = common.chosen_device();
    const auto matrix = [&](int64_t rows, int64_t columns, bool transposed, uint64_t seed) {
      const Shape stored = transposed ? Shape{columns, rows} : Shape{rows, columns};
      const Tensor x = operand(batch == 1 ? stored : Shape{batch, stored[0], stored[1]}, dtype, device,
                               "contiguous", seed);
      return transposed ? ops::transpose(x, -2, -1) : x;
    };
    Candidate result;
    result.operands = {matrix(m, k, transpose_ == "a" || transpose_ == "both", 1),
                       matrix(k, n, transpose_ == "b" || transpose_ == "both", 2)};
    result.labels = {
        {"problem", fmt::format("{}m{} n{} k{}{}", batch == 1 ? "" : fmt::format("b{} ", batch), m, n, k,
                                transpose_ == "none" ? "" : ", transposed " + transpose_)},
        {"dtype", dtype_name},
        {"precision", operands_.precision}};
    result.prepare = [](const std::vector<Tensor>& operands) -> Compute {
      return [a = operands[0], b = operands[1]] { return std::vector<Tensor>{ops::matmul(a, b)}; };
    };
    const auto b = static_cast<double>(batch), rows = static_cast<double>(m),
               columns = static_cast<double>(n), depth = static_cast<double>(k);
    result.flops = 2 * b * rows * columns * depth;
    result.bytes =
        b * (rows * depth + depth * columns + rows * columns) * static_cast<double>(size_of(dtype));
    result.precision = operands_.chosen_precision();
    return result;
  }

  std::vector<std::string> sizes_;
  std::string transpose_ = "none";
  OperandOptions operands_;
};

}  // namespace

SubcommandPointer make_matmul() { return std::make_unique<Matmul>(); }

}  // namespace pleat::bench
