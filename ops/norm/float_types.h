// Private header: not installed.
#pragma once

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/norm/implementation.h"

namespace pleat::ops {

/// Calls `run(Type<T>{}, tensors)` with T = float, or double for float64; tensors of half types are float32
/// meanwhile.
template <class Run>
void by_float_type(const BatchNormProblem& problem, const BatchNormForward& t, const Run& run) {
  if (problem.dtype == float64) return run(Type<double>{}, t);
  if (!is_half(problem.dtype)) return run(Type<float>{}, t);
  BatchNormForward wide = t;
  wide.x = cast(t.x, float32);
  if (t.residual.defined()) wide.residual = cast(t.residual, float32);
  wide.y = empty_like(wide.x);
  run(Type<float>{}, wide);
  copy_into(t.y, wide.y);
}

template <class Run>
void by_float_type(const BatchNormProblem& problem, const BatchNormBackward& t, const Run& run) {
  if (problem.dtype == float64) return run(Type<double>{}, t);
  if (!is_half(problem.dtype)) return run(Type<float>{}, t);
  BatchNormBackward wide = t;
  wide.x = cast(t.x, float32);
  wide.dy = cast(t.dy, float32);
  if (t.dx.defined()) wide.dx = empty_like(wide.x);
  run(Type<float>{}, wide);
  if (t.dx.defined()) copy_into(t.dx, wide.dx);
}

}  // namespace pleat::ops
