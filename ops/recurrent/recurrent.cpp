#include "pleat/ops/recurrent/recurrent.h"

#include <array>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/backward.h"
#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/recurrent/cells.h"
#include "pleat/ops/recurrent/kernels.h"
#include "pleat/ops/recurrent/layer.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

using Operands = ops::RecurrentOperands;
using Problem = ops::RecurrentProblem;

void check_operand(const Problem& p, const char* name, const Tensor& x, const Shape& shape,
                   const Tensor& projected) {
  if (!x.defined()) return;
  check<ShapeError>(x.shape() == shape, "{}: {} must be {}, got {}", p.op, name, shape, x);
  ops::check_one_type(p.op, "the projected input", projected, name, x);
  check<DeviceError>(x.device() == projected.device(), "{}: {} must be on {} like the input, got {}", p.op,
                     name, projected.device(), x);
}

std::vector<int64_t> checked_lengths(const Problem& p, const Tensor& lengths) {
  if (!lengths.defined()) return {};
  check<DTypeError>(!is_floating(lengths.dtype()) && lengths.dtype() != boolean,
                    "{}: lengths must be integers, got {}", p.op, lengths);
  check<ShapeError>(lengths.shape() == Shape{p.batch}, "{}: lengths must be [{}], one a sequence, got {}",
                    p.op, p.batch, lengths);
  std::vector<int64_t> result = lengths.to_vector<int64_t>();
  for (const int64_t length : result)
    check<IndexError>(length >= 0 && length <= p.steps, "{}: lengths must be 0 to {}, got {}", p.op, p.steps,
                      length);
  return result;
}

Problem checked(const char* op, const Operands& x, const RecurrentOptions& options) {
  const auto& [projected, w_hh, b_hh, h, c] = x;
  const int64_t gates = ops::with_cell(options.cell, []<class Cell>(Cell) { return Cell::gates; });
  check<ShapeError>(
      projected.rank() == 3 && projected.size(0) >= 1 && projected.size(2) >= gates &&
          projected.size(2) % gates == 0,
      "{}: the projected input must be [steps, batch, {} hidden_size] of at least one step, got {}", op,
      gates, projected);
  check<DTypeError>(is_floating(projected.dtype()),
                    "{}: the projected input must be floating, got {}; convert it with to(float32)", op,
                    projected);
  Problem p{.op = op,
            .cell = options.cell,
            .reverse = options.reverse,
            .steps = projected.size(0),
            .batch = projected.size(1),
            .width = projected.size(2) / gates,
            .lengths = {},
            .compute = compute_dtype(projected.dtype())};
  check<ShapeError>(w_hh.defined(), "{}: needs the weight of the state, w_hh", op);
  check_operand(p, "w_hh", w_hh, {gates * p.width, p.width}, projected);
  check_operand(p, "b_hh", b_hh, {gates * p.width}, projected);
  check_operand(p, "the state h", h, {p.batch, p.width}, projected);
  check<ValueError>(!c.defined() || options.cell == RecurrentCell::lstm, "{}: only lstm has a state c", op);
  check_operand(p, "the state c", c, {p.batch, p.width}, projected);
  p.lengths = checked_lengths(p, options.lengths);
  return p;
}

/// [L, N, 1]: which steps are within their sequences. On `device`.
Tensor steps_within(const Problem& p, Device device) {
  const NoGrad off;
  const Tensor steps = reshape(arange(p.steps, {.device = device}), {p.steps, 1, 1});
  return steps < reshape(from_vector(p.lengths, {p.batch}, device), {1, p.batch, 1});
}

/// The same function, step by step in differentiable ones, for gradients of gradients.
RecurrentResult composed(const Problem& p, const Operands& x) {
  const auto as_computed = [&](const Tensor& t) { return t.defined() ? cast(t, p.compute) : t; };
  const TensorOptions options{.dtype = p.compute, .device = x[0].device()};
  const std::vector<Tensor> inputs = split(as_computed(x[0]), 1, 0);
  const Tensor weight = as_computed(x[1]), bias = as_computed(x[2]);
  const auto state_of = [&](const Tensor& t) {
    return t.defined() ? as_computed(t) : zeros({p.batch, p.width}, options);
  };
  Tensor h = state_of(x[3]);
  Tensor c = p.cell == RecurrentCell::lstm ? state_of(x[4]) : Tensor();
  const Tensor within = p.lengths.empty() ? Tensor() : steps_within(p, x[0].device());
  std::vector<Tensor> outputs(static_cast<std::size_t>(p.steps));
  ops::with_cell(p.cell, [&]<class Cell>(Cell) {
    for (int64_t i = 0; i < p.steps; ++i) {
      const int64_t t = p.step(i);
      const std::vector<Tensor> in = chunk(squeeze(inputs[static_cast<std::size_t>(t)], {0}), Cell::gates, 1);
      const std::vector<Tensor> product = chunk(linear(h, weight, bias), Cell::gates, 1);
      ops::CellStep<Tensor> after = Cell::step(in.data(), product.data(), h, c);
      Tensor output = after.h;
      if (within.defined()) {
        const Tensor is_within = select(within, 0, t);
        output = where(is_within, after.h, 0);
        after.h = where(is_within, after.h, h);
        if (c.defined()) after.c = where(is_within, after.c, c);
      }
      outputs[static_cast<std::size_t>(t)] = output;
      h = after.h;
      if (c.defined()) c = after.c;
    }
  });
  return {stack(outputs, 0), h, c};
}

