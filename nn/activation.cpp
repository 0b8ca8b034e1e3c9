#include "pleat/nn/activation.h"

#include "pleat/nn/option_checks.h"

namespace pleat::nn {

LeakyReLU::LeakyReLU(LeakyReLUOptions options_) : options(options_) {
  check_finite("LeakyReLU", "negative_slope", options.negative_slope);
}

ELU::ELU(ELUOptions options_) : options(options_) { check_finite("ELU", "alpha", options.alpha); }

Softplus::Softplus(SoftplusOptions options_) : options(options_) {
  check_positive("Softplus", "beta", options.beta);
  check<ValueError>(!std::isnan(options.threshold), "Softplus: threshold must be a number, got {}",
                    options.threshold);
}

}  // namespace pleat::nn
