#include "pleat/nn/loss_modules.h"

#include <cmath>

#include "pleat/core/base/format.h"
#include "pleat/nn/option_checks.h"

namespace pleat::nn::detail {

void check_options(const char* loss, const CrossEntropyOptions& options) {
  check_share(loss, "label_smoothing", options.label_smoothing);
}
void check_options(const char* loss, const SmoothL1Options& options) {
  check_at_least_0(loss, "beta", options.beta);
}
void check_options(const char* loss, const HuberOptions& options) {
  check_positive(loss, "delta", options.delta);
}
void check_options(const char* loss, const GaussianNllOptions& options) {
  check_positive(loss, "eps", options.eps);
}
void check_options(const char* loss, const PoissonNllOptions& options) {
  check_positive(loss, "eps", options.eps);
}
void check_options(const char* loss, const MarginLossOptions& options) {
  check_finite(loss, "margin", options.margin);
}
void check_options(const char* loss, const HingeEmbeddingOptions& options) {
  check_finite(loss, "margin", options.margin);
}
void check_options(const char* loss, const MultiMarginOptions& options) {
  check<ValueError>(options.p == 1 || options.p == 2, "{}: p must be 1 or 2, got {}", loss, options.p);
  check_finite(loss, "margin", options.margin);
}
void check_options(const char* loss, const TripletMarginOptions& options) {
  check_finite(loss, "margin", options.margin);
  check<ValueError>(!std::isnan(options.p), "{}: p must be a number, got {}", loss, options.p);
  check_finite(loss, "eps", options.eps);
}

}  // namespace pleat::nn::detail
