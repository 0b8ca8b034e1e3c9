// pleat-bench elementwise: functions of single elements, whose cost is mostly that of memory.
#include <algorithm>

#include <CLI/CLI.hpp>

#include "pleat/bench/case.h"
#include "pleat/bench/charts.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/elementwise/relu.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

using Tensors = std::vector<Tensor>;

enum class Second : unsigned char { none, same, channel };  ///< the second operand's shape beside the first's

struct Function {
  const char* name;
  Second second;
  bool positive;  ///< defined for positive numbers only
  Tensor (*compute)(const Tensors&);
};

const Function functions[] = {
    {"copy", Second::none, false, [](const Tensors& x) { return ops::copy(x[0]); }},
    {"relu", Second::none, false, [](const Tensors& x) { return relu(x[0]); }},
    {"relu_backward", Second::same, false, [](const Tensors& x) { return ops::relu_backward(x[0], x[1]); }},
    {"sigmoid", Second::none, false, [](const Tensors& x) { return sigmoid(x[0]); }},
    {"tanh", Second::none, false, [](const Tensors& x) { return tanh(x[0]); }},
    {"exp", Second::none, false, [](const Tensors& x) { return exp(x[0]); }},
    {"log", Second::none, true, [](const Tensors& x) { return log(x[0]); }},
    {"sqrt", Second::none, true, [](const Tensors& x) { return sqrt(x[0]); }},
    {"erf", Second::none, false, [](const Tensors& x) { return erf(x[0]); }},
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

class Elementwise : public OperationSubcommand {
 public:
  Elementwise()
      : OperationSubcommand("elementwise", "functions of single elements, copies and changes of layout") {
    operands_.formats = {"contiguous"};
  }

  void add_options(CLI::App& app) override {
    std::vector<std::string> choice;
    for (const Function& function : functions) choice.emplace_back(function.name);
    choice.emplace_back("all");
    app.add_option("--shape", shapes_, "sizes of the tensors; several may be given")->take_all();
    add_list(app, "--op", ops_, "which functions, separated by commas; all", choice);
    add_operand_options(app, operands_, With::format);
  }

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

 protected:
  Layout layout() const override { return {.columns = {"function"}}; }

  void list(const CommonOptions& common, const Block& block) const override {
    const bool all = std::find(ops_.begin(), ops_.end(), "all") != ops_.end();
    for (const Shape& shape : shapes(common, {"128,64,32,32"}, {"8,16,16,16"})) {
      std::vector<Case> cases;
      for (const Function& function : functions)
        if (all || std::find(ops_.begin(), ops_.end(), function.name) != ops_.end())
          for (const OperandKind& kind : operands_.kinds(common.chosen_device()))
            cases.push_back(case_of(function, shape, kind));
      block(cases, true);
    }
  }

 private:
  Case case_of(const Function& function, const Shape& shape, const OperandKind& kind) const {
    Case one = make_case(name(), to_string(shape), {{"function", function.name}}, kind);
    const auto make = [&](uint64_t seed) {
      const Tensor x = operand(shape, kind, seed);
      return function.positive ? ops::add(abs(x), ops::number_like(0.1, x)) : x;
    };
    one.operands.push_back(make(1));
    if (function.second == Second::same) one.operands.push_back(make(2));
    if (function.second == Second::channel) {
      // Of images [N, C, ...] a number for each channel, else one for each element of the last dimension.
      Shape channel(shape.size(), 1);
      const std::size_t which = shape.size() >= 3 ? 1 : shape.size() - 1;
      channel[which] = shape[which];
      one.operands.push_back(operand(channel, {kind.dtype, "", kind.device}, 2));
    }
    one.prepare = [compute = function.compute](const Tensors& operands) -> Compute {
      return [=] { return Tensors{compute(operands)}; };
    };
    const auto elements = static_cast<double>(count(shape));
    one.record.set_value("elements", elements);
    one.bytes =
        (function.second == Second::same ? 3 : 2) * elements * static_cast<double>(size_of(one.dtype));
    return one;
  }

  std::vector<std::string> ops_ = {"all"};
};

}  // namespace

SubcommandPointer make_elementwise() { return std::make_unique<Elementwise>(); }

}  // namespace pleat::bench
