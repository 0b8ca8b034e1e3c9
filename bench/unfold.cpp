// pleat-bench unfold: im2col and its adjoint, col2im.
#include "pleat/ops/unfold/unfold.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/candidate.h"
#include "pleat/bench/parse.h"
#include "pleat/bench/pictures.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"

namespace pleat::bench {
namespace {

const std::vector<std::string> pass_names = {"unfold", "fold"};

class Unfold : public Subcommand {
 public:
  std::string name() const override { return "unfold"; }
  std::string summary() const override { return "unfold (im2col) and fold (col2im)"; }

  void add_options(CLI::App& app) override {
    app.add_option("--shape", shapes_,
                   "sizes of the image: N,C,spatial... (1 to 3 of them); several may be given")
        ->take_all();
    app.add_option("--kernel", kernel_, "size of the windows, the same in each dimension")
        ->transform(whole_number(1, 1 << 24))
        ->capture_default_str();
    app.add_option("--stride", stride_)->transform(whole_number(1, 1 << 24))->capture_default_str();
    app.add_option("--padding", padding_)->transform(whole_number(0, 1 << 24))->capture_default_str();
    app.add_option("--dilation", dilation_)->transform(whole_number(1, 1 << 24))->capture_default_str();
    add_list(app, "--pass", passes_, "which of them, separated by commas", pass_names);
    add_dtype_option(app, operands_);
    add_format_option(app, operands_);
    add_check_option(app, operands_);
  }

  void run(const CommonOptions& common, Report& report) override {
    std::vector<std::string> texts = shapes_;
    if (texts.empty())
      texts = common.quick
                  ? std::vector<std::string>{"4,8,16,16"}
                  : std::vector<std::string>{"32,64,32,32", "128,16,32,32", "2,10,50,50", "512,10,50,50"};
    std::vector<Shape> shapes;
    for (const std::string& text : texts) {
      shapes.push_back(parse_sizes("unfold: --shape", text));
      check<UsageError>(shapes.back().size() >= 3 && shapes.back().size() <= 5,
                        "unfold: --shape: must have 3 to 5 sizes, N,C,spatial..., got \"{}\"", text);
      for (std::size_t d = 2; d < shapes.back().size(); ++d)
        check<UsageError>(shapes.back()[d] + 2 * padding_ >= dilation_ * (kernel_ - 1) + 1,
                          "unfold: --kernel: a window of {} must fit into {} with padding {}",
                          dilation_ * (kernel_ - 1) + 1, shapes.back()[d], padding_);
    }
    std::vector<Column> columns{label_column("type", "dtype"), label_column("format", "format")};
    for (Column& column : measured_columns()) columns.push_back(std::move(column));
    report.set_layout({.heading = {"problem"}, .columns = std::move(columns), .race = {}});
    for (const Shape& shape : shapes)
      for (const std::string& pass : passes_) {
        std::vector<Candidate> candidates;
        for (const std::string& dtype : operands_.dtypes)
          for (const std::string& format : pass == "fold" ? std::vector<std::string>{""} : operands_.formats)
            candidates.push_back(candidate(shape, pass, dtype, format, common));
        report.add(measure(name(), candidates, common, operands_.check));
      }
  }

  bool has_plot() const override { return true; }
  std::string plot(const std::vector<Record>& records) const override {
    return time_bars("unfold and fold", records, {"dtype", "format"});
  }

 private:
  Candidate candidate(const Shape& shape, const std::string& pass, const std::string& dtype_name,
                      const std::string& format, const CommonOptions& common) const {
    const DType dtype = parse_dtype(dtype_name);
    const Device device = common.chosen_device();
    const UnfoldOptions options{
        .kernel_size = kernel_, .stride = stride_, .padding = padding_, .dilation = dilation_};
    double image = static_cast<double>(shape[0]) * static_cast<double>(shape[1]), windows = 1, taps = 1;
    Shape columns{shape[0], shape[1], 1};
    double pixels = 1;
    for (std::size_t d = 2; d < shape.size(); ++d) {
      const int64_t out = (shape[d] + 2 * padding_ - dilation_ * (kernel_ - 1) - 1) / stride_ + 1;
      columns[1] = checked_multiply(columns[1], kernel_, "unfold");
      columns[2] = checked_multiply(columns[2], out, "unfold");
      windows *= static_cast<double>(out);
      taps *= static_cast<double>(kernel_);
      pixels *= static_cast<double>(shape[d]);
    }
    const bool fold = pass == "fold";
    Candidate result;
    result.operands = {fold ? operand(columns, dtype, device) : operand(shape, dtype, device, format)};
    result.labels = {
        {"problem", fmt::format("{}, {}{}{}{}{}", to_string(shape), pass, part(" k", kernel_, 0),
                                part(" s", stride_, 1), part(" p", padding_, 0), part(" d", dilation_, 1))},
        {"pass", pass},
        {"dtype", dtype_name},
        {"format", format},  // none of fold: columns have no format
        {"device", pleat::name(device)}};
    const Shape spatial(shape.begin() + 2, shape.end());
    result.prepare = [options, spatial, fold](const std::vector<Tensor>& operands) -> Compute {
      return [=, x = operands[0]] {
        return std::vector<Tensor>{fold ? ops::fold(x, spatial, options) : ops::unfold(x, options)};
      };
    };
    result.bytes = image * (pixels + taps * windows) * static_cast<double>(size_of(dtype));
    return result;
  }

  static std::string part(const char* name, int64_t value, int64_t usual) {
    return value == usual ? "" : fmt::format("{}{}", name, value);
  }

  std::vector<std::string> shapes_;
  int64_t kernel_ = 3, stride_ = 1, padding_ = 1, dilation_ = 1;
  std::vector<std::string> passes_ = pass_names;
  OperandOptions operands_;
};

}  // namespace

SubcommandPointer make_unfold() { return std::make_unique<Unfold>(); }

}  // namespace pleat::bench
