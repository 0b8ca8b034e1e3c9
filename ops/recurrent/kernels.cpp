#include "pleat/ops/recurrent/kernels.h"

#include <algorithm>
#include <optional>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/kernels/host_array.h"
#include "pleat/core/parallel/parallel_steps.h"
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

/// Products with one matrix, step by step. On the CPU it is packed once for all of them, where they are many.
template <class T>
class StepProducts {
 public:
  /// The matrix is [width, gates], or the transpose of one that is row-major; not read where it is packed.
  StepProducts(const RecurrentProblem& p, const Tensor& matrix, const FrozenLinear* packed = nullptr)
      : p_(p), matrix_(matrix) {
    // Of one row a product takes little longer from where the matrix lies.
    const int64_t fewest_steps = p.batch == 1 ? 16 : 4;
    const bool pays = packed != nullptr || p.steps >= fewest_steps;
    if (matrix.device().is_cuda() || !pays || p.batch == 0 || matrix.numel() == 0) return;
    const bool is_transposed = matrix.strides()[1] != 1;
    product_ = {.m = p.batch,
                .n = matrix.size(1),
                .k = matrix.size(0),
                .lda = matrix.size(0),
                .ldb = matrix.strides()[is_transposed ? 1 : 0],
                .transpose_b = is_transposed,
                .ldc = matrix.size(1)};
    if (packed != nullptr) {
      panels_ = packed->panels<T>();
      return;
    }
    product_.b = matrix.data<T>();
    panels_.emplace(product_);
    parallel_for(0, panels_->count(), 8,
                 [&](int64_t first, int64_t last) { panels_->pack(product_, first, last - first); });
  }
  bool is_packed() const { return panels_.has_value(); }

  /// out = a matrix (+ out).
  void run(const Tensor& out, const Tensor& a, bool accumulate) const {
    multiply_batches<T>(p_.op, out, a, matrix_, 1, accumulate);
  }
  /// The same from the packed matrix, of some rows, and of columns from the first one of a panel on.
  void run(T* out, const T* a, bool accumulate, int64_t row, int64_t rows, int64_t column,
           int64_t columns) const {
    Gemm<T> product = product_;
    product.a = a;
    product.c = out;
    product.accumulate = accumulate;
    multiply_panels(block_of(product, row, rows, column, columns), panels_->from(column));
  }

 private:
  const RecurrentProblem& p_;
  Tensor matrix_;
  Gemm<T> product_;
  std::optional<ColumnPanels<T>> panels_;
};

/// What the CPU's threads share of every step: blocks of units, whose part of the matrix then stays in a
/// thread's cache, and of sequences where units are too few.
class Parts {
 public:
  /// `unit_step`: what a block of units is a multiple of.
  Parts(const RecurrentProblem& p, Device device, int64_t gates, int64_t unit_step) : p_(p) {
    constexpr int64_t least_products = 1 << 15;  // of a step; less than meeting after it takes
    const int64_t products = p.batch * p.width * p.width * gates;
    const int64_t wanted =
        device.is_cuda() ? 1 : std::clamp<int64_t>(products / least_products, 1, num_threads());
    const int64_t unit_blocks =
        p.width % unit_step == 0 ? std::clamp<int64_t>(wanted, 1, p.width / unit_step) : 1;
    units_ = round_up(ceil_div(p.width, unit_blocks), unit_step);
    across_ = ceil_div(p.width, units_);
    rows_ = std::max<int64_t>(ceil_div(p.batch, std::max<int64_t>(wanted / across_, 1)), 1);
  }
  int64_t count() const { return across_ * ceil_div(p_.batch, rows_); }
  RecurrentPart operator[](int64_t i) const {
    const int64_t row = i / across_ * rows_, first = i % across_ * units_;
    return {row, std::min(rows_, p_.batch - row), first, std::min(units_, p_.width - first)};
  }

 private:
  const RecurrentProblem& p_;
  int64_t units_ = 0, across_ = 0, rows_ = 0;
};

}  // namespace

