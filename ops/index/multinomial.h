#pragma once

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat {

struct MultinomialOptions {
  bool replacement = false;  ///< a place may be drawn again
};

/// Places 0 ... K-1 drawn with probabilities in proportion to weights [K] or to each row of [N, K]: int64
/// [num_samples] or [N, num_samples]. Weights are floating and need not add up to 1. Without replacement a
/// draw leaves its place out of those after it, which are in proportion to the rest. The same places on CPU
/// and CUDA but where rounding decides; the host waits for a check of the weights. Not differentiable. Throws
/// ShapeError, DTypeError, ValueError for a weight that is negative, NaN or infinite, a row without a
/// positive one, and num_samples below 1 or, without replacement, above the number of positive weights.
///
///   const Tensor next = multinomial(softmax(logits / temperature, -1), 1);
Tensor multinomial(const Tensor& weights, Integer num_samples, MultinomialOptions options = {},
                   Generator& generator = default_generator());

}  // namespace pleat
