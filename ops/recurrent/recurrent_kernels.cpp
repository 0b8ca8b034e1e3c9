#include "pleat/ops/recurrent/recurrent_kernels.h"

#include <optional>

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/host_array.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/matmul/matmul_kernels.h"
#include "pleat/ops/matmul/matrices.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/recurrent/cells.h"
#include "pleat/ops/recurrent/steps.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

const char* name_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? "lstm" : cell == RecurrentCell::gru ? "gru" : "rnn";
}

int64_t gates_of(RecurrentCell cell) {
  return with_cell(cell, []<class Cell>(Cell) { return Cell::gates; });
}

void check_operand(const RecurrentProblem& p, const char* name, const Tensor& x, const Shape& shape,
                   const Tensor& projected) {
  if (!x.defined()) return;
  check<ShapeError>(x.shape() == shape, "{}: {} must be {}, got {}", p.op(), name, shape, x);
  check_one_type(p.op(), "the projected input", projected, name, x);
  check<DeviceError>(x.device() == projected.device(), "{}: {} must be on {} like the input, got {}", p.op(),
                     name, projected.device(), x);
}

std::vector<int64_t> checked_lengths(const RecurrentProblem& p, const Tensor& lengths) {
  if (!lengths.defined()) return {};
  check<DTypeError>(!is_floating(lengths.dtype()) && lengths.dtype() != boolean,
                    "{}: lengths must be integers, got {}", p.op(), lengths);
  check<ShapeError>(lengths.shape() == Shape{p.batch}, "{}: lengths must be [{}], one a sequence, got {}",
                    p.op(), p.batch, lengths);
  std::vector<int64_t> result = lengths.to_vector<int64_t>();
  for (const int64_t length : result)
    check<IndexError>(length >= 0 && length <= p.steps, "{}: lengths must be 0 to {}, got {}", p.op(),
                      p.steps, length);
  return result;
}

/// Row-major in the type computed in.
Tensor dense(const RecurrentProblem& p, const Tensor& x) {
  return to_format(cast(x, p.compute), MemoryFormat::contiguous);
}

/// The elements of [steps, ...] from step t on.
template <class T>
T* at(const Tensor& x, int64_t t) {
  return x.defined() && x.numel() > 0 ? x.data<T>() + t * (x.numel() / x.size(0)) : nullptr;
}

/// The lengths on the device, as steps read them.
class Times {
 public:
  Times(const RecurrentProblem& p, Device device) {
    if (!p.lengths.empty()) lengths_.emplace(p.lengths, device);
  }
  StepLengths at(int64_t step) const { return {lengths_ ? lengths_->data() : nullptr, step}; }

 private:
  std::optional<HostArray<int64_t>> lengths_;
};

/// [L + 1, N, H] with the state at its place, or 0.
Tensor states_from(const RecurrentProblem& p, const Tensor& state, const TensorOptions& options) {
  const Tensor states = empty({p.steps + 1, p.batch, p.width}, options);
  const Tensor first = select(states, 0, p.first_state());
  state.defined() ? copy_into(first, state) : fill(first, 0);
  return states;
}

}  // namespace

const char* RecurrentProblem::op() const { return name_of(cell); }

