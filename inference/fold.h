// Private header: not installed.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include "pleat/onnx/plan.h"

/// Recorded calls become a program with fewer: still data, which is compiled for a size of the batch
/// (inference/plan.h) or written to a file.

namespace pleat::inference {

/// Of a convolution: a batch norm that its weights have taken in.
inline constexpr const char* folded = "folded";

/// Whether a value is constant; what is undefined is.
bool is_known(const onnx::Trace& trace, int value);
/// For each value the calls that read it, and `beyond` for a result.
std::vector<std::vector<int>> readers_of(const onnx::Trace& trace);
inline constexpr int beyond = std::numeric_limits<int>::max();
/// The one call that reads a value, or -1.
int only_reader(const std::vector<std::vector<int>>& readers, int value);

/// Makes the calls of constants now that `may`, and returns which these are. Throws ValueError for one that
/// cannot be made again.
std::vector<bool> compute_constants(onnx::Trace& trace, const std::function<bool(std::size_t call)>& may);

/// Weights whose dimension `dim` is the output channels; the bias may be undefined.
struct Weights {
  Tensor weight = {}, bias = {};
  std::size_t dim = 0;
};
/// Those of a convolution or product of a value with constants of one floating type, a product's as [out,
/// in]; undefined for other calls.
Weights weights_of(const onnx::Trace& trace, const onnx::Call& call);
/// Takes a batch norm by running statistics into the weights, in float64. False: it is none, or does more.
bool fold_norm(Weights& weights, const onnx::Trace& trace, const onnx::Call& norm);

/// Computes what depends on constants alone, and not on the batch; folds batch norms; leaves out calls whose
/// results nothing reads. A program that was folded stays as it is.
void fold(onnx::Plan& program);

}  // namespace pleat::inference
