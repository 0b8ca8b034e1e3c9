// Private header: not installed.
#pragma once

#include "pleat/ops/conv/problem.h"

/// The weight's gradient of `direct` convolutions (ops/conv/cpu/direct.cpp).

namespace pleat::ops {

/// dw [K, taps, C/g] from dy and x.
template <class T>
void direct_backward_weight(const ConvProblem& p, const T* dy, const T* x, T* dw);

/// Bytes that it needs beside operands and result.
int64_t direct_weight_workspace(const ConvProblem& p);

}  // namespace pleat::ops