RecurrentProblem recurrent_problem(const Tensor& projected, const Tensor& w_hh, const Tensor& b_hh,
                                   const Tensor& h, const Tensor& c, const RecurrentOptions& options) {
  const char* const op = name_of(options.cell);
  const int64_t gates = gates_of(options.cell);
  check<ShapeError>(
      projected.rank() == 3 && projected.size(0) >= 1 && projected.size(2) >= gates &&
          projected.size(2) % gates == 0,
      "{}: the projected input must be [steps, batch, {} hidden_size] of at least one step, got {}", op,
      gates, projected);
  check<DTypeError>(is_floating(projected.dtype()),
                    "{}: the projected input must be floating, got {}; convert it with to(float32)", op,
                    projected);
  RecurrentProblem p{.cell = options.cell,
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

RecurrentStates recurrent_forward(const RecurrentProblem& p, const Tensor& projected, const Tensor& w_hh,
                                  const Tensor& b_hh, const Tensor& h, const Tensor& c, bool keep) {
  const RecordOp range(p.op(), projected, w_hh, h);
  const Device device = projected.device();
  const TensorOptions options{.dtype = p.compute, .device = device};
  const Tensor x = dense(p, projected);
  const Tensor weight = transpose(dense(p, w_hh), 0, 1);
  const Tensor bias = b_hh.defined() ? dense(p, b_hh) : zeros({w_hh.size(0)}, options);
  const bool has_cell = p.cell == RecurrentCell::lstm;
  RecurrentStates states{.h = states_from(p, h, options), .c = {}, .kept = {}};
  if (has_cell) states.c = states_from(p, c, options);
  const int64_t kept = with_cell(p.cell, []<class Cell>(Cell) { return Cell::kept; });
  if (keep) states.kept = empty({p.steps, p.batch, kept * p.width}, options);
  const Tensor product = empty({p.batch, w_hh.size(0)}, options);
  const Times times(p, device);
  dispatch_floating(p.op(), p.compute, [&]<class T>(Type<T>) {
    for (int64_t i = 0; i < p.steps; ++i) {
      const int64_t t = p.step(i);
      multiply_batches<T>(p.op(), product, select(states.h, 0, p.before(t)), weight, 1, false);
      forward_step<T>(p.op(), device, p.cell,
                      {.rows = p.batch,
                       .width = p.width,
                       .time = times.at(t),
                       .projected = at<T>(x, t),
                       .product = product.data<T>(),
                       .bias = bias.data<T>(),
                       .h_before = at<T>(states.h, p.before(t)),
                       .c_before = at<T>(states.c, p.before(t)),
                       .h_after = at<T>(states.h, p.after(t)),
                       .c_after = at<T>(states.c, p.after(t)),
                       .kept = at<T>(states.kept, t)});
    }
  });
  return states;
}

RecurrentGradients recurrent_backward(const RecurrentProblem& p, const Tensor& dy, const Tensor& dh,
                                      const Tensor& dc, const Tensor& w_hh, const RecurrentStates& states) {
  const Device device = w_hh.device();
  const TensorOptions options{.dtype = p.compute, .device = device};
  const int64_t columns = w_hh.size(0);
  const Tensor d_output = dense(p, dy);
  const Tensor weight = dense(p, w_hh);
  RecurrentGradients d{.projected = empty({p.steps, p.batch, columns}, options),
                       .w_hh = {},
                       .b_hh = {},
                       .h = copy(dense(p, dh)),
                       .c = states.c.defined() ? copy(dense(p, dc)) : Tensor()};
  // Only gru's differ.
  const Tensor d_product = p.cell == RecurrentCell::gru ? empty_like(d.projected) : d.projected;
  const Times times(p, device);
  dispatch_floating(p.op(), p.compute, [&]<class T>(Type<T>) {
    for (int64_t i = p.steps; i-- > 0;) {
      const int64_t t = p.step(i);
      backward_step<T>(p.op(), device, p.cell,
                       {.rows = p.batch,
                        .width = p.width,
                        .time = times.at(t),
                        .kept = at<T>(states.kept, t),
                        .h_before = at<T>(states.h, p.before(t)),
                        .h_after = at<T>(states.h, p.after(t)),
                        .c_before = at<T>(states.c, p.before(t)),
                        .c_after = at<T>(states.c, p.after(t)),
                        .dy = at<T>(d_output, t),
                        .dh = d.h.data<T>(),
                        .dc = d.c.defined() ? d.c.data<T>() : nullptr,
                        .d_projected = at<T>(d.projected, t),
                        .d_product = at<T>(d_product, t)});
      multiply_batches<T>(p.op(), d.h, select(d_product, 0, t), weight, 1, true);
    }
  });
  const int64_t rows = p.steps * p.batch;
  const Tensor before = reshape(narrow(states.h, 0, p.reverse ? 1 : 0, p.steps), {rows, p.width});
  const Tensor flat = reshape(d_product, {rows, columns});
  d.w_hh = matmul(transpose(flat, 0, 1), before);
  d.b_hh = reduce_sum(flat, {0});
  return d;
}

}  // namespace pleat::ops
