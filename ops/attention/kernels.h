// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/core/tensor/tensor.h"

/// Attention on the CPU by blocks of queries and keys, so that the scores of all of them are never in memory
/// at once. Dao et al., "FlashAttention" (2022), arXiv:2205.14135.

namespace pleat::ops {

/// The sizes of an attention, and what it was called with beside its operands.
struct AttentionProblem {
  Shape batch;  ///< of all operands together
  int64_t queries, keys, width, value_width;
  double scale;
  bool is_causal;

  /// [batch..., rows, columns].
  Shape shape(int64_t rows, int64_t columns) const {
    Shape shape = batch;
    shape.insert(shape.end(), {rows, columns});
    return shape;
  }
};

struct AttentionResult {
  Tensor output;       ///< [..., L, Ev], in the order of memory of the queries
  Tensor log_sum_exp;  ///< [..., L, 1]: of the scores of each query, in the type computed in
};

/// Operands, and a mask or none, that fit the problem; read as they lie where their last dimension is dense.
AttentionResult attention_forward(const AttentionProblem& p, const Tensor& query, const Tensor& key,
                                  const Tensor& value, const Tensor& mask);

/// The gradients of query, key and value, in the batch's shape: where one was stretched, its gradient is
/// still to be summed. Scores are computed again, block by block.
std::vector<Tensor> attention_backward(const AttentionProblem& p, const Tensor& dy, const Tensor& query,
                                       const Tensor& key, const Tensor& value, const Tensor& mask,
                                       const AttentionResult& result);

}  // namespace pleat::ops
