#include "pleat/inference/fold.h"

#include <algorithm>
#include <string>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/inference/functions.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/spatial/bounds.h"

namespace pleat::inference {
namespace {

using onnx::Call;
using onnx::Value;

std::size_t at(int v) { return static_cast<std::size_t>(v); }

/// [K] seen as the sizes of a weight's dimension `dim`.
Tensor along(const Tensor& per_channel, const Tensor& weight, std::size_t dim) {
  std::vector<int64_t> shape(weight.shape().size(), 1);
  shape[dim] = per_channel.numel();
  return reshape(per_channel, shape);
}

/// A batch norm by running statistics as y = scale x + shift, in float64.
struct Affine {
  Tensor scale, shift;
};
Affine affine_of(const onnx::Trace& trace, const Call& norm) {
  const auto wide = [&](std::size_t i) {
    return ops::cast(trace.values[at(norm.inputs[i])].tensor, float64);
  };
  Tensor scale = rsqrt(wide(4) + Options(trace, norm).number("eps"));
  if (norm.inputs[1] >= 0) scale = scale * wide(1);
  Tensor shift = -wide(3) * scale;
  if (norm.inputs[2] >= 0) shift = shift + wide(2);
  return {scale, shift};
}

/// The calls that are left, in their order, with what belongs to each.
template <class T>
void erase(std::vector<T>& all, const std::vector<bool>& gone) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!gone[i]) {
      if (kept != i) all[kept] = std::move(all[i]);
      ++kept;
    }
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(kept), all.end());
}
void erase_calls(onnx::Plan& program, const std::vector<bool>& gone) {
  erase(program.trace.calls, gone);
  erase(program.numbers, gone);
}

/// Folds the norms after each call into its weights, which become new values.
void fold_norms(onnx::Plan& program) {
  onnx::Trace& trace = program.trace;
  const std::vector<std::vector<int>> readers = readers_of(trace);
  std::vector<bool> gone(trace.calls.size());
  for (Call& call : trace.calls) {
    Weights weights = weights_of(trace, call);
    // Channels are dimension 1: of an input without a batch that is another one.
    if (!weights.weight.defined() ||
        weights.weight.rank() != trace.values[at(call.outputs[0])].tensor.rank() ||
        (weights.dim == 1 && Options(trace, call).integer("groups") != 1))
      continue;
    bool changed = false;
    for (int next = 0; (next = only_reader(readers, call.outputs[0])) >= 0;) {
      const Call& norm = trace.calls[at(next)];
      if (norm.inputs[0] != call.outputs[0] || !fold_norm(weights, trace, norm)) break;
      call.outputs = norm.outputs;
      call.attributes.emplace_back(folded, norm.function == "batch_norm" ? "batch_norm" : "instance_norm");
      gone[at(next)] = changed = true;
    }
    if (!changed) continue;
    const auto constant = [&](const Tensor& t, int instead_of) {
      const std::string name = instead_of < 0 ? "" : trace.values[at(instead_of)].name;
      trace.values.push_back({Value::Kind::constant, t, name});
      onnx::SizeList sizes;
      for (const int64_t size : t.shape()) sizes.push_back({0, size});
      program.shapes.push_back(std::move(sizes));
      return static_cast<int>(trace.values.size()) - 1;
    };
    call.inputs.resize(3, -1);
    if (call.function == "matmul") call.function = "linear";
    call.inputs = {call.inputs[0], constant(weights.weight, call.inputs[1]),
                   constant(weights.bias, call.inputs[2])};
  }
  erase_calls(program, gone);
}

}  // namespace

bool is_known(const onnx::Trace& trace, int value) {
  if (value < 0) return true;
  const Value::Kind kind = trace.values[at(value)].kind;
  return kind == Value::Kind::state || kind == Value::Kind::constant;
}

std::vector<std::vector<int>> readers_of(const onnx::Trace& trace) {
  std::vector<std::vector<int>> readers(trace.values.size());
  for (std::size_t c = 0; c < trace.calls.size(); ++c)
    for (const int v : trace.calls[c].inputs)
      if (v >= 0) readers[at(v)].push_back(static_cast<int>(c));
  for (const int v : trace.outputs) readers[at(v)].push_back(beyond);
  return readers;
}

int only_reader(const std::vector<std::vector<int>>& readers, int value) {
  if (value < 0) return -1;
  const std::vector<int>& all = readers[at(value)];
  return all.size() == 1 && all[0] != beyond ? all[0] : -1;
}

