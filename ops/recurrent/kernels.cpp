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

/// Row-major in the type in which it is multiplied.
Tensor multiplied(const RecurrentProblem& p, const Tensor& w_hh, bool rounded) {
  return rounded ? to_format(w_hh, MemoryFormat::contiguous) : dense(p, w_hh);
}

/// [L + 1, N, H] with the state at its place, or 0.
Tensor states_from(const RecurrentProblem& p, const Tensor& state, const TensorOptions& options) {
  const Tensor states = empty({p.steps + 1, p.batch, p.width}, options);
  const Tensor first = select(states, 0, p.first_state());
  state.defined() ? copy_into(first, state) : fill(first, 0);
  return states;
}

/// Whether products are of bfloat16, into float.
bool multiplies_rounded(const RecurrentProblem& p, const Tensor& w_hh) {
  return w_hh.dtype() == bfloat16 && w_hh.device().is_cpu() && multiplies_bfloat16() && p.batch > 0 &&
         p.width > 0;
}
/// f(type of operands of products, type of their results)
template <class F>
void dispatch_products(const RecurrentProblem& p, bool rounded, const F& f) {
  if (rounded) return f(Type<BFloat16>(), Type<float>());
  dispatch_floating(p.op, p.compute, [&](auto type) { f(type, type); });
}

/// The part of step t of x [steps, N, G H], rounded.
void round_part(const RecurrentProblem& p, const Tensor& x, const Tensor& rounded, int64_t t,
                const RecurrentPart& part, int64_t gates) {
  for (int64_t row = part.row; row < part.row + part.rows; ++row)
    for (int64_t k = 0; k < gates; ++k) {
      const int64_t first = ((t * p.batch + row) * gates + k) * p.width + part.first;
      const float* const from = x.data<float>() + first;
      BFloat16* const to = rounded.data<BFloat16>() + first;
      PLEAT_INDEPENDENT_ITERATIONS
      for (int64_t j = 0; j < part.units; ++j) to[j] = BFloat16(from[j]);
    }
}

/// Products with one matrix, step by step. On the CPU it is packed once for all of them, where they are many
/// or of bfloat16.
template <class T, class Out>
class StepProducts {
 public:
  /// The matrix is [width, gates], or the transpose of one that is row-major; not read where it is packed.
  StepProducts(const RecurrentProblem& p, const Tensor& matrix, const FrozenLinear* packed = nullptr)
      : p_(p), matrix_(matrix) {
    // Of one row a product takes little longer from where the matrix lies.
    const int64_t fewest_steps = p.batch == 1 ? 16 : 4;
    const bool pays = packed != nullptr || p.steps >= fewest_steps || !std::is_same_v<T, Out>;
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
    parallel_for(0, panels_->count(), ceil_div(256, panel_columns<T>),
                 [&](int64_t first, int64_t last) { panels_->pack(product_, first, last - first); });
  }
  bool is_packed() const { return panels_.has_value(); }

