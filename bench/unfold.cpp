// pleat-bench unfold: im2col and its adjoint, col2im.
#include <CLI/CLI.hpp>

#include "pleat/bench/case.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/unfold/unfold_kernels.h"

namespace pleat::bench {
namespace {

class Unfold : public OperationSubcommand {
 public:
  Unfold()
      : OperationSubcommand("unfold", "unfold (im2col) and fold (col2im)",
                            {.description = "sizes of the image: N,C,spatial... (1 to 3 of them)",
                             .usual = {"32,64,32,32", "128,16,32,32", "2,10,50,50", "512,10,50,50"},
                             .quick = {"4,8,16,16"},
                             .must_have = "3 to 5 sizes, N,C,spatial...",
                             .fits = [](std::size_t n) { return n >= 3 && n <= 5; }}) {
    operands_.formats = {"contiguous"};
    passes_ = {"unfold", "fold"};
    chart_ = {.title = "unfold and fold", .series = {"dtype", "format"}};
  }

  void add_options(CLI::App& app) override {
    OperationSubcommand::add_options(app);
    add_number(app, "--kernel", kernel_, 1, "size of the windows, the same in each dimension");
    add_number(app, "--stride", stride_, 1, "");
    add_number(app, "--padding", padding_, 0, "");
    add_number(app, "--dilation", dilation_, 1, "");
  }

 protected:
  void check_options(const std::vector<Shape>& images) const override {
    for (const Shape& image : images)
      for (std::size_t d = 2; d < image.size(); ++d)
        check<UsageError>(image[d] + 2 * padding_ >= window(),
                          "unfold: --kernel: a window of {} must fit into {} with padding {}", window(),
                          image[d], padding_);
  }

  std::vector<Case> cases(const Shape& image, const std::string& pass,
                          const std::vector<OperandKind>& kinds) const override {
    const bool fold = pass == "fold";
    Shape columns{image[0], image[1], 1};  // [N, C taps, windows]
    for (std::size_t d = 2; d < image.size(); ++d) {
      columns[1] = checked_multiply(columns[1], kernel_, "unfold");
      columns[2] = checked_multiply(columns[2], (image[d] + 2 * padding_ - window()) / stride_ + 1, "unfold");
    }
    std::string problem = fmt::format("{}, {} k{}", to_string(image), pass, kernel_);
    if (stride_ != 1) problem += fmt::format(" s{}", stride_);
    if (padding_ != 0) problem += fmt::format(" p{}", padding_);
    if (dilation_ != 1) problem += fmt::format(" d{}", dilation_);
    const UnfoldOptions options{
        .kernel_size = kernel_, .stride = stride_, .padding = padding_, .dilation = dilation_};
    const Shape spatial(image.begin() + 2, image.end());
    std::vector<Case> all;
    for (OperandKind kind : kinds) {
      if (fold) kind.format = {};  // columns have no format
      if (fold && !all.empty() && kind.dtype == all.back().record.label("dtype")) continue;
      Case& one = all.emplace_back(make_case(name(), problem, {{"pass", pass}}, kind));
      one.operands = {operand(fold ? columns : image, kind)};
      one.prepare = function_of([=](const Tensors& x) {
        return std::vector{fold ? ops::fold(x[0], spatial, options) : ops::unfold(x[0], options)};
      });
    }
    return all;
  }

 private:
  int64_t window() const { return dilation_ * (kernel_ - 1) + 1; }

  int64_t kernel_ = 3, stride_ = 1, padding_ = 1, dilation_ = 1;
};

}  // namespace

SubcommandPointer make_unfold() { return std::make_unique<Unfold>(); }

}  // namespace pleat::bench
