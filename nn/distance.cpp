#include "pleat/nn/distance.h"

#include "pleat/nn/option_checks.h"

namespace pleat::nn::detail {

void check_options(LayerName layer, const CosineSimilarityOptions& o) {
  check_positive(layer.text, "eps", o.eps);
}
void check_options(LayerName layer, const PairwiseDistanceOptions& o) {
  check<ValueError>(!std::isnan(o.p), "{}: p must be a number, got {}", layer.text, o.p);
  check_finite(layer.text, "eps", o.eps);
}

}  // namespace pleat::nn::detail
