#include "pleat/ops/matmul/distance.h"

#include <cmath>

#include "pleat/autograd/autocast.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// Integers would wrap around, half types lose digits under autocast.
Tensor floating(const Tensor& x) { return is_floating(x.dtype()) ? autocast_to_float32(x) : x.to(float32); }

void check_norm(const char* op, double p) {
  check<ValueError>(!std::isnan(p), "{}: p must be a number, got {}", op, p);
}

/// Half types in float32: they may have no room for a length of which the result is a share.
Tensor with_room(const Tensor& x) { return is_half(x.dtype()) ? x.to(float32) : x; }

Tensor at_least(const Tensor& lengths, double eps) { return clamp(lengths, {.min = eps}); }

}  // namespace

Tensor normalize(const Tensor& input, const NormalizeOptions& options) {
  check_norm("normalize", options.p);
  check<ValueError>(options.eps >= 0 && std::isfinite(options.eps),
                    "normalize: eps must be at least 0 and finite, got {}", options.eps);
  (void)normalize_dim(options.dim, input.rank(), "normalize");
  const RecordOp range("normalize", input);
  const Tensor given = floating(input), x = with_room(given);
  const Tensor lengths = norm(x, options.dim, {.p = options.p, .keepdim = true});
  return (x / at_least(lengths, options.eps)).to(given.dtype());
}

Tensor cosine_similarity(const Tensor& any_a, const Tensor& any_b, const CosineSimilarityOptions& options) {
  const Shape shape = broadcast(any_a.shape(), any_b.shape(), "cosine_similarity");
  const auto rank = static_cast<int64_t>(shape.size());
  // From the end, where the two meet.
  const int64_t dim = normalize_dim(options.dim, rank, "cosine_similarity") - rank;
  check<ValueError>(options.eps > 0 && std::isfinite(options.eps),
                    "cosine_similarity: eps must be above 0 and finite, got {}", options.eps);
  if (rank == 0) return cosine_similarity(unsqueeze(any_a, 0), unsqueeze(any_b, 0), options);
  const RecordOp range("cosine_similarity", any_a, any_b);
  const Tensor given_a = floating(any_a), given_b = floating(any_b);
  const Tensor a = with_room(given_a), b = with_room(given_b);
  // Where one is repeated along the dimension, its length is that of all.
  const auto length = [&](const Tensor& x) {
    const bool whole =
        x.rank() + dim >= 0 && x.size(dim) == shape[shape.size() - static_cast<std::size_t>(-dim)];
    return at_least(norm(whole ? x : expand(x, shape), dim, {.keepdim = true}), options.eps);
  };
  return sum((a / length(a)) * (b / length(b)), dim).to(promote(given_a.dtype(), given_b.dtype()));
}

Tensor pairwise_distance(const Tensor& any_a, const Tensor& any_b, const PairwiseDistanceOptions& options) {
  check_norm("pairwise_distance", options.p);
  check<ValueError>(std::isfinite(options.eps), "pairwise_distance: eps must be finite, got {}", options.eps);
  (void)broadcast(any_a.shape(), any_b.shape(), "pairwise_distance");
  const RecordOp range("pairwise_distance", any_a, any_b);
  const Tensor difference = floating(any_a) - floating(any_b) + options.eps;
  return norm(difference, -1, {.p = options.p, .keepdim = options.keepdim});
}

Tensor distance(const Tensor& any_a, const Tensor& any_b, DistanceOptions options) {
  (void)broadcast(any_a.shape(), any_b.shape(), "distance");
  check_norm("distance", options.p);
  const RecordOp range("distance", any_a, any_b);
  return norm(floating(any_a) - floating(any_b), {}, {.p = options.p});
}

Tensor cdist(const Tensor& any_a, const Tensor& any_b, DistanceOptions options) {
  constexpr const char* op = "cdist";
  check<ShapeError>(any_a.rank() >= 2 && any_b.rank() >= 2 && any_a.size(-1) == any_b.size(-1),
                    "{}: needs rows of one length, [..., P, M] and [..., R, M], got {} and {}", op, any_a,
                    any_b);
  check_norm(op, options.p);
  const Tensor a = unsqueeze(floating(any_a), -2), b = unsqueeze(floating(any_b), -3);
  (void)broadcast(a.shape(), b.shape(), op);
  const RecordOp range(op, any_a, any_b);
  return norm(a - b, -1, {.p = options.p});
}

}  // namespace pleat
