// Private header: not installed.
#pragma once

#include "pleat/ops/conv/implementation.h"

namespace pleat::ops {

/// How far a pass's result is from the reference: ||result - reference|| / ||reference|| over up to 4,096
/// elements spread over it, summed in float64. x, w and y are five-dimensional, of a floating type and any
/// strides, one of them the result; bias may be undefined. Samples that the result's type cannot hold do not
/// count. NaN when nothing can be said: none counts, or the result is not finite where the reference is,
/// which infinities and NaN among the operands allow (a transform spreads them).
double reference_error(const ConvProblem& problem, ConvPass pass, const Tensor& x, const Tensor& w,
                       const Tensor& bias, const Tensor& y);

}  // namespace pleat::ops
