#include <algorithm>
#include <optional>
#include <unordered_map>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/inference/fold.h"
#include "pleat/inference/functions.h"
#include "pleat/inference/plan.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/conv/frozen_conv.h"
#include "pleat/ops/matmul/linear_activation.h"
#include "pleat/ops/recurrent/kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::inference {
namespace {

using onnx::Call;
using onnx::Value;

/// A product or convolution of constant weights with what follows it, computed in one step.
struct Fused {
  const Call* call = nullptr;
  Tensor weight = {}, bias = {};
  int input = -1;
  int addend = -1;
  LinearActivationPtr activation = nullptr;
  Bounds limits = {};  ///< the activation, where it is one of these
  int output = -1;
  std::string text = {};
};

Bounds limits_of(const onnx::Trace& trace, const Call& call) {
  const Options o(trace, call);
  if (call.function == "relu") return {.min = 0};
  if (call.function == "clamp" || call.function == "hardtanh")
    return {.min = o.number("min"), .max = o.number("max")};
  return {};
}

/// The activation of a call that a product or convolution can finish with; null for others.
LinearActivationPtr activation_of(const onnx::Trace& trace, const Call& call) {
  const Options o(trace, call);
  const std::string& name = call.function;
  if (name == "relu" || name == "clamp" || name == "hardtanh") return linear_limit(limits_of(trace, call));
  if (name == "sigmoid") return linear_sigmoid();
  if (name == "tanh") return linear_tanh();
  if (name == "silu") return linear_silu();
  if (name == "gelu") return linear_gelu(o.flag("tanh") ? GeluApproximation::tanh : GeluApproximation::none);
  if (name == "hardswish") return linear_hardswish();
  if (name == "hardsigmoid") return linear_hardsigmoid();
  if (name == "mish") return linear_mish();
  if (name == "leaky_relu") return linear_leaky_relu(o.number("negative_slope"));
  if (name == "elu") return linear_elu(o.number("alpha"));
  return nullptr;
}

}  // namespace

class Plan::Builder {
 public:
  Builder(Plan& plan, onnx::Trace trace, const PlanOptions& options)
      : plan_(plan),
        trace_(std::move(trace)),
        measured_(options.measured),
        choices_(options.choices),
        shared_(options.shared),
        quantizer_(options.quantizer),
        made_by_(trace_.values.size(), -1) {}

  void build() {
    done_ = compute_constants(trace_, [](std::size_t) { return true; });
    for (std::size_t c = 0; c < trace_.calls.size(); ++c)
      for (const int v : trace_.calls[c].outputs)
        if (v >= 0) made_by_[at(v)] = static_cast<int>(c);
    readers_ = readers_of(trace_);
    std::vector<std::pair<std::size_t, std::optional<Fused>>> steps;
    for (std::size_t c = 0; c < trace_.calls.size(); ++c) {
      if (done_[c]) continue;
      steps.emplace_back(c, fusible(trace_.calls[c]));
      if (!steps.back().second) steps.back().second = norm_before_int8(trace_.calls[c]);
      if (steps.back().second) extend(*steps.back().second, c);
    }
    find_uint8(steps);
    for (const auto& [c, fused] : steps) add_step(c, fused);
    finish();
  }

 private:
  static std::size_t at(int v) { return static_cast<std::size_t>(v); }

  /// A constant, or the shape and type of another value.
  const Tensor& example(int v) const { return trace_.values[at(v)].tensor; }
  bool is_known(int v) const { return inference::is_known(trace_, v); }
  Tensor known(int v) const { return v < 0 ? Tensor() : example(v); }
  int only_reader(int v) const { return inference::only_reader(readers_, v); }

  Run again(const Call& call) const {
    const bool of_uint8 =
        !is_uint8_.empty() && !call.outputs.empty() && call.outputs[0] >= 0 && is_uint8_[at(call.outputs[0])];
    return of_uint8 ? Quantizer::run_of_uint8(trace_, call) : run_of(trace_, call);
  }

  /// Whether a value is there before call `c` is made.
  bool is_before(int v, std::size_t c) const { return is_known(v) || step_of_value(v) < static_cast<int>(c); }
  /// The call in whose step a value is computed; -1: it is an input.
  int step_of_value(int v) const {
    const auto found = fused_into_.find(v);
    return found != fused_into_.end() ? found->second : made_by_[at(v)];
  }

