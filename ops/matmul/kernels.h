// Private header: not installed.
#pragma once

#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/tensor.h"

/// Matrix products off the tape, of operands that fit; ops/matmul/matmul.h says what they compute.

namespace pleat {
class Number;
}

namespace pleat::ops {

/// y[i] = f(x[i]), where y may be x: what elements of a product go through as soon as they are complete.
struct ElementFunction {
  virtual ~ElementFunction() = default;
  virtual void run(float* y, const float* x, int64_t n) const = 0;
  virtual void run(double* y, const double* x, int64_t n) const = 0;
};

/// The type, the implementation and the arithmetic of sums of k products of `dtype`.
RangeDetails product_details(DType dtype, const Tensor& out, int64_t k);

Tensor matmul_forward(const Tensor& a, const Tensor& b);

/// matmul(a, b) for tensors of rank 2 and more, summed over what broadcasting from `shape` [..., m, n] to the
/// product's shape had repeated: the gradient of a factor that a batch shares. The products that are added up
/// are never held: they are one product of a larger k, or terms added in a fixed order.
Tensor matmul_sum_to(const Tensor& a, const Tensor& b, const Shape& shape);

Tensor addmm_forward(const Tensor& input, const Tensor& a, const Tensor& b, const Number& beta,
                     const Number& alpha);

struct LinearOutputs {
  Tensor sums;  ///< x weight^T + bias; undefined unless `keep_sums`
  Tensor y;     ///< f of it
};
/// linear and, if given, a function of its elements in the same pass: on the CPU for float32 and float64.
LinearOutputs linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                             const ElementFunction* f = nullptr, bool keep_sums = false);

}  // namespace pleat::ops
