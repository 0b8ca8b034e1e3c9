// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/ops/matmul/matmul_kernels.h"

/// Products whose elements go through a function as soon as they are complete.

namespace pleat::ops {

/// y[i] = f(x[i]), where y may be x.
struct ElementFunction {
  virtual ~ElementFunction() = default;
  virtual void run(float* y, const float* x, int64_t n) const = 0;
  virtual void run(double* y, const double* x, int64_t n) const = 0;
};

struct LinearOutputs {
  Tensor sums;  ///< linear(x, weight, bias), or undefined
  Tensor y;     ///< f of it
};

/// linear, and a function of its elements in the same pass, on the CPU for float32 and float64. Throws as
/// linear.
LinearOutputs linear_with(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const MatmulOptions& options, const ElementFunction& f, bool keep_sums);

}  // namespace pleat::ops
