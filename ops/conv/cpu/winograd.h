// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "pleat/ops/conv/problem.h"

/// The passes of `winograd` convolutions, for problems with kernels of 3 taps along one or two dimensions,
/// and perhaps a kernel of any size along a further one, all with stride and dilation 1. Tiles have m = 2 or
/// 4 results along the former; along the latter, products of taps are added up as they are.

namespace pleat::ops::winograd {

/// The dimensions: tiles are along b, of two kernels of 3 taps also along a; results along `line` are
/// computed together.
struct Kernels {
  std::size_t a, b, line;
  int count;  ///< of those of 3 taps: 1 or 2
};
/// Those of a problem; nothing where it is not of the kind.
std::optional<Kernels> find_kernels(const ConvProblem& p);

/// y from x and w [K, taps, C]; `bias` may be null. For backward_input, as the convolution of dy
/// (transposed_problem) with the taps from the last to the first and the channels exchanged, `flipped`.
template <class T>
void multiply(const ConvProblem& p, int m, const T* x, const T* w, bool flipped, const T* bias, T* y);
/// dw [K, taps, C] from dy and x.
template <class T>
void weight_gradient(const ConvProblem& p, int m, const T* dy, const T* x, T* dw);

/// Bytes beside operands and result.
int64_t multiply_workspace(const ConvProblem& p, int m);
int64_t weight_gradient_workspace(const ConvProblem& p, int m);

}  // namespace pleat::ops::winograd