std::vector<bool> compute_constants(onnx::Trace& trace, const std::function<bool(std::size_t call)>& may) {
  std::vector<bool> done(trace.calls.size());
  std::vector<Tensor> results(trace.values.size());
  for (std::size_t c = 0; c < trace.calls.size(); ++c) {
    const Call& call = trace.calls[c];
    if (!std::all_of(call.inputs.begin(), call.inputs.end(), [&](int v) { return is_known(trace, v); }) ||
        !may(c))
      continue;
    run_call(run_of(trace, call), call.inputs, call.outputs, [&](int v) -> Tensor& {
      Value& value = trace.values[at(v)];
      return is_known(trace, v) ? value.tensor : results[at(v)];
    });
    for (const int v : call.outputs)
      if (v >= 0) trace.values[at(v)] = {Value::Kind::constant, std::move(results[at(v)]), {}};
    done[c] = true;
  }
  return done;
}

Weights weights_of(const onnx::Trace& trace, const Call& call) {
  const bool is_transposed = call.function == "conv_transpose", is_matmul = call.function == "matmul",
             is_product = is_matmul || call.function == "linear";
  if ((call.function != "conv" && !is_transposed && !is_product) || call.inputs.size() < 2 ||
      call.outputs.size() != 1 || call.inputs[0] < 0 || call.inputs[1] < 0 || call.outputs[0] < 0 ||
      is_known(trace, call.inputs[0]) || !is_known(trace, call.inputs[1]) ||
      (call.inputs.size() > 2 && !is_known(trace, call.inputs[2])))
    return {};
  const Tensor& x = trace.values[at(call.inputs[0])].tensor;
  const Tensor& weight = trace.values[at(call.inputs[1])].tensor;
  if (!is_floating(x.dtype()) || weight.dtype() != x.dtype() || x.numel() == 0 || weight.numel() == 0)
    return {};
  if (is_matmul && (weight.rank() != 2 || x.rank() < 2 || !x.device().is_cpu())) return {};
  Weights weights{.weight = is_matmul ? transpose(weight, 0, 1) : weight, .dim = is_transposed ? 1U : 0U};
  if (call.inputs.size() > 2 && call.inputs[2] >= 0) weights.bias = trace.values[at(call.inputs[2])].tensor;
  return weights;
}

bool fold_norm(Weights& weights, const onnx::Trace& trace, const Call& norm) {
  if (norm.function != "batch_norm" && norm.function != "instance_norm") return false;
  if (norm.inputs.size() < 5 || norm.inputs[3] < 0 || norm.inputs[4] < 0 || norm.outputs.size() != 1)
    return false;
  const Options o(trace, norm);
  const Bounds bounds{.min = o.number("min"), .max = o.number("max")};
  const bool has_residual = norm.inputs.size() > 5 && norm.inputs[5] >= 0;
  if (o.flag("training") || bounds.any() || has_residual) return false;
  for (std::size_t i = 1; i < 5; ++i)
    if (!is_known(trace, norm.inputs[i])) return false;
  const DType dtype = weights.weight.dtype();
  if (trace.values[at(norm.outputs[0])].tensor.dtype() != dtype) return false;
  const Affine affine = affine_of(trace, norm);
  const auto wide = [](const Tensor& t) { return ops::cast(t, float64); };
  weights.bias = ops::cast(
      weights.bias.defined() ? wide(weights.bias) * affine.scale + affine.shift : affine.shift, dtype);
  weights.weight = ops::cast(wide(weights.weight) * along(affine.scale, weights.weight, weights.dim), dtype);
  return true;
}

void fold(onnx::Plan& program) {
  onnx::Trace& trace = program.trace;
  for (Value& value : trace.values)
    if (value.kind == Value::Kind::state || value.kind == Value::Kind::constant)
      value.tensor = value.tensor.detach();
  const auto is_fixed = [](const onnx::SizeList& sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [](const onnx::Size& size) { return size.fixed(); });
  };
  erase_calls(program, compute_constants(trace, [&](std::size_t c) {
                const auto all_fixed = [&](const std::vector<int>& values) {
                  return std::all_of(values.begin(), values.end(),
                                     [&](int v) { return v < 0 || is_fixed(program.shapes[at(v)]); });
                };
                return all_fixed(trace.calls[c].inputs) && all_fixed(trace.calls[c].outputs) &&
                       std::all_of(program.numbers[c].begin(), program.numbers[c].end(),
                                   [&](const auto& entry) { return is_fixed(entry.second); });
              }));
  fold_norms(program);
  std::vector<bool> is_read(trace.values.size()), gone(trace.calls.size());
  for (const int v : trace.outputs) is_read[at(v)] = true;
  for (std::size_t c = trace.calls.size(); c-- > 0;) {
    const Call& call = trace.calls[c];
    gone[c] = std::none_of(call.outputs.begin(), call.outputs.end(),
                           [&](int v) { return v >= 0 && is_read[at(v)]; });
    if (gone[c]) continue;
    for (const int v : call.inputs)
      if (v >= 0) is_read[at(v)] = true;
  }
  erase_calls(program, gone);
}

}  // namespace pleat::inference
