#pragma once

#include "pleat/nn/module.h"
#include "pleat/ops/matmul/distance.h"

/// Similarities and distances as modules of two inputs; formulas: ops/matmul/distance.h.

namespace pleat::nn {

/// As the function cosine_similarity: `forward(a, b)`.
class CosineSimilarity : public Module {
 public:
  /// Throws ValueError unless eps is above 0 and finite.
  explicit CosineSimilarity(CosineSimilarityOptions options_ = {});
  using Module::forward;
  Tensor forward(const Tensor& a, const Tensor& b);
  std::string type_name() const override { return "CosineSimilarity"; }

  CosineSimilarityOptions options;
};

/// As the function pairwise_distance: `forward(a, b)`.
class PairwiseDistance : public Module {
 public:
  /// Throws ValueError for a p of NaN, and unless eps is finite.
  explicit PairwiseDistance(PairwiseDistanceOptions options_ = {});
  using Module::forward;
  Tensor forward(const Tensor& a, const Tensor& b);
  std::string type_name() const override { return "PairwiseDistance"; }

  PairwiseDistanceOptions options;
};

}  // namespace pleat::nn
