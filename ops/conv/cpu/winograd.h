// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "pleat/ops/conv/cpu/channel_sums.h"
#include "pleat/ops/conv/cpu/conv_source.h"
#include "pleat/ops/conv/cpu/gather.h"

/// The passes of `winograd` convolutions, for kernels that have 2 or 3 taps for each step of the stride along
/// one or two dimensions, with dilation 1, and perhaps a kernel of any size along a further one, with stride
/// and dilation 1. Tiles have m = 2 or 4 results along the former; along the latter, products of taps are
/// added up as they are.
///
/// With stride s, taps i, i + s, i + 2 s ... read every s-th pixel: they are a kernel of stride 1 for one of
/// s phases of the source, and products of all phases are added up like those of so many more channels.
/// Of the gradient of the input each stride class (gather.h) has stride 1.

namespace pleat::ops::winograd {

/// The dimensions: tiles are along b, of two kernels also along a; results along `line` are computed
/// together.
struct Kernels {
  std::size_t a, b, line;
  int count;  ///< of the dimensions with tiles: 1 or 2
  int taps;   ///< of a phase along these
};
/// Those of a problem; nothing where it is not of the kind.
std::optional<Kernels> find_kernels(const ConvProblem& p);

/// The results of a gather; `bias` and `sums` may be null, and `sums` are made of y.
template <class T>
void multiply(const Gather& gather, const Kernels& kernels, int m, const ConvSource<T>& source,
              const GatherWeights<T>& weights, const T* bias, T* y, ChannelSums<T>* sums);
/// dw [K, taps, C] from dy and x.
template <class T>
void weight_gradient(const ConvProblem& p, int m, const T* dy, const ConvSource<T>& x, T* dw);

/// Bytes beside operands and result.
template <class T>
int64_t multiply_workspace(const Gather& gather, const Kernels& kernels, int m);
template <class T>
int64_t weight_gradient_workspace(const ConvProblem& p, int m);

}  // namespace pleat::ops::winograd
