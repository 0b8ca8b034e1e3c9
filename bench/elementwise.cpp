// pleat-bench elementwise: functions of single elements, whose cost is mostly that of memory.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "pleat/bench/candidate.h"
#include "pleat/bench/parse.h"
#include "pleat/bench/pictures.h"
#include "pleat/bench/subcommand.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/shape/view.h"

namespace pleat::bench {
namespace {

using Tensors = std::vector<Tensor>;

/// How the second operand lies to the first.
enum class Second : unsigned char { none, same, channel };

struct Function {
  const char* name;
  Second second;
  bool positive;  ///< defined for positive numbers only
  Tensor (*compute)(const Tensors&);
};

const Function functions[] = {
    {"copy", Second::none, false, [](const Tensors& x) { return ops::copy(x[0]); }},
    {"relu", Second::none, false, [](const Tensors& x) { return ops::relu(x[0]); }},
    {"relu_backward", Second::same, false, [](const Tensors& x) { return ops::relu_backward(x[0], x[1]); }},
    {"sigmoid", Second::none, false, [](const Tensors& x) { return ops::sigmoid(x[0]); }},
    {"tanh", Second::none, false, [](const Tensors& x) { return ops::tanh(x[0]); }},
    {"exp", Second::none, false, [](const Tensors& x) { return ops::exp(x[0]); }},
    {"log", Second::none, true, [](const Tensors& x) { return ops::log(x[0]); }},
    {"sqrt", Second::none, true, [](const Tensors& x) { return ops::sqrt(x[0]); }},
    {"erf", Second::none, false, [](const Tensors& x) { return ops::erf(x[0]); }},
    {"add", Second::same, false, [](const Tensors& x) { return ops::add(x[0], x[1]); }},
    {"add_bias", Second::channel, false, [](const Tensors& x) { return ops::add(x[0], x[1]); }},
    {"multiply", Second::same, false, [](const Tensors& x) { return ops::multiply(x[0], x[1]); }},
    {"divide", Second::same, true, [](const Tensors& x) { return ops::divide(x[0], x[1]); }},
    // The change of layout that lets time vanish in networks.
    {"other_format", Second::none, false, [](const Tensors& x) {
       return ops::to_format(x[0], x[0].memory_format() == MemoryFormat::channels_last
                                       ? MemoryFormat::contiguous
                                       : MemoryFormat::channels_last);
     }}};

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (const Function& function : functions) names.emplace_back(function.name);
  return names;
}

class Elementwise : public Subcommand {
 public:
  std::string name() const override { return "elementwise"; }
  std::string summary() const override {
    return "functions of single elements, copies and changes of layout";
  }

  void add_options(CLI::App& app) override {
    std::vector<std::string> choice = function_names();
    choice.emplace_back("all");
    app.add_option("--shape", shapes_, "sizes of the tensors; several may be given")->take_all();
    add_list(app, "--op", ops_, "which functions, separated by commas; all", choice);
    add_dtype_option(app, operands_);
    add_format_option(app, operands_);
    add_check_option(app, operands_);
  }

  void run(const CommonOptions& common, Report& report) override {
    std::vector<std::string> texts = shapes_;
    if (texts.empty()) texts = {common.quick ? "8,16,16,16" : "128,64,32,32"};
    std::vector<Shape> shapes;
    for (const std::string& text : texts) shapes.push_back(parse_sizes("elementwise: --shape", text));
    const bool all = std::find(ops_.begin(), ops_.end(), "all") != ops_.end();
    std::vector<Column> columns{label_column("function", "function"), label_column("type", "dtype"),
                                label_column("format", "format")};
    for (Column& column : measured_columns()) columns.push_back(std::move(column));
    report.set_layout({.heading = {"problem"}, .columns = std::move(columns), .race = {}});
    for (const Shape& shape : shapes) {
      std::vector<Candidate> candidates;
      for (const Function& function : functions)
        if (all || std::find(ops_.begin(), ops_.end(), function.name) != ops_.end())
          for (const std::string& dtype : operands_.dtypes)
            for (const std::string& format : operands_.formats)
              candidates.push_back(candidate(function, shape, dtype, format, common));
      std::vector<Record> records = measure(name(), candidates, common, operands_.check);
      for (Record& record : records) record.set_value("elements", static_cast<double>(count(shape)));
      report.add(records);
    }
  }

  bool has_plot() const override { return true; }
  /// Bars for one or two shapes, lines over the number of elements for more.
  std::string plot(const std::vector<Record>& records) const override {
    if (shapes_.size() > 2)
      return time_lines({.title = "Elementwise functions",
                         .x_value = "elements",
                         .x_axis = "elements",
                         .series = {"function", "dtype", "format"}},
                        records);
    std::vector<Record> by_function = records;
    for (Record& record : by_function)
      record.set_label("problem",
                       record.label("function") + (shapes_.size() > 1 ? " " + record.label("problem") : ""));
    return time_bars(with_common_labels("Elementwise functions", records, {"problem"}), by_function,
                     {"dtype", "format"});
  }

 private:
  Candidate candidate(const Function& function, const Shape& shape, const std::string& dtype_name,
                      const std::string& format, const CommonOptions& common) const {
    const DType dtype = parse_dtype(dtype_name);
    const Device device = common.chosen_device();
    Candidate result;
    result.labels = {{"problem", to_string(shape)},
                     {"function", function.name},
                     {"dtype", dtype_name},
                     {"format", format},
                     {"device", pleat::name(device)}};
    const auto make = [&](const Shape& sizes, uint64_t seed) {
      const Tensor x = operand(sizes, dtype, device, format, seed);
      return function.positive ? ops::add(ops::abs(x), ops::number_like(0.1, x)) : x;
    };
    result.operands.push_back(make(shape, 1));
    double accesses = 2;
    if (function.second == Second::same) {
      result.operands.push_back(make(shape, 2));
      accesses = 3;
    }
    if (function.second == Second::channel) {
      // Of images [N, C, ...] a number for each channel, else one for each element of the last dimension.
      Shape channel(shape.size(), 1);
      const std::size_t which = shape.size() >= 3 ? 1 : shape.size() - 1;
      channel[which] = shape[which];
      result.operands.push_back(operand(channel, dtype, device, "contiguous", 2));
    }
    result.prepare = [compute = function.compute](const Tensors& operands) -> Compute {
      return [=] { return Tensors{compute(operands)}; };
    };
    result.bytes = accesses * static_cast<double>(count(shape)) * static_cast<double>(size_of(dtype));
    return result;
  }

  std::vector<std::string> shapes_;
  std::vector<std::string> ops_ = {"all"};
  OperandOptions operands_;
};

}  // namespace

SubcommandPointer make_elementwise() { return std::make_unique<Elementwise>(); }

}  // namespace pleat::bench
