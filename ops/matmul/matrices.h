// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/matmul/gemm.h"
#include "pleat/ops/shape/shape.h"

/// Products of the matrices in tensors: how these lie, and one product, or many, for gemm and cuBLAS.

namespace pleat::ops {

/// Calls `f(Type<T>{})` with the type of the operands of a product of `dtype`: int64_t, float or double, and
/// the half types, whose products are summed in float, as they are on CUDA and bfloat16 where the processor
/// multiplies it. Else they become float first.
template <class F>
decltype(auto) dispatch_product(const char* op, DType dtype, Device device, F&& f) {
  check<DTypeError>(dtype != boolean, "{}: needs numbers, got bool; convert it with to(int64)", op);
  if constexpr (with_cuda)
    if (is_half(dtype) && device.is_cuda()) return dtype == float16 ? f(Type<Half>{}) : f(Type<BFloat16>{});
  if (dtype == bfloat16 && multiplies_bfloat16()) return f(Type<BFloat16>{});
  if (dtype == float64) return f(Type<double>{});
  if (is_floating(dtype)) return f(Type<float>{});
  return f(Type<int64_t>{});
}

/// How gemm reads the last two dimensions of a tensor.
struct Layout {
  int64_t leading;
  bool transposed;
};

inline std::optional<Layout> find_layout(const Tensor& x) {
  const auto rank = x.shape().size();
  const int64_t rows = x.shape()[rank - 2];
  const int64_t columns = x.shape()[rank - 1];
  const int64_t row_step = x.strides()[rank - 2];
  const int64_t column_step = x.strides()[rank - 1];
  if (x.numel() == 0) return Layout{columns, false};  // the strides of nothing mean nothing
  if ((columns == 1 || column_step == 1) && row_step >= 0) return Layout{row_step, false};
  if ((rows == 1 || row_step == 1) && column_step >= 0) return Layout{column_step, true};
  return std::nullopt;
}

/// `x` or a copy that gemm can read.
inline Tensor readable(const Tensor& x) {
  return find_layout(x) ? x : to_format(x, MemoryFormat::contiguous);
}

/// The distance of one matrix, or row, to the next along the dimensions [first, last) of a tensor, where all
/// are equal.
inline std::optional<int64_t> even_step(const Tensor& x, std::size_t first, std::size_t last) {
  int64_t before = 1;
  int64_t step = 0;
  for (std::size_t d = last; d-- > first;) {
    if (x.shape()[d] == 1) continue;
    if (before == 1)
      step = x.strides()[d];
    else if (x.strides()[d] != step * before)
      return std::nullopt;
    before *= x.shape()[d];
  }
  return step;
}

/// cuBLAS, other than Eigen, takes no matrix whose rows share elements, as those of an expanded one do.
inline Tensor without_overlap(const Tensor& x) {
  const Layout layout = *find_layout(x);
  const bool overlaps = layout.leading < x.size(layout.transposed ? -2 : -1);
  return x.device().is_cuda() && overlaps ? to_format(x, MemoryFormat::contiguous) : x;
}

/// The type in which products of T are summed.
template <class T>
using Sum = typename Gemm<T>::Scale;

/// How the matrices of one operand, whose sums run over `k`, lie as one matrix of all terms, if they do.
inline std::optional<Layout> joined_layout(Layout one, bool leading_is_k, int64_t k, int64_t others,
                                           int64_t step) {
  if (step == (leading_is_k ? k * one.leading : k)) return one;
  // Columns, or rows, of one element each: the distance of the terms takes the place of their leading
  // dimension.
  if (k == 1 && step >= others && (leading_is_k || one.leading == 1 || others == 1))
    return Layout{step, leading_is_k ? one.transposed : !one.transposed};
  return std::nullopt;
}

/// A product whose terms lie beside one another becomes one of a larger k.
template <class T, class Out>
void join_terms(Gemm<T, Out>& p) {
  if (p.terms == 1) return;
  const auto a = joined_layout({p.lda, p.transpose_a}, p.transpose_a, p.k, p.m, p.a_term_step);
  const auto b = joined_layout({p.ldb, p.transpose_b}, !p.transpose_b, p.k, p.n, p.b_term_step);
  if (!a || !b) return;
  p.k *= p.terms;
  p.terms = 1;
  p.lda = a->leading;
  p.transpose_a = a->transposed;
  p.ldb = b->leading;
  p.transpose_b = b->transposed;
}

template <class T, class Out>
void add_up_slices(const char* op, const Tensor& out, const Tensor& a, const Tensor& b, Sum<T> alpha,
                   bool accumulate);

/// out[i] = alpha sum over j of a[i, j] b[i, j] (+ out[i]) for tensors out [batch..., m, n] of type Out,
/// row-major; a [batch..., terms..., m, k] and b [batch..., terms..., k, n] of type T, with any number of
/// dimensions of terms, at least one term. Of a single product, on the CPU, `start` is what is added, of type
/// Out, with dense rows, and `finish` what is done with the sums.
template <class T, class Out = T>
void multiply_batches(const char* op, const Tensor& out, const Tensor& a_any, const Tensor& b_any,
                      Sum<T> alpha, bool accumulate, const Tensor& start = {},
                      const Finish<Out>* finish = nullptr) {
  if (out.numel() == 0) return;
  const std::size_t batch_rank = out.shape().size() - 2;
  const std::size_t terms_end = a_any.shape().size() - 2;
  const auto even = [&](std::size_t first, std::size_t last) {
    return even_step(a_any, first, last) && even_step(b_any, first, last);
  };
  if (!even(0, batch_rank)) {
    for (int64_t i = 0; i < out.size(0); ++i)
      multiply_batches<T, Out>(op, select(out, 0, i), select(a_any, 0, i), select(b_any, 0, i), alpha,
                               accumulate);
    return;
  }
  if (!even(batch_rank, terms_end)) {
    const auto dim = static_cast<int64_t>(batch_rank);
    for (int64_t i = 0; i < a_any.size(dim); ++i)
      multiply_batches<T, Out>(op, out, select(a_any, dim, i), select(b_any, dim, i), alpha,
                               accumulate || i > 0);
    return;
  }
  const Tensor a = without_overlap(a_any);
  const Tensor b = without_overlap(b_any);
  const Layout layout_a = *find_layout(a);
  const Layout layout_b = *find_layout(b);
  const int64_t m = out.size(-2);
  const int64_t n = out.size(-1);
  const int64_t batch = out.numel() / (m * n);
  GemmBatch<T, Out> products{
      .first = {.m = m,
                .n = n,
                .k = a.size(-1),
                .a = a.data<T>(),
                .lda = layout_a.leading,
                .transpose_a = layout_a.transposed,
                .b = b.data<T>(),
                .ldb = layout_b.leading,
                .transpose_b = layout_b.transposed,
                .c = out.data<Out>(),
                .ldc = n,
                .accumulate = accumulate,
                .alpha = alpha,
                .terms = count(std::span(a.shape()).subspan(batch_rank, terms_end - batch_rank)),
                .a_term_step = *even_step(a, batch_rank, terms_end),
                .b_term_step = *even_step(b, batch_rank, terms_end),
                .start = start.defined() ? start.data<Out>() : nullptr,
                .start_row = start.defined() ? start.strides()[0] : 0,
                .finish = finish},
      .batch = batch,
      .a_step = *even_step(a, 0, batch_rank),
      .b_step = *even_step(b, 0, batch_rank),
      .c_step = m * n};
  join_terms(products.first);
  // cuBLAS adds nothing up but along k, and a launch for each term is too much where terms are many.
  if (out.device().is_cuda() && dtype_of<T>() != int64 && products.first.terms > batch)
    return add_up_slices<T, Out>(op, out, a, b, alpha, accumulate);
  if constexpr (with_cuda)
    if (out.device().is_cuda()) return cublas_gemm(op, out.device(), products);
  if constexpr (dtype_of<T>() != float16) batched_gemm(products);
}

/// multiply_batches with the terms copied beside one another, as many at a time as fit a GPU's second-level
/// cache.
template <class T, class Out>
void add_up_slices(const char* op, const Tensor& out, const Tensor& a, const Tensor& b, Sum<T> alpha,
                   bool accumulate) {
  if (out.rank() > 2) {
    for (int64_t i = 0; i < out.size(0); ++i)
      add_up_slices<T, Out>(op, select(out, 0, i), select(a, 0, i), select(b, 0, i), alpha, accumulate);
    return;
  }
  constexpr int64_t bytes_of_slice = int64_t{24} << 20;
  const std::size_t terms_end = a.shape().size() - 2;
  const int64_t terms = count(std::span(a.shape()).first(terms_end));
  const auto one_dimension = [&](const Tensor& x) {
    return x.as_strided({terms, x.size(-2), x.size(-1)},
                        {*even_step(x, 0, terms_end), x.strides()[terms_end], x.strides()[terms_end + 1]},
                        x.offset());
  };
  const Tensor left = permute(one_dimension(a), {1, 0, 2});
  const Tensor right = one_dimension(b);
  const int64_t m = a.size(-2);
  const int64_t n = b.size(-1);
  const int64_t k = a.size(-1);
  const int64_t bytes = (m + n) * k * static_cast<int64_t>(sizeof(T));
  const int64_t slice = std::clamp<int64_t>(bytes_of_slice / std::max<int64_t>(bytes, 1), 1, terms);
  for (int64_t first = 0; first < terms; first += slice) {
    const int64_t size = std::min(slice, terms - first);
    multiply_batches<T, Out>(op, out, readable(reshape(narrow(left, 1, first, size), {m, size * k})),
                             readable(reshape(narrow(right, 0, first, size), {size * k, n})), alpha,
                             accumulate || first > 0);
  }
}

/// out = input + alpha a b for matrices; `input` broadcasts to `out`. On the CPU it is read as the product
/// begins, where it lies; cuBLAS adds to what stands in `out`.
template <class T, class Out>
void multiply_from(const char* op, const Tensor& out, const Tensor& input, const Tensor& a, const Tensor& b,
                   Sum<T> alpha, const Finish<Out>* finish = nullptr) {
  if (out.device().is_cuda()) {
    copy_into(out, input);
    return multiply_batches<T, Out>(op, out, a, b, alpha, true);
  }
  const bool is_row = input.rank() < 2 || input.size(0) == 1;
  Tensor start = cast(input, dtype_of<Out>());
  const bool dense =
      input.rank() > 0 && input.size(-1) == out.size(1) && (start.strides().back() == 1 || out.size(1) == 1);
  if (!dense)
    start = to_format(expand(start, is_row ? Shape{1, out.size(1)} : out.shape()), MemoryFormat::contiguous);
  multiply_batches<T, Out>(op, out, a, b, alpha, false, expand(start, out.shape()), finish);
}

}  // namespace pleat::ops
