#include "pleat/nn/activation.h"

#include "pleat/core/tensor/create.h"
#include "pleat/nn/option_checks.h"

namespace pleat::nn {

Hardtanh::Hardtanh(HardtanhOptions options_) : options(options_) {
  check<ValueError>(options.min <= options.max, "Hardtanh: needs min <= max, got {} and {}", options.min,
                    options.max);
}

LeakyReLU::LeakyReLU(LeakyReLUOptions options_) : options(options_) {
  check_finite("LeakyReLU", "negative_slope", options.negative_slope);
}

PReLU::PReLU(PReLUOptions options) {
  check_at_least("PReLU", "num_parameters", options.num_parameters, 1);
  check_finite("PReLU", "init", options.init);
  weight = parameter(full({options.num_parameters}, options.init));
}
std::string PReLU::options_text() const { return fmt::format("{}", weight.numel()); }

ELU::ELU(ELUOptions options_) : options(options_) { check_finite("ELU", "alpha", options.alpha); }

CELU::CELU(CELUOptions options_) : options(options_) {
  check<ValueError>(std::isfinite(options.alpha) && options.alpha != 0,
                    "CELU: alpha must be finite and not 0, got {}", options.alpha);
}

Softplus::Softplus(SoftplusOptions options_) : options(options_) {
  check_positive("Softplus", "beta", options.beta);
  check<ValueError>(!std::isnan(options.threshold), "Softplus: threshold must be a number, got {}",
                    options.threshold);
}

Softshrink::Softshrink(SoftshrinkOptions options_) : options(options_) {
  check<ValueError>(options.lambd >= 0, "Softshrink: lambd must be at least 0, got {}", options.lambd);
}

Hardshrink::Hardshrink(HardshrinkOptions options_) : options(options_) {
  check<ValueError>(options.lambd >= 0, "Hardshrink: lambd must be at least 0, got {}", options.lambd);
}

Threshold::Threshold(ThresholdOptions options_) : options(options_) {
  check<ValueError>(!std::isnan(options.threshold), "Threshold: the threshold must be a number, got {}",
                    options.threshold);
}

Tensor Softmax2d::forward(const Tensor& x) {
  check<ShapeError>(x.rank() == 3 || x.rank() == 4, "Softmax2d: needs [N, C, H, W] or [C, H, W], got {}", x);
  return softmax(x, -3);
}

}  // namespace pleat::nn