  /// Whether a step of its own computes the call, which then finishes its result.
  bool is_frozen(const Fused& fused) const {
    return fused.weight.device().is_cpu() && (!is_conv(fused) || conv_of(fused));
  }
  static bool is_transposed(const Fused& fused) { return fused.call->function == "conv_transpose"; }
  static bool is_conv(const Fused& fused) { return fused.call->function == "conv" || is_transposed(fused); }
  /// A step that is a convolution, transposed or not; nothing where it is not one of a batch alone.
  std::optional<ops::ConvCall> conv_of(const Fused& fused) const {
    const Tensor& x = example(fused.input);
    const Options o(trace_, *fused.call);
    if (x.rank() != fused.weight.rank()) return std::nullopt;
    if (is_transposed(fused))
      return ops::transposed_call(x, fused.weight, fused.bias, conv_transpose_options(o));
    return ops::forward_call(x, fused.weight, fused.bias, conv_options(o));
  }

  /// A call as a convolution or product of known weights, if it is one.
  std::optional<Fused> fusible(const Call& call) const {
    const Weights weights = weights_of(trace_, call);
    if (!weights.weight.defined()) return std::nullopt;
    Fused fused{.call = &call,
                .weight = weights.weight,
                .bias = weights.bias,
                .input = call.inputs[0],
                .output = call.outputs[0],
                .text = call.function};
    for (const Attribute& attribute : call.attributes)
      if (attribute.name == folded)
        fused.text.append(" + ").append(std::get<std::string_view>(attribute.value));
    return fused;
  }

  /// A batch norm between what computes in int8, as a convolution with one weight a channel: so the values
  /// before and after it can be uint8.
  std::optional<Fused> norm_before_int8(const Call& norm) const {
    if (quantizer_ == nullptr || norm.function != "batch_norm" || norm.inputs[0] < 0 || norm.outputs[0] < 0)
      return std::nullopt;
    const Tensor& x = example(norm.inputs[0]);
    if (x.dtype() != float32 || x.rank() < 3 || x.numel() == 0) return std::nullopt;
    int next = only_reader(norm.outputs[0]);
    if (next >= 0 && limits_of(trace_, trace_.calls[at(next)]).any())
      next = only_reader(trace_.calls[at(next)].outputs[0]);
    if (next < 0 || !fusible(trace_.calls[at(next)])) return std::nullopt;
    Shape shape(x.shape().size(), 1);
    shape[0] = x.size(1);
    Weights weights{.weight = ones(Sizes(shape))};
    if (!fold_norm(weights, trace_, norm)) return std::nullopt;
    Fused fused{.call = &norm,
                .weight = weights.weight,
                .bias = weights.bias,
                .input = norm.inputs[0],
                .output = norm.outputs[0],
                .text = norm.function};
    if (refusal(fused) != nullptr) return std::nullopt;
    return fused;
  }

  /// Takes what follows into the step of call `c`.
  void extend(Fused& fused, std::size_t c) {
    for (int next = only_reader(fused.output); next >= 0; next = only_reader(fused.output)) {
      const Call& call = trace_.calls[at(next)];
      const bool is_plain = fused.addend < 0 && fused.activation == nullptr;
      if (call.outputs.size() != 1 || call.outputs[0] < 0 ||
          example(call.outputs[0]).dtype() != example(fused.output).dtype())
        return;
      const bool finishes = is_frozen(fused);
      if (LinearActivationPtr f = finishes && fused.activation == nullptr && call.inputs.size() == 1
                                      ? activation_of(trace_, call)
                                      : nullptr) {
        fused.activation = std::move(f);
        fused.limits = limits_of(trace_, call);
        take(fused, next, c, call.function);
      } else if (finishes && is_plain && call.function == "add" && call.inputs.size() == 2) {
        const int other = call.inputs[call.inputs[0] == fused.output ? 1 : 0];
        if (other == fused.output || is_known(other) || !is_before(other, c) ||
            example(other).shape() != example(fused.output).shape() ||
            example(other).shape() != example(call.outputs[0]).shape() ||
            example(other).dtype() != example(fused.output).dtype())
          return;
        fused.addend = other;
        take(fused, next, c, "add");
      } else {
        return;
      }
    }
  }
  void take(Fused& fused, int next, std::size_t c, const std::string& name) {
    done_[at(next)] = true;
    fused.output = trace_.calls[at(next)].outputs[0];
    fused_into_[fused.output] = static_cast<int>(c);
    fused.text += " + " + name;
  }

