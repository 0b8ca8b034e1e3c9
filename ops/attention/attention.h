#pragma once

#include "pleat/ops/attention/attention_kernels.h"

/// Differentiable attention; see ops/attention/attention_kernels.h for the options and the errors.

namespace pleat {

/// softmax(scale query key^T + mask) value for a query [..., L, E], a key [..., S, E] and a value
/// [..., S, Ev]: [..., L, Ev]; the dimensions before them broadcast. Vaswani et al., "Attention is all you
/// need" (2017):
///
///   y = scaled_dot_product_attention(query, key, value, {.is_causal = true});
///
/// On the CPU in one pass, where the scores are never in memory at once. On CUDA, with dropout, and where the
/// mask requires a gradient, products and softmax of their own, which hold them all. Dropout draws from
/// default_generator().
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options = {});

}  // namespace pleat
