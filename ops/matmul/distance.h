#pragma once

#include "pleat/core/tensor/tensor.h"

/// Lengths, angles and distances of vectors along a dimension; differentiable. Integers give float32.

namespace pleat {

struct NormalizeOptions {
  double p = 2;  ///< of the norm, as norm's
  int64_t dim = 1;
  double eps = 1e-12;  ///< the least divisor, at least 0
};
/// x / max(|x|, eps), |x| being the norm along `dim`. Throws IndexError for another dimension, ValueError for
/// options outside their ranges.
Tensor normalize(const Tensor& x, const NormalizeOptions& options = {});

struct CosineSimilarityOptions {
  int64_t dim = 1;    ///< of the two after broadcasting
  double eps = 1e-8;  ///< the least length that is divided by, above 0
};
/// sum of a b / (max(|a|, eps) max(|b|, eps)) along `dim`, which the result lacks; a and b broadcast. Throws
/// IndexError, ShapeError, ValueError.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, const CosineSimilarityOptions& options = {});

struct PairwiseDistanceOptions {
  double p = 2;       ///< of the norm, as norm's
  double eps = 1e-6;  ///< added to each difference, so that a distance of 0 has a gradient
  bool keepdim = false;
};
/// The norm of a - b + eps along the last dimension; a and b broadcast. Throws ShapeError, ValueError.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, const PairwiseDistanceOptions& options = {});

struct DistanceOptions {
  double p = 2;  ///< of the norm, as norm's
};
/// The norm of a - b over all elements; a and b broadcast. Throws ShapeError, ValueError.
Tensor distance(const Tensor& a, const Tensor& b, DistanceOptions options = {});
/// The norms of all differences between rows of a [..., P, M] and of b [..., R, M]: [..., P, R]; leading
/// dimensions broadcast. All P R differences are in memory, so they are exact where rows are close. Throws
/// ShapeError, ValueError.
Tensor cdist(const Tensor& a, const Tensor& b, DistanceOptions options = {});

}  // namespace pleat
