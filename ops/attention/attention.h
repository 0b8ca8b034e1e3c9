#pragma once

#include <optional>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

struct AttentionOptions {
  /// Which query takes which key, [..., L, S] or what broadcasts to it: bool, true where it does, or floating
  /// numbers to add to the scores, of which -infinity excludes a key. A query that takes no key gives 0.
  Tensor mask = {};
  /// Query i takes the keys 0 ... i only. Not beside a mask.
  bool is_causal = false;
  std::optional<double> scale = {};  ///< of query times key; empty: 1 / sqrt(E)
  /// Probability with which a share of a value is dropped, the others growing by 1 / (1 - dropout). Also
  /// outside of training: a module passes 0 there. Draws from default_generator().
  double dropout = 0;
};

/// softmax(scale query key^T + mask) value for a query [..., L, E], a key [..., S, E] and a value
/// [..., S, Ev]: [..., L, Ev]; the dimensions before them broadcast. Vaswani et al., "Attention is all you
/// need" (2017):
///
///   y = scaled_dot_product_attention(query, key, value, {.is_causal = true});
///
/// On the CPU in one pass, where the scores are never in memory at once; the result lies as the queries do,
/// and half types are computed in float32. On CUDA, with dropout, and where the mask requires a gradient,
/// products and softmax of their own, which hold all scores. Throws ShapeError when sizes do not fit,
/// DTypeError unless all are of one floating type and the mask is bool or floating, DeviceError, ValueError
/// for a mask beside is_causal, a scale that is not finite, and a dropout outside [0, 1].
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options = {});

}  // namespace pleat
