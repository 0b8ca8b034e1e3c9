#include "pleat/ops/matmul/kernels.h"

#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/trace.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/matmul/matrices.h"

namespace pleat::ops {
namespace {

/// [..., m, k] as one matrix [... * m, k], where strides allow it.
std::optional<Tensor> fold_rows(const Tensor& x) {
  const std::size_t last = x.shape().size() - 1;
  const auto step = even_step(x, 0, last);
  if (!step) return std::nullopt;
  const int64_t rows = count(std::span(x.shape()).first(last)), columns = x.shape()[last];
  return x.as_strided({rows, columns}, {rows == 1 ? columns : *step, x.strides()[last]}, x.offset());
}

Shape batch_shape(const Tensor& x) { return Shape(x.shape().begin(), x.shape().end() - 2); }

Shape with_matrix(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

/// Whether columns [..., m, 1] are multiplied with rows [..., 1, n]: elements of one each, without a sum.
template <class T>
bool are_outer_products(const Tensor& a) {
  return a.size(-1) == 1 && a.device().is_cpu() && (dtype_of<T>() == float32 || dtype_of<T>() == float64);
}

/// The product of tensors of rank 2 and more whose sizes fit.
template <class T>
Tensor multiply_matrices(const Tensor& a_any, const Tensor& b_any) {
  const Tensor a = readable(cast(a_any, dtype_of<T>()));
  const Tensor b = readable(cast(b_any, dtype_of<T>()));
  const int64_t m = a.size(-2);
  const int64_t n = b.size(-1);
  const Shape batch = broadcast(batch_shape(a), batch_shape(b), "matmul");
  const Tensor out = empty(with_matrix(batch, m, n), {.dtype = dtype_of<T>(), .device = a.device()});
  if (are_outer_products<T>(a)) {
    multiply_into(out, a, b);
    return out;
  }
  if (count(batch_shape(b)) == 1 && batch_shape(a) == batch) {
    const auto rows = fold_rows(a);
    if (rows && find_layout(*rows)) {
      const Tensor matrix =
          b.as_strided({b.size(-2), n}, {b.strides()[b.shape().size() - 2], b.strides().back()}, b.offset());
      multiply_batches<T>("matmul", view(out, {rows->size(0), n}), *rows, matrix, 1, false);
      return out;
    }
  }
  multiply_batches<T>("matmul", out, expand(a, with_matrix(batch, m, a.size(-1))),
                      expand(b, with_matrix(batch, b.size(-2), n)), 1, false);
  return out;
}

/// With leading dimensions of size 1.
Tensor with_rank(const Tensor& x, std::size_t rank) {
  Shape shape(rank - x.shape().size(), 1);
  shape.insert(shape.end(), x.shape().begin(), x.shape().end());
  return expand(x, shape);
}

/// [batch..., terms..., rows, columns]: the matrices of `x` in the dimensions named, which it has or which
/// stretch to the sizes of `product`.
Tensor with_batch(const Tensor& x, const std::vector<std::size_t>& batch,
                  const std::vector<std::size_t>& terms, const Shape& product) {
  Shape shape;
  Strides strides;
  for (const auto* dims : {&batch, &terms})
    for (const std::size_t d : *dims) {
      shape.push_back(product[d]);
      strides.push_back(x.shape()[d] == product[d] ? x.strides()[d] : 0);
    }
  for (std::size_t d = product.size() - 2; d < product.size(); ++d) {
    shape.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
  }
  return x.as_strided(std::move(shape), std::move(strides), x.offset());
}

/// matmul(a, b), of the shape `product`, summed into `out`, of as many dimensions. Where `out` has a size of
/// 1 and the product another, its dimension is summed.
template <class T>
void add_up_products(const Tensor& out, const Tensor& a_any, const Tensor& b_any, const Shape& product) {
  const Tensor a = readable(with_rank(cast(a_any, dtype_of<T>()), product.size()));
  const Tensor b = readable(with_rank(cast(b_any, dtype_of<T>()), product.size()));
  std::vector<std::size_t> batch;
  std::vector<std::size_t> terms;
  for (std::size_t d = 0; d < product.size() - 2; ++d)
    (out.shape()[d] == product[d] ? batch : terms).push_back(d);
  if (terms.empty() && are_outer_products<T>(a)) return multiply_into(out, a, b);
  multiply_batches<T, Sum<T>>("matmul_sum_to", with_batch(out, batch, {}, product),
                              with_batch(a, batch, terms, product), with_batch(b, batch, terms, product), 1,
                              false);
}

/// out [rows, weight's] = x weight^T (+ bias).
template <class T>
void multiply_linear(const Tensor& out, const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const Finish<T>* finish = nullptr) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto is_plain = [](const Tensor& t) {
      return t.dtype() == dtype_of<T>() && t.is_contiguous() && t.numel() > 0;
    };
    // As they mostly lie, operands need no tensors beside them.
    if (out.device().is_cpu() && is_plain(x) && is_plain(weight) && (!bias.defined() || is_plain(bias))) {
      const int64_t n = weight.size(0), k = weight.size(1);
      return gemm(Gemm<T>{.m = out.size(0),
                          .n = n,
                          .k = k,
                          .a = x.data<T>(),
                          .lda = k,
                          .b = weight.data<T>(),
                          .ldb = k,
                          .transpose_b = true,
                          .c = out.data<T>(),
                          .ldc = n,
                          .start = bias.defined() ? bias.data<T>() : nullptr,
                          .finish = finish});
    }
  }
  const Tensor flat = readable(cast(reshape(x, {out.size(0), weight.size(1)}), dtype_of<T>()));
  const Tensor columns = readable(transpose(cast(weight, dtype_of<T>()), 0, 1));
  if (bias.defined())
    multiply_from<T, T>("linear", out, bias, flat, columns, 1, finish);
  else
    multiply_batches<T>("linear", out, flat, columns, 1, false, {}, finish);
}

/// A function of elements from `sums` to the same places of `y`, which may be `sums`.
template <class T>
struct Apply : Finish<T> {
  Apply(const ElementFunction* function, const T* from, T* to) : f(function), sums(from), y(to) {}
  void run(T* c, int64_t n) const override { f->run(y + (c - sums), c, n); }

