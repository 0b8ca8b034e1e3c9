// pleat-bench elementwise: pointwise functions, whose cost is mostly that of memory. They are those of the
// table of op cases (tests/op_cases/): a function that has a row there is here.
#include <algorithm>

#include <CLI/CLI.hpp>

#include "pleat/bench/case.h"
#include "pleat/examples/common/options.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/relu.h"
#include "pleat/ops/shape/view.h"
#include "pleat/tests/op_cases/op_case.h"

namespace pleat::bench {
namespace {

using test::OpCase;

const std::string add_bias = "add_bias";

/// What is timed beside the functions of the table.
std::vector<OpCase> other_operations() {
  const Tensor x = test::normal({999}), y = test::normal({999}, 2);
  return {{.name = "copy", .inputs = {x}, .call = [](const Tensors& t) { return ops::copy(t[0]); }},
          {.name = "relu_backward",
           .inputs = {x, y},
           .call = [](const Tensors& t) { return ops::relu_backward(t[0], t[1]); }},
          {.name = add_bias, .inputs = {x, y}, .call = [](const Tensors& t) { return ops::add(t[0], t[1]); }},
          // The change of layout that lets time vanish in networks.
          {.name = "other_format", .inputs = {x}, .call = [](const Tensors& t) {
             return ops::to_format(t[0], t[0].memory_format() == MemoryFormat::channels_last
                                             ? MemoryFormat::contiguous
                                             : MemoryFormat::channels_last);
           }}};
}

/// These, and of each pointwise function a row: that without a variant, else the first.
const std::vector<OpCase>& operations() {
  static const std::vector<OpCase> all = [] {
    std::vector<OpCase> rows = other_operations();
    for (const test::OpFamily& family : test::op_families())
      for (const OpCase& row : family.cases()) {
        const auto known =
            std::find_if(rows.begin(), rows.end(), [&](const OpCase& c) { return c.name == row.name; });
        if (row.elementwise && known == rows.end())
          rows.push_back(row);
        else if (row.elementwise && row.variant.empty())
          *known = row;
      }
    return rows;
  }();
  return all;
}

/// The values of x again and again: they stay in the domain of the function.
Tensor repeated(const Tensor& x, const Shape& shape) {
  const int64_t wanted = count(shape), times = (wanted + x.numel() - 1) / x.numel();
  const Tensor many = ops::reshape(ops::expand(ops::flatten(x), {times, x.numel()}), {-1});
  return ops::reshape(ops::slice(many, 0, 0, wanted), shape);
}

/// Of images [N, C, ...] a number for each channel, else one for each element of the last dimension.
Shape bias_shape(const Shape& shape) {
  Shape bias(shape.size(), 1);
  const std::size_t channel = shape.size() >= 3 ? 1 : shape.size() - 1;
  bias[channel] = shape[channel];
  return bias;
}

class Elementwise : public OperationSubcommand {
 public:
  Elementwise()
      : OperationSubcommand(
            "elementwise", "functions of single elements, copies and changes of layout",
            {.description = "sizes of the tensors", .usual = {"128,64,32,32"}, .quick = {"8,16,16,16"}}) {
    operands_.formats = {"contiguous"};
    layout_.columns = {"function"};
    chart_ = {.title = "Elementwise functions",
              .series = {"dtype", "format"},
              .groups = {"problem", "function"},
              .x_value = "elements"};
  }

  void add_options(CLI::App& app) override {
    OperationSubcommand::add_options(app);
    add_list(app, "--op", ops_, "which functions, separated by commas: any pointwise one; all");
  }

  /// Bars for one or two shapes, lines over the number of elements for more.
  std::string plot(const std::vector<Record>& records) const override {
    if (shapes_.size() < 3) return time_bars(chart_, records);
    TimeChart lines = chart_;
    lines.series.insert(lines.series.begin(), "function");
    return time_lines(lines, records);
  }

 protected:
  void check_options(const std::vector<Shape>&) const override {
    std::vector<std::string> names{"all"};
    for (const OpCase& operation : operations()) names.push_back(operation.name);
    for (const std::string& name : ops_) check_known("elementwise: --op: must be some of", name, names);
  }

  std::vector<Case> cases(const Shape& shape, const std::string&,
                          const std::vector<OperandKind>& kinds) const override {
    std::vector<Case> cases;
    for (const std::string& name : contains(ops_, "all") ? std::vector<std::string>{"all"} : ops_)
      for (const OpCase& operation : operations())
        if (name == "all" || name == operation.name)
          for (const OperandKind& kind : kinds) cases.push_back(case_of(operation, shape, kind));
    return cases;
  }

 private:
  Case case_of(const OpCase& operation, const Shape& shape, const OperandKind& kind) const {
    Case one = make_case(name(), to_string(shape), {{"function", operation.name}}, kind);
    for (const Tensor& x : operation.inputs) {
      const bool is_bias = operation.name == add_bias && !one.operands.empty();
      one.operands.push_back(as_kind(repeated(x, is_bias ? bias_shape(shape) : shape), kind));
    }
    one.prepare = function_of([call = operation.call](const Tensors& x) { return call(x).tensors(); });
    one.record.set_value("elements", static_cast<double>(count(shape)));
    return one;
  }

  std::vector<std::string> ops_ = {"copy", "relu",     "relu_backward", "sigmoid",     "tanh",
                                   "exp",  "log",      "sqrt",          "erf",         add_bias,
                                   "add",  "multiply", "divide",        "other_format"};
};

}  // namespace

SubcommandPointer make_elementwise() { return std::make_unique<Elementwise>(); }

}  // namespace pleat::bench
