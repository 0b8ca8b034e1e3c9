// Private header: not installed.
#pragma once

#include <cstdint>

namespace pleat::ops {

/// y[i] = f(x[i]), where y may be x: what elements of a product go through as soon as they are complete.
struct ElementFunction {
  virtual ~ElementFunction() = default;
  virtual void run(float* y, const float* x, int64_t n) const = 0;
  virtual void run(double* y, const double* x, int64_t n) const = 0;
};

}  // namespace pleat::ops
