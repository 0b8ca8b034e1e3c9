#include "pleat/nn/distance.h"

#include "pleat/nn/option_checks.h"
#include "pleat/nn/record_forward.h"

namespace pleat::nn {

CosineSimilarity::CosineSimilarity(CosineSimilarityOptions options_) : options(options_) {
  check_positive("CosineSimilarity", "eps", options.eps);
}
Tensor CosineSimilarity::forward(const Tensor& a, const Tensor& b) {
  const RecordForward range(*this, a, b);
  return range.run([&] { return cosine_similarity(a, b, options); });
}

PairwiseDistance::PairwiseDistance(PairwiseDistanceOptions options_) : options(options_) {
  check<ValueError>(!std::isnan(options.p), "PairwiseDistance: p must be a number, got {}", options.p);
  check_finite("PairwiseDistance", "eps", options.eps);
}
Tensor PairwiseDistance::forward(const Tensor& a, const Tensor& b) {
  const RecordForward range(*this, a, b);
  return range.run([&] { return pairwise_distance(a, b, options); });
}

}  // namespace pleat::nn