  /// Why a step is left in float32 where others compute in int8.
  const char* refusal(const Fused& fused) const {
    return is_frozen(fused) && !is_transposed(fused) ? quantizer_->refusal(fused.input, fused.weight)
                                                     : "of this kind";
  }
  ConvOptions options_of(const Fused& fused) const {
    const Call& call = *fused.call;
    if (call.function == "batch_norm") return {.groups = fused.weight.size(0)};
    return call.function == "conv" ? conv_options(Options(trace_, call)) : ConvOptions();
  }
  bool is_int8(const std::optional<Fused>& fused) const {
    return quantizer_ != nullptr && fused && refusal(*fused) == nullptr;
  }
  void find_uint8(const std::vector<std::pair<std::size_t, std::optional<Fused>>>& steps) {
    if (quantizer_ == nullptr) return;
    std::vector<StepValues> values;
    for (const auto& [c, fused] : steps) {
      const Call& call = trace_.calls[c];
      if (fused)
        values.push_back({is_int8(fused), &call, {fused->input, fused->addend}, {fused->output}});
      else
        values.push_back({false, &call, call.inputs, call.outputs});
    }
    is_uint8_ = quantizer_->uint8_values(values, trace_);
  }

  void add_step(std::size_t c, const std::optional<Fused>& fused) {
    const Call& call = trace_.calls[c];
    if (is_int8(fused)) return add_int8(*fused, c);
    if (fused) {
      std::string where = call.module.empty() ? "" : " in " + call.module;
      if (quantizer_ != nullptr) where += fmt::format(", float32 ({})", refusal(*fused));
      if (!is_frozen(*fused))
        add_call(call, {fused->input, constant(fused->weight), constant(fused->bias)}, {fused->output},
                 fused->text + where);
      else if (is_conv(*fused))
        add_conv(*fused, where);
      else
        add_linear(*fused, where);
      return;
    }
    if (is_recurrent(call)) return add_recurrent(call);
    add_call(call, call.inputs, call.outputs, call.where());
  }

  /// Whether a call is a recurrent layer of known weights that can be packed: x, w_ih, w_hh, b_ih, b_hh, ...
  bool is_recurrent(const Call& call) const {
    if (call.function != "recurrent_layer" || call.inputs.size() != 8 || call.inputs[0] < 0 ||
        call.inputs[1] < 0 || call.inputs[2] < 0)
      return false;
    const Tensor& x = example(call.inputs[0]);
    return is_floating(x.dtype()) && x.device().is_cpu() &&
           std::all_of(call.inputs.begin() + 1, call.inputs.begin() + 5, [&](int v) { return is_known(v); });
  }

  /// A tensor that no change of the network's parameters reaches.
  Tensor own(const Tensor& t) const {
    const bool is_parameter =
        t.defined() && std::any_of(trace_.values.begin(), trace_.values.end(), [&](const Value& value) {
          return value.kind == Value::Kind::state && value.tensor.impl().storage == t.impl().storage;
        });
    return is_parameter ? shared_.of(ops::copy(t)) : t;
  }

  /// A new value that is known.
  int constant(const Tensor& t) {
    if (!t.defined()) return -1;
    trace_.values.push_back({Value::Kind::constant, t, {}});
    return static_cast<int>(trace_.values.size()) - 1;
  }

  /// The choice for the next convolution; none: it is measured.
  std::optional<ops::FrozenConv::Choice> next_choice() const {
    const std::size_t next = plan_.choices_.size();
    if (next < choices_.size()) return choices_[next];
    return measured_ ? std::nullopt : std::optional(ops::FrozenConv::Choice());
  }

  void add_conv(const Fused& fused, const std::string& where) {
    ops::ConvCall call = *conv_of(fused);
    call.w = own(call.w);
    call.bias = own(call.bias);
    const auto conv = std::make_shared<const ops::FrozenConv>(std::move(call), next_choice(), shared_);
    plan_.choices_.push_back(conv->choice());
    add(fused.text + where + ": " + std::string(conv->implementation()), {fused.input, fused.addend},
        {fused.output},
        [conv, x = fused.input, addend = fused.addend, activation = fused.activation, limits = fused.limits,
         y = fused.output](std::vector<Tensor>& values) {
          values[at(y)] = conv->run(values[at(x)], finish_of(values, addend, activation, limits));
        });
  }

  void add_linear(const Fused& fused, const std::string& where) {
    add(fused.text + where, {fused.input, fused.addend}, {fused.output},
        [linear = packed(fused.weight, fused.bias), x = fused.input, addend = fused.addend,
         activation = fused.activation, limits = fused.limits,
         y = fused.output](std::vector<Tensor>& values) {
          values[at(y)] = linear->run(values[at(x)], finish_of(values, addend, activation, limits));
        });
  }

