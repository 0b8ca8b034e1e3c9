// pleat-bench unfold: im2col and its adjoint, col2im.
#include "pleat/ops/unfold/unfold.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/case.h"
#include "pleat/bench/charts.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {
namespace {

class Unfold : public OperationSubcommand {
 public:
  Unfold() : OperationSubcommand("unfold", "unfold (im2col) and fold (col2im)") {
    operands_.formats = {"contiguous"};
  }

  void add_options(CLI::App& app) override {
    app.add_option("--shape", shapes_,
                   "sizes of the image: N,C,spatial... (1 to 3 of them); several may be given")
        ->take_all();
    const auto number = [&](const char* name, int64_t& value, int64_t least, const char* description = "") {
      app.add_option(name, value, description)
          ->transform(whole_number(least, 1 << 24))
          ->capture_default_str();
    };
    number("--kernel", kernel_, 1, "size of the windows, the same in each dimension");
    number("--stride", stride_, 1);
    number("--padding", padding_, 0);
    number("--dilation", dilation_, 1);
    add_list(app, "--pass", passes_, "which of them, separated by commas", {"unfold", "fold"});
    add_operand_options(app, operands_, With::format);
  }

  std::string plot(const std::vector<Record>& records) const override {
    return time_bars("unfold and fold", records, {"dtype", "format"});
  }

 protected:
  void list(const CommonOptions& common, const Block& block) const override {
    const std::vector<Shape> images =
        shapes(common, {"32,64,32,32", "128,16,32,32", "2,10,50,50", "512,10,50,50"}, {"4,8,16,16"});
    for (const Shape& image : images) {
      check<UsageError>(image.size() >= 3 && image.size() <= 5,
                        "unfold: --shape: must have 3 to 5 sizes, N,C,spatial..., got \"{}\"",
                        fmt::join(image, ","));
      for (std::size_t d = 2; d < image.size(); ++d)
        check<UsageError>(image[d] + 2 * padding_ >= window(),
                          "unfold: --kernel: a window of {} must fit into {} with padding {}", window(),
                          image[d], padding_);
    }
    for (const Shape& image : images)
      for (const std::string& pass : passes_) {
        OperandOptions operands = operands_;
        if (pass == "fold") operands.formats = {""};  // columns have no format
        std::vector<Case> cases;
        for (const OperandKind& kind : operands.kinds(common.chosen_device()))
          cases.push_back(case_of(image, pass, kind));
        block(cases, true);
      }
  }

 private:
  int64_t window() const { return dilation_ * (kernel_ - 1) + 1; }

  Case case_of(const Shape& image, const std::string& pass, const OperandKind& kind) const {
    const auto part = [](const char* name, int64_t value, int64_t usual) {
      return value == usual ? "" : fmt::format("{}{}", name, value);
    };
    Shape columns{image[0], image[1], 1};  // [N, C taps, windows]
    for (std::size_t d = 2; d < image.size(); ++d) {
      const int64_t windows = (image[d] + 2 * padding_ - window()) / stride_ + 1;
      columns[1] = checked_multiply(columns[1], kernel_, "unfold");
      columns[2] = checked_multiply(columns[2], windows, "unfold");
    }
    const bool fold = pass == "fold";
    Case one =
        make_case(name(),
                  fmt::format("{}, {}{}{}{}{}", to_string(image), pass, part(" k", kernel_, 0),
                              part(" s", stride_, 1), part(" p", padding_, 0), part(" d", dilation_, 1)),
                  {{"pass", pass}}, kind);
    one.operands = {operand(fold ? columns : image, kind)};
    const UnfoldOptions options{
        .kernel_size = kernel_, .stride = stride_, .padding = padding_, .dilation = dilation_};
    const Shape spatial(image.begin() + 2, image.end());
    one.prepare = [options, spatial, fold](const std::vector<Tensor>& operands) -> Compute {
      return [=, x = operands[0]] {
        return std::vector<Tensor>{fold ? ops::fold(x, spatial, options) : ops::unfold(x, options)};
      };
    };
    double elements = 0;
    for (const Shape& shape : {image, columns}) {
      double all = 1;
      for (const int64_t size : shape) all *= static_cast<double>(size);
      elements += all;
    }
    one.bytes = elements * static_cast<double>(size_of(one.dtype));
    return one;
  }

  int64_t kernel_ = 3, stride_ = 1, padding_ = 1, dilation_ = 1;
  std::vector<std::string> passes_ = {"unfold", "fold"};
};

}  // namespace

SubcommandPointer make_unfold() { return std::make_unique<Unfold>(); }

}  // namespace pleat::bench
