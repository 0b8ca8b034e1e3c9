#include "pleat/ops/recurrent/kernels.h"

#include <optional>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/kernels/host_array.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/matmul/gemm_panels.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/matmul/matrices.h"
#include "pleat/ops/recurrent/cells.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::ops {
namespace {

/// Row-major in the type computed in.
Tensor dense(const RecurrentProblem& p, const Tensor& x) {
  return to_format(cast(x, p.compute), MemoryFormat::contiguous);
}

/// [L + 1, N, H] with the state at its place, or 0.
Tensor states_from(const RecurrentProblem& p, const Tensor& state, const TensorOptions& options) {
  const Tensor states = empty({p.steps + 1, p.batch, p.width}, options);
  const Tensor first = select(states, 0, p.first_state());
  state.defined() ? copy_into(first, state) : fill(first, 0);
  return states;
}

/// Products with one matrix, step by step. On the CPU it is packed once for all of them.
template <class T>
class StepProducts {
 public:
  /// The matrix is [width, gates], or the transpose of one that is row-major.
  StepProducts(const RecurrentProblem& p, const Tensor& matrix) : p_(p), matrix_(matrix) {
    // Of one row a product takes no longer than packing does, and as long without.
    constexpr int64_t fewest_steps = 4, fewest_rows = 2;
    if (matrix.device().is_cuda() || p.steps < fewest_steps || p.batch < fewest_rows || matrix.numel() == 0)
      return;
    const bool is_transposed = matrix.strides()[1] != 1;
    product_ = {.m = p.batch,
                .n = matrix.size(1),
                .k = matrix.size(0),
                .lda = matrix.size(0),
                .b = matrix.data<T>(),
                .ldb = matrix.strides()[is_transposed ? 1 : 0],
                .transpose_b = is_transposed,
                .ldc = matrix.size(1)};
    panels_.emplace(product_);
    panels_->pack(product_, 0, panels_->count());
  }

  /// out = a matrix (+ out) of dense rows.
  void run(const Tensor& out, const Tensor& a, bool accumulate) const {
    if (!panels_) return multiply_batches<T>(p_.op, out, a, matrix_, 1, accumulate);
    Gemm<T> product = product_;
    product.a = a.data<T>();
    product.c = out.data<T>();
    product.accumulate = accumulate;
    gemm(product, *panels_);
  }

 private:
  const RecurrentProblem& p_;
  Tensor matrix_;
  Gemm<T> product_;
  std::optional<ColumnPanels<T>> panels_;
};

}  // namespace

RecurrentStates recurrent_forward(const RecurrentProblem& p, const RecurrentOperands& operands, bool keep) {
  const NoGrad off_the_tape;
  const auto& [projected, w_hh, b_hh, h, c] = operands;
  const Device device = projected.device();
  const TensorOptions options{.dtype = p.compute, .device = device};
  const Tensor x = dense(p, projected);
  const Tensor weight = transpose(dense(p, w_hh), 0, 1);
  const Tensor bias = b_hh.defined() ? dense(p, b_hh) : zeros({w_hh.size(0)}, options);
  RecurrentStates states{.h = states_from(p, h, options), .c = {}, .kept = {}};
  if (p.cell == RecurrentCell::lstm) states.c = states_from(p, c, options);
  const int64_t kept = with_cell(p.cell, []<class Cell>(Cell) { return Cell::kept; });
  if (keep) states.kept = empty({p.steps, p.batch, kept * p.width}, options);
  const Tensor product = empty({p.batch, w_hh.size(0)}, options);
  std::optional<HostArray<int64_t>> lengths;
  if (!p.lengths.empty()) lengths.emplace(p.lengths, device);
  dispatch_floating(p.op, p.compute, [&]<class T>(Type<T>) {
    const StepProducts<T> products(p, weight);
    for (int64_t i = 0; i < p.steps; ++i) {
      const int64_t t = p.step(i);
      products.run(product, select(states.h, 0, p.before(t)), false);
      forward_elements(p, t, lengths ? lengths->data() : nullptr, x, product, bias, states);
    }
  });
  return states;
}

RecurrentOperands recurrent_backward(const RecurrentProblem& p, const Tensor& dy, const Tensor& dh,
                                     const Tensor& dc, const Tensor& w_hh, const RecurrentStates& states) {
  const NoGrad off_the_tape;
  const Device device = w_hh.device();
  const TensorOptions options{.dtype = p.compute, .device = device};
  const int64_t columns = w_hh.size(0);
  const Tensor d_output = dense(p, dy);
  const Tensor weight = dense(p, w_hh);
  const Tensor d_projected = empty({p.steps, p.batch, columns}, options);
  const Tensor d_h = copy(dense(p, dh));
  const Tensor d_c = states.c.defined() ? copy(dense(p, dc)) : Tensor();
  // Only gru's differ.
  const Tensor d_product = p.cell == RecurrentCell::gru ? empty_like(d_projected) : d_projected;
  std::optional<HostArray<int64_t>> lengths;
  if (!p.lengths.empty()) lengths.emplace(p.lengths, device);
  dispatch_floating(p.op, p.compute, [&]<class T>(Type<T>) {
    const StepProducts<T> products(p, weight);
    for (int64_t i = p.steps; i-- > 0;) {
      const int64_t t = p.step(i);
      backward_elements(p, t, lengths ? lengths->data() : nullptr, states, d_output, d_h, d_c, d_projected,
                        d_product);
      products.run(d_h, select(d_product, 0, t), true);
    }
  });
  const int64_t rows = p.steps * p.batch;
  const Tensor before = reshape(narrow(states.h, 0, p.reverse ? 1 : 0, p.steps), {rows, p.width});
  const Tensor flat = reshape(d_product, {rows, columns});
  return {d_projected, matmul(transpose(flat, 0, 1), before), reduce_sum(flat, {0}), d_h, d_c};
}

}  // namespace pleat::ops