  const ElementFunction* f;
  const T* sums;
  T* y;
};

}  // namespace

RangeDetails product_details(DType dtype, const Tensor& out, int64_t k) {
  if (!is_floating(dtype)) return {.implementation = "native"};
  const bool is_pairwise = dtype == bfloat16 && multiplies_bfloat16();
  return {.implementation = out.device().is_cuda() ? "cublas"
                            : is_pairwise          ? "avx512_bf16"
                                                   : "native",
          .flops = 2 * static_cast<double>(out.numel()) * static_cast<double>(k)};
}

Tensor matmul_forward(const Tensor& a, const Tensor& b) {
  const NoGrad off_the_tape;
  const DType dtype = a.dtype();
  const Tensor out = dispatch_product("matmul", dtype, a.device(), [&]<class T>(Type<T>) {
    return cast(
        multiply_matrices<T>(a.rank() == 1 ? unsqueeze(a, 0) : a, b.rank() == 1 ? unsqueeze(b, 1) : b),
        dtype);
  });
  Shape shape = batch_shape(out);
  if (a.rank() > 1) shape.push_back(out.size(-2));
  if (b.rank() > 1) shape.push_back(out.size(-1));
  return view(out, std::move(shape));
}

Tensor matmul_sum_to(const Tensor& a, const Tensor& b, const Shape& shape) {
  const NoGrad off_the_tape;
  const Shape product =
      with_matrix(broadcast(batch_shape(a), batch_shape(b), "matmul_sum_to"), a.size(-2), b.size(-1));
  Shape kept = product;  // with the sizes of `shape`, and as many dimensions as the product
  std::fill(kept.begin(), kept.end() - 2, 1);
  std::copy(shape.begin(), shape.end(), kept.end() - static_cast<std::ptrdiff_t>(shape.size()));
  const TracedCall range(kept == product ? "matmul" : "matmul_sum_to", {a, b});
  const DType dtype = a.dtype();
  if (count(product) == 0) return zeros(shape, {.dtype = dtype, .device = a.device()});
  const Tensor y = kept == product
                       ? view(matmul_forward(a, b), shape)
                       : dispatch_product("matmul_sum_to", dtype, a.device(), [&]<class T>(Type<T>) {
                           const Tensor sums =
                               empty(kept, {.dtype = dtype_of<Sum<T>>(), .device = a.device()});
                           add_up_products<T>(sums, a, b, product);
                           return cast(view(sums, shape), dtype);
                         });
  range.details([&] { return product_details(dtype, y, a.size(-1) * (count(product) / count(kept))); });
  return y;
}

Tensor addmm_forward(const Tensor& input, const Tensor& a, const Tensor& b, const Number& given_beta,
                     const Number& given_alpha) {
  const NoGrad off_the_tape;
  const DType dtype = a.dtype();
  return dispatch_product("addmm", dtype, a.device(), [&]<class T>(Type<T>) {
    constexpr DType summed = dtype_of<Sum<T>>();
    const Tensor out = empty({a.size(0), b.size(1)}, {.dtype = summed, .device = a.device()});
    const auto beta = given_beta.to<Sum<T>>();
    const auto alpha = given_alpha.to<Sum<T>>();
    const Tensor left = readable(cast(a, dtype_of<T>()));
    const Tensor right = readable(cast(b, dtype_of<T>()));
    if (beta == Sum<T>(1)) {
      multiply_from<T, Sum<T>>("addmm", out, input, left, right, alpha);
    } else {
      if (beta != Sum<T>(0))
        multiply_into(out, input, full({}, given_beta, {.dtype = summed, .device = input.device()}));
      multiply_batches<T, Sum<T>>("addmm", out, left, right, alpha, beta != Sum<T>(0));
    }
    return cast(out, dtype);
  });
}

LinearOutputs linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                             const ElementFunction* f, bool keep_sums) {
  const NoGrad off_the_tape;
  const DType dtype = x.dtype();
  Shape shape = x.shape();
  shape.back() = weight.size(0);
  const int64_t rows = count(std::span(shape).first(shape.size() - 1));
  return dispatch_product("linear", dtype, x.device(), [&]<class T>(Type<T>) {
    const Tensor sums = empty({rows, weight.size(0)}, {.dtype = dtype_of<T>(), .device = x.device()});
    const Tensor y = keep_sums ? empty_like(sums) : sums;
    if constexpr (std::is_floating_point_v<T>) {
      const Apply<T> apply(f, sums.data<T>(), y.data<T>());
      multiply_linear<T>(sums, x, weight, bias, f == nullptr ? nullptr : &apply);
    } else {
      multiply_linear<T>(sums, x, weight, bias);
    }
    const auto shaped = [&](const Tensor& t) { return shape.size() == 2 ? t : view(t, shape); };
    return LinearOutputs{keep_sums ? shaped(sums) : Tensor(), cast(shaped(y), dtype)};
  });
}

}  // namespace pleat::ops