Grads recorded_backward(const Problem& p, Operands x, const Grads& dys, const Needs& needs) {
  Grads wanted;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!x[i].defined() || !needs[i]) continue;
    // Operands may depend on one another. The gradients are to reach each by itself.
    x[i] = clone(x[i]);
    wanted.push_back(x[i]);
  }
  const RecurrentResult y = composed(p, x);
  std::vector<Tensor> results{y.output, y.h};
  if (y.c.defined()) results.push_back(y.c);
  Grads weights;
  for (std::size_t i = 0; i < results.size(); ++i) weights.push_back(cast(dys[i], p.compute));
  const Grads found = grad(results, wanted, weights, {.create_graph = true, .allow_unused = true});
  Grads gradients(x.size());
  for (std::size_t i = 0, next = 0; i < x.size(); ++i)
    if (x[i].defined() && needs[i]) gradients[i] = found[next++];
  return gradients;
}

const char* name(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? "lstm" : cell == RecurrentCell::gru ? "gru" : "rnn";
}

/// What the states are of to the caller. The output may be a part of them.
RecurrentResult result_of(const Problem& p, const ops::RecurrentStates& states, DType dtype) {
  const NoGrad off_the_tape;
  const auto last = [&](const Tensor& all) {
    return all.defined() ? ops::cast(ops::copy(select(all, 0, p.last_state())), dtype) : Tensor();
  };
  Tensor output = narrow(states.rounded.defined() ? states.rounded : states.h, 0, p.reverse ? 0 : 1, p.steps);
  if (!p.lengths.empty()) output = where(steps_within(p, output.device()), output, 0);
  return {ops::cast(output, dtype), last(states.h), last(states.c)};
}

}  // namespace

namespace ops {
RecurrentResult recurrent(const RecurrentOperands& x, const RecurrentOptions& options,
                          const FrozenLinear& packed) {
  const RecordOp range(name(options.cell), x[0]);
  const Problem p = checked(name(options.cell), x, options);
  return result_of(p, recurrent_forward(p, x, false, p.batch > 0 ? &packed : nullptr), x[0].dtype());
}
}  // namespace ops

RecurrentResult recurrent(const Tensor& projected, const Tensor& w_hh, const Tensor& b_hh, const Tensor& h,
                          const Tensor& c, const RecurrentOptions& options) {
  const char* const op = name(options.cell);
  const Operands x = autocast_to_half(projected, w_hh, b_hh, h, c);
  const Call call(op, {x[0], x[1], x[2], x[3], x[4]});
  const Problem p = checked(op, x, options);
  const bool keep = autograd::anything_to_record({x[0], x[1], x[2], x[3], x[4]});
  const ops::RecurrentStates states = ops::recurrent_forward(p, x, keep);
  const RecurrentResult y = result_of(p, states, x[0].dtype());
  std::vector<Tensor> results{y.output, y.h};
  if (y.c.defined()) results.push_back(y.c);
  std::array<Saved, 5> kept;
  for (std::size_t i = 0; i < x.size(); ++i) kept[i] = saved(x[i]);
  Derivative derivative{{x.begin(), x.end()},
                        [p, kept, h_states = saved(states.h), c_states = states.c, gates = states.kept,
                         rounded = saved(states.rounded)](const Grads& dys, const Needs& needs) -> Grads {
                          const Operands operands{*kept[0], *kept[1], *kept[2], *kept[3], *kept[4]};
                          if (grad_enabled()) return recorded_backward(p, operands, dys, needs);
                          const Operands d =
                              ops::recurrent_backward(p, dys[0], dys[1], dys.size() > 2 ? dys[2] : Tensor(),
                                                      operands[1], {*h_states, c_states, gates, *rounded});
                          return {d.begin(), d.end()};
                        }};
  results = call.results(std::move(results), {std::move(derivative)});
  return {results[0], results[1], results.size() > 2 ? results[2] : Tensor()};
}

RecurrentResult recurrent_layer(const Tensor& x, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                                const Tensor& b_hh, const Tensor& h, const Tensor& c,
                                const RecurrentOptions& options) {
  const Call call("recurrent_layer", {x, w_ih, w_hh, b_ih, b_hh, h, c, options.lengths},
                  {{"cell", static_cast<int64_t>(options.cell)}, {"reverse", Flag(options.reverse)}});
  const RecurrentResult y = recurrent(linear(x, w_ih, b_ih), w_hh, b_hh, h, c, options);
  call.gives(std::vector<Tensor>{y.output, y.h, y.c});
  return y;
}

}  // namespace pleat
