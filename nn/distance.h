#pragma once

#include "pleat/nn/layer.h"
#include "pleat/ops/matmul/distance.h"

/// Similarities and distances as modules of two inputs; formulas: ops/matmul/distance.h.

namespace pleat::nn {

/// As the function cosine_similarity: `forward(a, b)`. Throws ValueError unless eps is above 0 and finite.
using CosineSimilarity = FunctionLayer<"CosineSimilarity", cosine_similarity>;
/// As the function pairwise_distance: `forward(a, b)`. Throws ValueError for a p of NaN, and unless eps is
/// finite.
using PairwiseDistance = FunctionLayer<"PairwiseDistance", pairwise_distance>;

namespace detail {
void check_options(LayerName layer, const CosineSimilarityOptions& options);
void check_options(LayerName layer, const PairwiseDistanceOptions& options);
}  // namespace detail

}  // namespace pleat::nn
