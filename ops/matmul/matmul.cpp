#include "pleat/ops/matmul/matmul.h"

#include <algorithm>
#include <optional>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/core/parallel.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/gemm.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

/// Calls `f(Type<T>{})` with the type in which products of `dtype` are summed: int64_t, float or double.
template <class F>
decltype(auto) dispatch_product(const char* op, DType dtype, F&& f) {
  check<DTypeError>(dtype != boolean, "{}: needs numbers, got bool; convert it with to(int64)", op);
  if (dtype == float64) return f(Type<double>{});
  if (is_floating(dtype)) return f(Type<float>{});
  return f(Type<int64_t>{});
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

/// Element offset of matrix `index` of a tensor [batch..., rows, columns].
int64_t batch_offset(const Tensor& x, int64_t index) {
  int64_t offset = 0;
  for (std::size_t d = x.shape().size() - 2; d-- > 0;) {
    offset += index % x.shape()[d] * x.strides()[d];
    index /= x.shape()[d];
  }
  return offset;
}

/// out[i] = alpha a[i] b[i] (+ out[i]) for tensors [batch..., rows, columns] of one batch shape, all of type
/// T, `out` row-major.
template <class T>
void multiply_batches(const Tensor& out, const Tensor& a, const Tensor& b, T alpha, bool accumulate) {
  const Layout layout_a = *find_layout(a);
  const Layout layout_b = *find_layout(b);
  const int64_t m = out.size(-2);
  const int64_t n = out.size(-1);
  const int64_t k = a.size(-1);
  const auto product = [&](int64_t batch) {
    gemm(Gemm<T>{.m = m,
                 .n = n,
                 .k = k,
                 .a = a.data<T>() + batch_offset(a, batch),
                 .lda = layout_a.leading,
                 .transpose_a = layout_a.transposed,
                 .b = b.data<T>() + batch_offset(b, batch),
                 .ldb = layout_b.leading,
                 .transpose_b = layout_b.transposed,
                 .c = out.data<T>() + batch * m * n,
                 .ldc = n,
                 .accumulate = accumulate,
                 .alpha = alpha});
  };
  if (out.numel() == 0) return;
  const int64_t batches = out.numel() / (m * n);
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto grain = static_cast<int64_t>(std::max(1.0, 65536 / std::max(work, 1.0)));
  // A few large products divide themselves among the threads; the result is the same either way.
  if (batches < num_threads()) {
    for (int64_t batch = 0; batch < batches; ++batch) product(batch);
  } else {
    parallel_for(0, batches, grain, [&](int64_t first, int64_t last) {
      for (int64_t batch = first; batch < last; ++batch) product(batch);
    });
  }
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
      multiply_batches<T>(view(out, {rows->size(0), n}), *rows, matrix, 1, false);
      return out;
    }
  }
  multiply_batches<T>(out, expand(a, with_matrix(batch, m, a.size(-1))),
                      expand(b, with_matrix(batch, b.size(-2), n)), 1, false);
  return out;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
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
  const DType dtype = promote(a.dtype(), b.dtype());
  const Tensor out = dispatch_product(
      "matmul", dtype, [&]<class T>(Type<T>) { return cast(multiply_matrices<T>(left, right), dtype); });
  Shape shape = batch_shape(out);
  if (a.rank() > 1) shape.push_back(out.size(-2));
  if (b.rank() > 1) shape.push_back(out.size(-1));
  return view(out, std::move(shape));
}

Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, AddmmOptions options) {
  check<ShapeError>(a.rank() == 2 && b.rank() == 2, "addmm: needs two matrices, got {} and {}", a.shape(),
                    b.shape());
  check<ShapeError>(a.size(1) == b.size(0), "addmm: [m, k] and [k, n] must have one k, got {} and {}",
                    a.shape(), b.shape());
  const Shape shape = {a.size(0), b.size(1)};
  check<ShapeError>(broadcast(input.shape(), shape, "addmm") == shape,
                    "addmm: the input {} does not broadcast to the product's {}", input.shape(), shape);
  const DType dtype = promote(input.dtype(), promote(a.dtype(), b.dtype()));
  check<DTypeError>(is_floating(dtype) || (options.beta.kind() != float64 && options.alpha.kind() != float64),
                    "addmm: beta and alpha must be integers for tensors of {}", dtype);
  return dispatch_product("addmm", dtype, [&]<class T>(Type<T>) {
    const Tensor out = empty(shape, {.dtype = dtype_of<T>(), .device = a.device()});
    const T beta = options.beta.to<T>();
    if (beta == T(1))
      copy_into(out, input);
    else if (beta != T(0))
      multiply_into(out, input, scalar(options.beta, dtype_of<T>()));
    multiply_batches<T>(out, readable(cast(a, dtype_of<T>())), readable(cast(b, dtype_of<T>())),
                        options.alpha.to<T>(), beta != T(0));
    return cast(out, dtype);
  });
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check<ShapeError>(weight.rank() == 2, "linear: the weight must be [out, in], got {}", weight.shape());
  check<ShapeError>(
      x.rank() >= 1 && x.size(-1) == weight.size(1),
      "linear: the last size of the input must be {}, the second of the weight {}, got an input {}",
      weight.size(1), weight.shape(), x.shape());
  check<ShapeError>(!bias.defined() || (bias.rank() == 1 && bias.size(0) == weight.size(0)),
                    "linear: the bias must be [{}], the first size of the weight {}, got {}", weight.size(0),
                    weight.shape(), bias.defined() ? bias.shape() : Shape());
  DType dtype = promote(x.dtype(), weight.dtype());
  if (bias.defined()) dtype = promote(dtype, bias.dtype());
  Shape shape = x.shape();
  shape.back() = weight.size(0);
  const int64_t rows = count(std::span(shape).first(shape.size() - 1));
  return dispatch_product("linear", dtype, [&]<class T>(Type<T>) {
    const Tensor out = empty({rows, weight.size(0)}, {.dtype = dtype_of<T>(), .device = x.device()});
    if (bias.defined()) copy_into(out, bias);
    const Tensor flat = reshape(x, {rows, weight.size(1)});
    multiply_batches<T>(out, readable(cast(flat, dtype_of<T>())),
                        readable(transpose(cast(weight, dtype_of<T>()), 0, 1)), 1, bias.defined());
    return cast(view(out, shape), dtype);
  });
}

}  // namespace pleat::ops