  void add_recurrent(const Call& call) {
    const std::vector<int>& in = call.inputs;
    const Options o(trace_, call);
    const RecurrentOptions options{.cell = o.choice("cell", RecurrentCell::rnn_relu),
                                   .reverse = o.flag("reverse")};
    add(call.where(), {in[0], in[5], in[6], in[7]}, call.outputs,
        [=, w_hh = own(known(in[2])), b_hh = own(known(in[4])), input = packed(known(in[1]), known(in[3])),
         state = packed(known(in[2]), {}), outputs = call.outputs](std::vector<Tensor>& values) {
          const auto value = [&](int v) { return v < 0 ? Tensor() : values[at(v)]; };
          RecurrentOptions own = options;
          own.lengths = value(in[7]);
          RecurrentResult y = ops::recurrent(
              {input->run(value(in[0]), {}), w_hh, b_hh, value(in[5]), value(in[6])}, own, *state);
          Tensor* const results[] = {&y.output, &y.h, &y.c};
          for (std::size_t i = 0; i < std::min(outputs.size(), std::size(results)); ++i)
            if (outputs[i] >= 0) values[at(outputs[i])] = std::move(*results[i]);
        });
  }

  /// A weight and its bias in panels.
  std::shared_ptr<const ops::FrozenLinear> packed(const Tensor& weight, const Tensor& bias) const {
    return std::make_shared<const ops::FrozenLinear>(weight, own(bias), shared_);
  }

  void add_int8(const Fused& fused, std::size_t c) {
    const Call& call = *fused.call;
    const auto conv = quantizer_->make({c, fused.weight, fused.bias, options_of(fused), fused.input,
                                        fused.addend, fused.output, fused.activation, fused.limits},
                                       is_uint8_, shared_);
    add(fused.text + (call.module.empty() ? "" : " in " + call.module) + ": int8",
        {fused.input, fused.addend}, {fused.output},
        [conv, x = fused.input, addend = fused.addend, y = fused.output](std::vector<Tensor>& values) {
          values[at(y)] = conv->run(values[at(x)], addend < 0 ? Tensor() : values[at(addend)]);
        });
  }

  static ops::ResultFinish finish_of(const std::vector<Tensor>& values, int addend,
                                     const LinearActivationPtr& activation, const Bounds& limits) {
    ops::ResultFinish finish{.bounds = limits};
    if (addend >= 0) finish.addend = values[at(addend)];
    if (activation != nullptr && !limits.any()) finish.f = &activation->function();
    return finish;
  }

  void add_call(const Call& call, const std::vector<int>& inputs, const std::vector<int>& outputs,
                std::string text) {
    add(std::move(text), inputs, outputs, [run = again(call), inputs, outputs](std::vector<Tensor>& values) {
      run_call(run, inputs, outputs, [&](int v) -> Tensor& { return values[at(v)]; });
    });
  }

  void add(std::string text, const std::vector<int>& reads, const std::vector<int>& writes,
           std::function<void(std::vector<Tensor>&)> run) {
    for (const int v : reads)
      if (v >= 0) last_step_[v] = plan_.steps_.size();
    plan_.steps_.push_back({std::move(text), std::move(run), writes, {}});
  }

  void finish() {
    plan_.inputs_ = trace_.inputs;
    plan_.outputs_ = trace_.outputs;
    plan_.constants_.resize(trace_.values.size());
    for (const auto& [value, step] : last_step_) {
      const bool is_result =
          std::find(trace_.outputs.begin(), trace_.outputs.end(), value) != trace_.outputs.end();
      if (is_known(value))
        plan_.constants_[at(value)] = own(example(value));
      else if (!is_result)
        plan_.steps_[step].last_reads.push_back(value);
    }
    for (const int v : trace_.outputs)
      if (is_known(v)) plan_.constants_[at(v)] = own(example(v));
    if (plan_.verified_) return;
    for (std::size_t v = 0; v < trace_.values.size(); ++v) {
      const Tensor& t = trace_.values[v].tensor;
      const bool is_uint8 = v < is_uint8_.size() && is_uint8_[v];
      plan_.expected_.emplace_back(t.defined() ? t.shape() : Shape(), is_uint8      ? uint8
                                                                      : t.defined() ? t.dtype()
                                                                                    : float32);
    }
  }

  Plan& plan_;
  onnx::Trace trace_;
  bool measured_;
  const std::vector<ops::FrozenConv::Choice>& choices_;
  SharedBlocks& shared_;
  Quantizer* quantizer_;                     ///< null: all in its own type
  std::vector<bool> is_uint8_;               ///< of each value
  std::vector<std::vector<int>> readers_;    ///< of each value: the calls, and `beyond`
  std::vector<int> made_by_;                 ///< of each value: the call
  std::vector<bool> done_;                   ///< of each call: whether it needs no step of its own
  std::unordered_map<int, int> fused_into_;  ///< of a value that another call's step computes: that call
  std::unordered_map<int, std::size_t> last_step_;
};

Plan::Plan(onnx::Trace trace, const PlanOptions& options) : verified_(options.verified) {
  Builder(*this, std::move(trace), options).build();
}

}  // namespace pleat::inference
