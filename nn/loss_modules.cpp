#include "pleat/nn/loss_modules.h"

#include <cmath>

#include "pleat/core/base/format.h"
#include "pleat/nn/option_checks.h"

namespace pleat::nn::detail {

void check_options(LayerName loss, const CrossEntropyOptions& options) {
  check_share(loss.text, "label_smoothing", options.label_smoothing);
}
void check_options(LayerName loss, const SmoothL1Options& options) {
  check_at_least_0(loss.text, "beta", options.beta);
}
void check_options(LayerName loss, const HuberOptions& options) {
  check_positive(loss.text, "delta", options.delta);
}
void check_options(LayerName loss, const GaussianNllOptions& options) {
  check_positive(loss.text, "eps", options.eps);
}
void check_options(LayerName loss, const PoissonNllOptions& options) {
  check_positive(loss.text, "eps", options.eps);
}
void check_options(LayerName loss, const MarginLossOptions& options) {
  check_finite(loss.text, "margin", options.margin);
}
void check_options(LayerName loss, const HingeEmbeddingOptions& options) {
  check_finite(loss.text, "margin", options.margin);
}
void check_options(LayerName loss, const MultiMarginOptions& options) {
  check<ValueError>(options.p == 1 || options.p == 2, "{}: p must be 1 or 2, got {}", loss.text, options.p);
  check_finite(loss.text, "margin", options.margin);
}
void check_options(LayerName loss, const TripletMarginOptions& options) {
  check_finite(loss.text, "margin", options.margin);
  check<ValueError>(!std::isnan(options.p), "{}: p must be a number, got {}", loss.text, options.p);
  check_finite(loss.text, "eps", options.eps);
}

}  // namespace pleat::nn::detail