RecurrentStates recurrent_forward(const RecurrentProblem& p, const RecurrentOperands& operands, bool keep,
                                  const FrozenLinear* packed) {
  const NoGrad off_the_tape;
  const auto& [projected, w_hh, b_hh, h, c] = operands;
  const Device device = projected.device();
  const TensorOptions options{.dtype = p.compute, .device = device};
  const Tensor x = dense(p, projected);
  const Tensor weight = transpose(packed == nullptr ? dense(p, w_hh) : w_hh, 0, 1);
  const Tensor bias = b_hh.defined() ? dense(p, b_hh) : zeros({w_hh.size(0)}, options);
  RecurrentStates states{.h = states_from(p, h, options), .c = {}, .kept = {}};
  if (p.cell == RecurrentCell::lstm) states.c = states_from(p, c, options);
  const int64_t kept = with_cell(p.cell, []<class Cell>(Cell) { return Cell::kept; });
  if (keep) states.kept = empty({p.steps, p.batch, kept * p.width}, options);
  const Tensor product = empty({p.batch, w_hh.size(0)}, options);
  std::optional<HostArray<int64_t>> lengths;
  if (!p.lengths.empty()) lengths.emplace(p.lengths, device);
  dispatch_floating(p.op, p.compute, [&]<class T>(Type<T>) {
    const StepProducts<T> products(p, weight, packed);
    const int64_t gates = w_hh.size(0) / p.width;
    const Parts parts(p, device, gates, panel_columns<T>);
    const auto elements = [&](int64_t t, const RecurrentPart& part) {
      forward_elements(p, t, part, lengths ? lengths->data() : nullptr, x, product, bias, states);
    };
    if (products.is_packed())
      return parallel_steps(p.steps, parts.count(), [&](int64_t i, int64_t chunk) {
        const int64_t t = p.step(i);
        const RecurrentPart part = parts[chunk];
        const T* const before = states.h.data<T>() + p.before(t) * p.batch * p.width;
        const auto multiply = [&](int64_t column, int64_t columns) {
          products.run(product.data<T>(), before, false, part.row, part.rows, column, columns);
        };
        if (part.units == p.width) multiply(0, gates * p.width);
        for (int64_t k = 0; part.units < p.width && k < gates; ++k)
          multiply(k * p.width + part.first, part.units);
        elements(t, part);
      });
    for (int64_t i = 0; i < p.steps; ++i) {
      const int64_t t = p.step(i);
      products.run(product, select(states.h, 0, p.before(t)), false);
      parallel_chunks(parts.count(), [&](int64_t chunk) { elements(t, parts[chunk]); });
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
    const Parts parts(p, device, columns / p.width, panel_columns<T>);
    const auto elements = [&](int64_t t, const RecurrentPart& part) {
      backward_elements(p, t, part, lengths ? lengths->data() : nullptr, states, d_output, d_h, d_c,
                        d_projected, d_product);
    };
    if (products.is_packed())
      return parallel_steps(2 * p.steps, parts.count(), [&](int64_t i, int64_t chunk) {
        const int64_t t = p.step(p.steps - 1 - i / 2);
        const RecurrentPart part = parts[chunk];
        if (i % 2 == 0) return elements(t, part);
        products.run(d_h.data<T>(), d_product.data<T>() + t * p.batch * columns, true, part.row, part.rows,
                     part.first, part.units);
      });
    for (int64_t i = p.steps; i-- > 0;) {
      const int64_t t = p.step(i);
      parallel_chunks(parts.count(), [&](int64_t chunk) { elements(t, parts[chunk]); });
      products.run(d_h, select(d_product, 0, t), true);
    }
  });
  const int64_t rows = p.steps * p.batch;
  const Tensor before = reshape(narrow(states.h, 0, p.reverse ? 1 : 0, p.steps), {rows, p.width});
  const Tensor flat = reshape(d_product, {rows, columns});
  return {d_projected, matmul(transpose(flat, 0, 1), before), reduce_sum(flat, {0}), d_h, d_c};
}

}  // namespace pleat::ops