  /// out = a matrix (+ out).
  void run(const Tensor& out, const Tensor& a, bool accumulate) const {
    if constexpr (std::is_same_v<T, Out>) multiply_batches<T>(p_.op, out, a, matrix_, 1, accumulate);
  }
  /// The same from the packed matrix, of some rows, and of columns from the first one of a panel on.
  void run(Out* out, const T* a, bool accumulate, int64_t row, int64_t rows, int64_t column,
           int64_t columns) const {
    const Gemm<T>& of = product_;
    const Gemm<T, Out> product{.m = of.m,
                               .n = of.n,
                               .k = of.k,
                               .a = a,
                               .lda = of.lda,
                               .transpose_b = of.transpose_b,
                               .c = out,
                               .ldc = of.ldc,
                               .accumulate = accumulate};
    const Gemm<T, Out> part = block_of(product, row, rows, column, columns);
    if constexpr (std::is_same_v<T, Out>)
      multiply_panels(part, panels_->from(column));
    else
      gemm_serial(part, *panels_, column);
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
  const bool rounded = multiplies_rounded(p, w_hh);
  const Tensor x = dense(p, projected);
  const Tensor weight = transpose(packed == nullptr ? multiplied(p, w_hh, rounded) : w_hh, 0, 1);
  const Tensor bias = b_hh.defined() ? dense(p, b_hh) : zeros({w_hh.size(0)}, options);
  RecurrentStates states{.h = states_from(p, h, options), .c = {}, .kept = {}, .rounded = {}};
  if (rounded) states.rounded = states_from(p, h, {.dtype = bfloat16, .device = device});
  if (p.cell == RecurrentCell::lstm) states.c = states_from(p, c, options);
  const int64_t kept = with_cell(p.cell, []<class Cell>(Cell) { return Cell::kept; });
  if (keep) states.kept = empty({p.steps, p.batch, kept * p.width}, options);
  const Tensor product = empty({p.batch, w_hh.size(0)}, options);
  std::optional<HostArray<int64_t>> lengths;
  if (!p.lengths.empty()) lengths.emplace(p.lengths, device);
  const int64_t gates = w_hh.size(0) / p.width;
  dispatch_products(p, rounded, [&]<class T, class Out>(Type<T>, Type<Out>) {
    const StepProducts<T, Out> products(p, weight, packed);
    const Parts parts(p, device, gates, panel_columns<T>);
    const auto elements = [&](int64_t t, const RecurrentPart& part) {
      forward_elements(p, t, part, lengths ? lengths->data() : nullptr, x, product, bias, states);
      if (rounded) round_part(p, states.h, states.rounded, p.after(t), part, 1);
    };
    if (products.is_packed())
      return parallel_steps(p.steps, parts.count(), [&](int64_t i, int64_t chunk) {
        const int64_t t = p.step(i);
        const RecurrentPart part = parts[chunk];
        const T* const before =
            (rounded ? states.rounded : states.h).data<T>() + p.before(t) * p.batch * p.width;
        const auto multiply = [&](int64_t column, int64_t columns) {
          products.run(product.data<Out>(), before, false, part.row, part.rows, column, columns);
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
  const bool rounded = multiplies_rounded(p, w_hh);
  const Tensor d_output = dense(p, dy);
  const Tensor weight = multiplied(p, w_hh, rounded);
  const Tensor d_projected = empty({p.steps, p.batch, columns}, options);
  const Tensor d_h = copy(dense(p, dh));
  const Tensor d_c = states.c.defined() ? copy(dense(p, dc)) : Tensor();
  // Only gru's differ.
  const Tensor d_product = p.cell == RecurrentCell::gru ? empty_like(d_projected) : d_projected;
  const Tensor d_rounded =
      rounded ? empty(d_product.shape(), {.dtype = bfloat16, .device = device}) : d_product;
  std::optional<HostArray<int64_t>> lengths;
  if (!p.lengths.empty()) lengths.emplace(p.lengths, device);
  dispatch_products(p, rounded, [&]<class T, class Out>(Type<T>, Type<Out>) {
    const StepProducts<T, Out> products(p, weight);
    const int64_t gates = columns / p.width;
    const Parts parts(p, device, gates, panel_columns<T>);
    const auto elements = [&](int64_t t, const RecurrentPart& part) {
      backward_elements(p, t, part, lengths ? lengths->data() : nullptr, states, d_output, d_h, d_c,
                        d_projected, d_product);
      if (rounded) round_part(p, d_product, d_rounded, t, part, gates);
    };
    if (products.is_packed())
      return parallel_steps(2 * p.steps, parts.count(), [&](int64_t i, int64_t chunk) {
        const int64_t t = p.step(p.steps - 1 - i / 2);
        const RecurrentPart part = parts[chunk];
        if (i % 2 == 0) return elements(t, part);
        products.run(d_h.data<Out>(), d_rounded.data<T>() + t * p.batch * columns, true, part.row, part.rows,
                     part.first, part.units);
      });
    for (int64_t i = p.steps; i-- > 0;) {
      const int64_t t = p.step(i);
      parallel_chunks(parts.count(), [&](int64_t chunk) { elements(t, parts[chunk]); });
      products.run(d_h, select(d_product, 0, t), true);
    }
  });
  const int64_t rows = p.steps * p.batch;
  const Tensor before =
      reshape(narrow(rounded ? states.rounded : states.h, 0, p.reverse ? 1 : 0, p.steps), {rows, p.width});
  const Tensor d_weight = matmul(transpose(reshape(d_rounded, {rows, columns}), 0, 1), before);
  const Tensor d_bias = reduce_sum(reshape(d_product, {rows, columns}), {0});
  return {p.cell == RecurrentCell::gru ? d_projected : d_rounded, d_weight, d_bias, d_h, d_c};
}

}  // namespace pleat::ops
