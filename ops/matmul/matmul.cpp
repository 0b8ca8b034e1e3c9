#include "pleat/ops/matmul/matmul.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/matmul/batched_gemm.h"
#include "pleat/ops/matmul/element_function.h"
#include "pleat/ops/matmul/matmul_sum_to.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

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

void check_one_device(const char* op, const Tensor& a, const Tensor& b) {
  check<DeviceError>(a.device() == b.device(), "{}: all tensors must be on one device, got {} and {}", op,
                     a.device(), b.device());
}

/// How gemm reads the last two dimensions of a tensor.
struct Layout {
  int64_t leading;
  bool transposed;
};

std::optional<Layout> find_layout(const Tensor& x) {
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
Tensor readable(const Tensor& x) { return find_layout(x) ? x : to_format(x, MemoryFormat::contiguous); }

/// [..., m, k] as one matrix [... * m, k], where strides allow it.
std::optional<Tensor> fold_rows(const Tensor& x) {
  const auto rank = x.shape().size();
  int64_t rows = 1;
  int64_t step = x.shape()[rank - 1];
  for (std::size_t d = rank - 1; d-- > 0;) {
    if (x.shape()[d] == 1) continue;
    if (rows == 1)
      step = x.strides()[d];
    else if (x.strides()[d] != step * rows)
      return std::nullopt;
    rows *= x.shape()[d];
  }
  return x.as_strided({rows, x.shape()[rank - 1]}, {step, x.strides()[rank - 1]}, x.offset());
}

/// The distance of one matrix to the next along the dimensions [first, last) of a tensor, where all are
/// equal.
std::optional<int64_t> matrix_step(const Tensor& x, std::size_t first, std::size_t last) {
  int64_t matrices = 1;
  int64_t step = 0;
  for (std::size_t d = last; d-- > first;) {
    if (x.shape()[d] == 1) continue;
    if (matrices == 1)
      step = x.strides()[d];
    else if (x.strides()[d] != step * matrices)
      return std::nullopt;
    matrices *= x.shape()[d];
  }
  return step;
}

/// cuBLAS, other than Eigen, takes no matrix whose rows share elements, as those of an expanded one do.
Tensor without_overlap(const Tensor& x) {
  const Layout layout = *find_layout(x);
  const bool overlaps = layout.leading < x.size(layout.transposed ? -2 : -1);
  return x.device().is_cuda() && overlaps ? to_format(x, MemoryFormat::contiguous) : x;
}

/// The type in which products of T are summed.
template <class T>
using Sum = typename Gemm<T>::Scale;

/// How the matrices of one operand, whose sums run over `k`, lie as one matrix of all terms, if they do.
std::optional<Layout> joined_layout(Layout one, bool leading_is_k, int64_t k, int64_t others, int64_t step) {
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
    return matrix_step(a_any, first, last) && matrix_step(b_any, first, last);
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
                .a_term_step = *matrix_step(a, batch_rank, terms_end),
                .b_term_step = *matrix_step(b, batch_rank, terms_end),
                .start = start.defined() ? start.data<Out>() : nullptr,
                .start_row = start.defined() ? start.strides()[0] : 0,
                .finish = finish},
      .batch = batch,
      .a_step = *matrix_step(a, 0, batch_rank),
      .b_step = *matrix_step(b, 0, batch_rank),
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
                        {*matrix_step(x, 0, terms_end), x.strides()[terms_end], x.strides()[terms_end + 1]},
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

Shape batch_shape(const Tensor& x) { return Shape(x.shape().begin(), x.shape().end() - 2); }

Shape with_matrix(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
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

/// Of sums of k products of `dtype` each.
RangeDetails product_details(DType dtype, const Tensor& out, int64_t k) {
  if (!is_floating(out.dtype())) return {.implementation = "native"};
  const bool is_pairwise = dtype == bfloat16 && multiplies_bfloat16();
  return {.implementation = out.device().is_cuda() ? "cublas"
                            : is_pairwise          ? "avx512_bf16"
                                                   : "native",
          .flops = 2 * static_cast<double>(out.numel()) * static_cast<double>(k)};
}

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check<ShapeError>(weight.rank() == 2, "linear: the weight must be [out, in], got {}", weight.shape());
  check<ShapeError>(
      x.rank() >= 1 && x.size(-1) == weight.size(1),
      "linear: the last size of the input must be {}, the second of the weight {}, got an input {}",
      weight.size(1), weight.shape(), x.shape());
  check<ShapeError>(!bias.defined() || (bias.rank() == 1 && bias.size(0) == weight.size(0)),
                    "linear: the bias must be [{}], the first size of the weight {}, got {}", weight.size(0),
                    weight.shape(), bias.defined() ? bias.shape() : Shape());
  check_one_device("linear", x, weight);
  if (bias.defined()) check_one_device("linear", x, bias);
  check_one_type("linear", "input", x, "weight", weight);
  if (bias.defined()) check_one_type("linear", "input", x, "bias", bias);
}

/// out [rows, weight's] = x weight^T (+ bias).
template <class T>
void multiply_linear(const Tensor& out, const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const Finish<T>* finish = nullptr) {
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
  Apply(const ElementFunction& function, const T* from, T* to) : f(function), sums(from), y(to) {}
  void run(T* c, int64_t n) const override { f.run(y + (c - sums), c, n); }

  const ElementFunction& f;
  const T* sums;
  T* y;
};

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options) {
  const RecordOp range("matmul", a, b);
  const PrecisionScope scope(options.precision);
  check<ShapeError>(
      a.rank() >= 1 && b.rank() >= 1,
      "matmul: needs vectors, matrices or batches of matrices, got {} and {}; numbers multiply with *",
      a.shape(), b.shape());
  const Tensor left = a.rank() == 1 ? unsqueeze(a, 0) : a;
  const Tensor right = b.rank() == 1 ? unsqueeze(b, 1) : b;
  check<ShapeError>(left.size(-1) == right.size(-2),
                    "matmul: the last size of the left and the {} of the right must be equal, got {} and {}: "
                    "{} and {}; transpose(x, -2, -1) turns a matrix around",
                    b.rank() == 1 ? "size" : "last but one", a.shape(), b.shape(), left.size(-1),
                    right.size(-2));
  broadcast(batch_shape(left), batch_shape(right), "matmul");
  check_one_device("matmul", a, b);
  check_one_type("matmul", "the left", a, "the right", b);
  const DType dtype = a.dtype();
  const Tensor out = dispatch_product("matmul", dtype, a.device(), [&]<class T>(Type<T>) {
    return cast(multiply_matrices<T>(left, right), dtype);
  });
  range.details([&] { return product_details(dtype, out, left.size(-1)); });
  Shape shape = batch_shape(out);
  if (a.rank() > 1) shape.push_back(out.size(-2));
  if (b.rank() > 1) shape.push_back(out.size(-1));
  return view(out, std::move(shape));
}

