// Private header: not installed.
#pragma once

#include "pleat/ops/attention/attention_kernels.h"

namespace pleat::ops {

/// The sizes of an attention.
struct AttentionProblem {
  Shape batch;  ///< of all operands together
  int64_t queries, keys, width, value_width;
  double scale;

  /// [batch..., rows, columns].
  Shape shape(int64_t rows, int64_t columns) const;
};

/// Checks everything; throws as attention_forward, on any device.
AttentionProblem attention_problem(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const AttentionOptions& options);

}  // namespace pleat::ops
