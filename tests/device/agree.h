#pragma once

#include "pleat/op_cases/inputs.h"

/// The same computation on the CPU and on a GPU.

namespace pleat::test {

struct AgreeOptions {
  /// Whether gradients are compared and checked by differences.
  bool differentiable = true;
  /// Whether gradients are also those that differences give: two calls for each element of the inputs.
  bool differences = true;
  /// How many times more than one rounding an element may differ: for functions that magnify roundings.
  double slack = 1;
};

/// Checks that `f` gives the same on both devices, for inputs of each floating type and, in float32, of each
/// layout: the values, and the gradients of all floating inputs; in float64 also that the gradients of the
/// other device are those that differences give. Where the CPU throws, the other must throw the same words.
/// A second GPU, where there is one, does it in float32 while the first is the thread's current one. Without
/// a GPU the test is skipped.
///
/// Each device is a few roundings off the exact value (sums are of some hundred elements at most and
/// accumulated in float32 or wider), so that two differ, as vectors, by less than 1e-12 in float64 and 1e-5
/// in float32; in the half types, where results and intermediate gradients are rounded, by less than four
/// roundings: 2e-3 in float16, 1.6e-2 in bfloat16. Integers and truth values are equal.
void agrees(const Tensors& inputs, const Function& f, AgreeOptions options = {});

/// Checks that the gradients on the other device are those that differences of float64 inputs give.
void differences_agree(const Tensors& inputs, const Function& f);

/// For functions without derivatives.
inline void agrees_in_value(const Tensors& inputs, const Function& f) {
  agrees(inputs, f, {.differentiable = false});
}

}  // namespace pleat::test