Tensor matmul_sum_to(const Tensor& a, const Tensor& b, const Shape& shape, MatmulOptions options) {
  check<ShapeError>(a.rank() >= 2 && b.rank() >= 2 && a.size(-1) == b.size(-2),
                    "matmul_sum_to: needs [..., m, k] and [..., k, n], got {} and {}", a.shape(), b.shape());
  const Shape product =
      with_matrix(broadcast(batch_shape(a), batch_shape(b), "matmul_sum_to"), a.size(-2), b.size(-1));
  check<ShapeError>(shape.size() <= product.size() && broadcast(shape, product, "matmul_sum_to") == product,
                    "matmul_sum_to: {} cannot come from {} by broadcasting", product, shape);
  Shape kept = product;  // with the sizes of `shape`, and as many dimensions as the product
  std::fill(kept.begin(), kept.end() - 2, 1);
  std::copy(shape.begin(), shape.end(), kept.end() - static_cast<std::ptrdiff_t>(shape.size()));
  if (kept == product) return view(matmul(a, b, options), shape);
  const RecordOp range("matmul_sum_to", a, b);
  const PrecisionScope scope(options.precision);
  check_one_device("matmul_sum_to", a, b);
  check_one_type("matmul_sum_to", "the left", a, "the right", b);
  const DType dtype = a.dtype();
  if (count(product) == 0) return zeros(shape, {.dtype = dtype, .device = a.device()});
  return dispatch_product("matmul_sum_to", dtype, a.device(), [&]<class T>(Type<T>) {
    const Tensor sums = empty(kept, {.dtype = dtype_of<Sum<T>>(), .device = a.device()});
    add_up_products<T>(sums, a, b, product);
    range.details([&] { return product_details(dtype, sums, a.size(-1) * (count(product) / count(kept))); });
    return cast(view(sums, shape), dtype);
  });
}

Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, AddmmOptions options) {
  const RecordOp range("addmm", input, a, b);
  const PrecisionScope scope(options.precision);
  check<ShapeError>(a.rank() == 2 && b.rank() == 2, "addmm: needs two matrices, got {} and {}", a.shape(),
                    b.shape());
  check<ShapeError>(a.size(1) == b.size(0), "addmm: [m, k] and [k, n] must have one k, got {} and {}",
                    a.shape(), b.shape());
  const Shape shape = {a.size(0), b.size(1)};
  check<ShapeError>(broadcast(input.shape(), shape, "addmm") == shape,
                    "addmm: the input {} does not broadcast to the product's {}", input.shape(), shape);
  check_one_device("addmm", a, b);
  check_one_device("addmm", a, input);
  check_one_type("addmm", "the left", a, "the right", b);
  check_one_type("addmm", "input", input, "the left", a);
  const DType dtype = a.dtype();
  check<DTypeError>(is_floating(dtype) || (options.beta.kind() != float64 && options.alpha.kind() != float64),
                    "addmm: beta and alpha must be integers for tensors of {}", dtype);
  return dispatch_product("addmm", dtype, a.device(), [&]<class T>(Type<T>) {
    constexpr DType summed = dtype_of<Sum<T>>();
    const Tensor out = empty(shape, {.dtype = summed, .device = a.device()});
    const auto beta = options.beta.to<Sum<T>>();
    const auto alpha = options.alpha.to<Sum<T>>();
    const Tensor left = readable(cast(a, dtype_of<T>()));
    const Tensor right = readable(cast(b, dtype_of<T>()));
    if (beta == Sum<T>(1)) {
      multiply_from<T, Sum<T>>("addmm", out, input, left, right, alpha);
    } else {
      if (beta != Sum<T>(0))
        multiply_into(out, input, full({}, options.beta, {.dtype = summed, .device = input.device()}));
      multiply_batches<T, Sum<T>>("addmm", out, left, right, alpha, beta != Sum<T>(0));
    }
    range.details([&] { return product_details(dtype, out, a.size(1)); });
    return cast(out, dtype);
  });
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, MatmulOptions options) {
  const RecordOp range("linear", x, weight, bias);
  const PrecisionScope scope(options.precision);
  check_linear(x, weight, bias);
  const DType dtype = x.dtype();
  Shape shape = x.shape();
  shape.back() = weight.size(0);
  const int64_t rows = count(std::span(shape).first(shape.size() - 1));
  return dispatch_product("linear", dtype, x.device(), [&]<class T>(Type<T>) {
    const Tensor out = empty({rows, weight.size(0)}, {.dtype = dtype_of<T>(), .device = x.device()});
    multiply_linear<T>(out, x, weight, bias);
    range.details([&] { return product_details(dtype, out, weight.size(1)); });
    return cast(view(out, shape), dtype);
  });
}

LinearOutputs linear_with(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const MatmulOptions& options, const ElementFunction& f, bool keep_sums) {
  const RecordOp range("linear", x, weight, bias);
  const PrecisionScope scope(options.precision);
  check_linear(x, weight, bias);
  Shape shape = x.shape();
  shape.back() = weight.size(0);
  const int64_t rows = count(std::span(shape).first(shape.size() - 1));
  return dispatch_floating("linear", x.dtype(), [&]<class T>(Type<T>) {
    const Tensor sums = empty({rows, weight.size(0)}, {.dtype = dtype_of<T>()});
    const Tensor y = keep_sums ? empty_like(sums) : sums;
    const Apply<T> apply(f, sums.data<T>(), y.data<T>());
    multiply_linear<T>(sums, x, weight, bias, &apply);
    range.details([&] { return product_details(x.dtype(), sums, weight.size(1)); });
    return LinearOutputs{keep_sums ? view(sums, shape) : Tensor(), view(y, shape)};
  });
}

}  // namespace pleat::ops
