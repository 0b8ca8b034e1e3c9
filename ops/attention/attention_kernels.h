#pragma once

#include <optional>

#include "pleat/core/tensor/tensor.h"

/// Raw attention on the CPU: softmax(scale query key^T + mask) value by blocks of queries and keys, so that
/// the scores of all queries and keys are never in memory at once. Dao et al., "FlashAttention" (2022),
/// arXiv:2205.14135. Half types are computed in float32.

// Options are in namespace pleat: found through their namespace, the raw functions would rival the
// differentiable ones.
namespace pleat {

struct AttentionOptions {
  /// Which query takes which key, [..., L, S] or what broadcasts to it: bool, true where it does, or floating
  /// numbers to add to the scores, of which -infinity excludes a key. A query that takes no key gives 0.
  Tensor mask = {};
  /// Query i takes the keys 0 ... i only. Not beside a mask.
  bool is_causal = false;
  std::optional<double> scale = {};  ///< of query times key; empty: 1 / sqrt(E)
  /// Probability with which a share of a value is dropped, the others growing by 1 / (1 - dropout). Also
  /// outside of training: a module passes 0 there. The raw functions know none.
  double dropout = 0;
};

}  // namespace pleat

namespace pleat::ops {

struct AttentionResult {
  Tensor output;       ///< [..., L, Ev], in the order of memory of the queries
  Tensor log_sum_exp;  ///< [..., L]: of the scores of each query, in the type computed in
};

/// query [..., L, E], key [..., S, E], value [..., S, Ev]; the dimensions before them broadcast. Operands are
/// read as they lie where their last dimension is dense. Throws ShapeError when sizes do not fit, DTypeError
/// unless all are of one floating type and the mask is bool or floating, DeviceError unless all are on the
/// CPU, ValueError for a mask beside is_causal, a scale that is not finite, and dropout.
AttentionResult attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const AttentionOptions& options = {});

/// Of all operands, in the batch's shape: where one was stretched, its gradient is still to be summed.
struct AttentionGradients {
  Tensor query, key, value;
};

/// The gradients from that of the output. Scores are computed again, block by block. Throws as
/// attention_forward, and ShapeError unless dy has the output's shape.
AttentionGradients attention_backward(const Tensor& dy, const Tensor& query, const Tensor& key,
                                      const Tensor& value, const AttentionResult& result,
                                      const AttentionOptions& options = {});

}  // namespace pleat::ops
