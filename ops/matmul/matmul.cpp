#include "pleat/ops/matmul/matmul.h"

#include <algorithm>
#include <optional>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/core/grid.h"
#include "pleat/core/record_function.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/device_gemm.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

/// Calls `f(Type<T>{})` with the type of the operands of a product of `dtype`: int64_t, float or double, and
/// on a grid also the half types, whose products are summed in float. The CPU widens those first.
template <class F>
decltype(auto) dispatch_product(const char* op, DType dtype, Device device, F&& f) {
  check<DTypeError>(dtype != boolean, "{}: needs numbers, got bool; convert it with to(int64)", op);
  if (is_half(dtype) && uses_grid(device)) return dtype == float16 ? f(Type<Half>{}) : f(Type<BFloat16>{});
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

/// The distance of one matrix to the next of a tensor [batch..., rows, columns], where all are equal.
std::optional<int64_t> matrix_step(const Tensor& x) {
  int64_t matrices = 1;
  int64_t step = 0;
  for (std::size_t d = x.shape().size() - 2; d-- > 0;) {
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
  return uses_grid(x.device()) && overlaps ? to_format(x, MemoryFormat::contiguous) : x;
}

/// The type in which products of T are summed.
template <class T>
using Sum = typename Gemm<T>::Scale;

/// out[i] = alpha a[i] b[i] (+ out[i]) for tensors [batch..., rows, columns] of one batch shape: `out` of
/// type Out and row-major, the others of type T.
template <class T, class Out = T>
void multiply_batches(const char* op, const Tensor& out, const Tensor& a_any, const Tensor& b_any,
                      Sum<T> alpha, bool accumulate) {
  if (out.numel() == 0) return;
  if (!matrix_step(a_any) || !matrix_step(b_any)) {
    for (int64_t i = 0; i < out.size(0); ++i)
      multiply_batches<T, Out>(op, select(out, 0, i), select(a_any, 0, i), select(b_any, 0, i), alpha,
                               accumulate);
    return;
  }
  const Tensor a = without_overlap(a_any);
  const Tensor b = without_overlap(b_any);
  const Layout layout_a = *find_layout(a);
  const Layout layout_b = *find_layout(b);
  const int64_t m = out.size(-2);
  const int64_t n = out.size(-1);
  device_gemm(op, out.device(),
              GemmBatch<T, Out>{.first = {.m = m,
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
                                          .alpha = alpha},
                                .batch = out.numel() / (m * n),
                                .a_step = *matrix_step(a),
                                .b_step = *matrix_step(b),
                                .c_step = m * n});
}

Shape batch_shape(const Tensor& x) { return Shape(x.shape().begin(), x.shape().end() - 2); }

Shape with_matrix(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
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

/// Of sums of k products each.
RangeDetails product_details(const Tensor& out, int64_t k) {
  if (!is_floating(out.dtype())) return {.implementation = "native"};
  return {.implementation = out.device().is_cuda() ? "cublas" : "eigen",
          .flops = 2 * static_cast<double>(out.numel()) * static_cast<double>(k)};
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options) {
  const RecordOp range("matmul", a, b);
  const PrecisionScope scope(options.precision.value_or(float32_precision()));
  check<ShapeError>(
      a.rank() >= 1 && b.rank() >= 1,
      "matmul: needs vectors, matrices or batches of matrices, got {} and {}; numbers multiply with *",
      a.shape(), b.shape());
  const Tensor left = a.rank() == 1 ? unsqueeze(a, 0) : a;
  const Tensor right = b.rank() == 1 ? unsqueeze(b, 1) : b;
  check<ShapeError>(
      left.size(-1) == right.size(-2),
      "matmul: the last size of the left and the {} of the right must be equal, got {} and {}: {} and {}",
      b.rank() == 1 ? "size" : "last but one", a.shape(), b.shape(), left.size(-1), right.size(-2));
  broadcast(batch_shape(left), batch_shape(right), "matmul");
  check_one_device("matmul", a, b);
  const DType dtype = promote(a.dtype(), b.dtype());
  const Tensor out = dispatch_product("matmul", dtype, a.device(), [&]<class T>(Type<T>) {
    return cast(multiply_matrices<T>(left, right), dtype);
  });
  range.details([&] { return product_details(out, left.size(-1)); });
  Shape shape = batch_shape(out);
  if (a.rank() > 1) shape.push_back(out.size(-2));
  if (b.rank() > 1) shape.push_back(out.size(-1));
  return view(out, std::move(shape));
}

Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, AddmmOptions options) {
  const RecordOp range("addmm", input, a, b);
  const PrecisionScope scope(options.precision.value_or(float32_precision()));
  check<ShapeError>(a.rank() == 2 && b.rank() == 2, "addmm: needs two matrices, got {} and {}", a.shape(),
                    b.shape());
  check<ShapeError>(a.size(1) == b.size(0), "addmm: [m, k] and [k, n] must have one k, got {} and {}",
                    a.shape(), b.shape());
  const Shape shape = {a.size(0), b.size(1)};
  check<ShapeError>(broadcast(input.shape(), shape, "addmm") == shape,
                    "addmm: the input {} does not broadcast to the product's {}", input.shape(), shape);
  check_one_device("addmm", a, b);
  check_one_device("addmm", a, input);
  const DType dtype = promote(input.dtype(), promote(a.dtype(), b.dtype()));
  check<DTypeError>(is_floating(dtype) || (options.beta.kind() != float64 && options.alpha.kind() != float64),
                    "addmm: beta and alpha must be integers for tensors of {}", dtype);
  return dispatch_product("addmm", dtype, a.device(), [&]<class T>(Type<T>) {
    constexpr DType summed = dtype_of<Sum<T>>();
    const Tensor out = empty(shape, {.dtype = summed, .device = a.device()});
    const auto beta = options.beta.to<Sum<T>>();
    if (beta == Sum<T>(1))
      copy_into(out, input);
    else if (beta != Sum<T>(0))
      multiply_into(out, input, full({}, options.beta, {.dtype = summed, .device = input.device()}));
    multiply_batches<T, Sum<T>>("addmm", out, readable(cast(a, dtype_of<T>())),
                                readable(cast(b, dtype_of<T>())), options.alpha.to<Sum<T>>(),
                                beta != Sum<T>(0));
    range.details([&] { return product_details(out, a.size(1)); });
    return cast(out, dtype);
  });
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, MatmulOptions options) {
  const RecordOp range("linear", x, weight, bias);
  const PrecisionScope scope(options.precision.value_or(float32_precision()));
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
  DType dtype = promote(x.dtype(), weight.dtype());
  if (bias.defined()) dtype = promote(dtype, bias.dtype());
  Shape shape = x.shape();
  shape.back() = weight.size(0);
  const int64_t rows = count(std::span(shape).first(shape.size() - 1));
  return dispatch_product("linear", dtype, x.device(), [&]<class T>(Type<T>) {
    const Tensor out = empty({rows, weight.size(0)}, {.dtype = dtype_of<T>(), .device = x.device()});
    if (bias.defined()) copy_into(out, bias);
    const Tensor flat = reshape(x, {rows, weight.size(1)});
    multiply_batches<T>("linear", out, readable(cast(flat, dtype_of<T>())),
                        readable(transpose(cast(weight, dtype_of<T>()), 0, 1)), 1, bias.defined());
    range.details([&] { return product_details(out, weight.size(1)); });
    return cast(view(out, shape), dtype);
  });
}

}  // namespace pleat::ops
