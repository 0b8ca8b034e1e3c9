#pragma once

#include <cstdint>

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::models {

struct NextTokenOptions {
  double temperature = 1;  ///< divides the logits; 0: always the likeliest (greedy)
  int64_t top_k = 0;       ///< only so many likeliest; 0: all
  /// Only the likeliest that together have this probability, at least one (nucleus sampling): Holtzman et
  /// al., "The curious case of neural text degeneration" (2020). Of what top_k leaves.
  double top_p = 1;
};

/// The next tokens of texts by their logits [N, tokens]: int64 [N], drawn, each by its probability. Throws
/// ShapeError, DTypeError unless floating, ValueError for options outside of their ranges: temperature >= 0,
/// top_k >= 0, 0 < top_p <= 1.
Tensor next_token(const Tensor& logits, const NextTokenOptions& options = {},
                  Generator& generator = default_generator());

}  // namespace pleat::models
