#include "pleat/nn/activation.h"

#include "pleat/core/tensor/create.h"
#include "pleat/nn/option_checks.h"
#include "pleat/nn/options_text.h"

namespace pleat::nn {

PReLU::PReLU(PReLUOptions o) {
  check_at_least("PReLU", "num_parameters", o.num_parameters, 1);
  check_finite("PReLU", "init", o.init);
  weight = parameter(full({o.num_parameters}, o.init));
}

Tensor Softmax2d::forward(const Tensor& x) {
  check<ShapeError>(x.rank() == 3 || x.rank() == 4, "Softmax2d: needs [N, C, H, W] or [C, H, W], got {}", x);
  return softmax(x, -3);
}

namespace detail {

void check_options(LayerName layer, const HardtanhOptions& o) {
  check<ValueError>(o.min <= o.max, "{}: needs min <= max, got {} and {}", layer.text, o.min, o.max);
}
void check_options(LayerName layer, const LeakyReLUOptions& o) {
  check_finite(layer.text, "negative_slope", o.negative_slope);
}
void check_options(LayerName layer, const ELUOptions& o) { check_finite(layer.text, "alpha", o.alpha); }
void check_options(LayerName layer, const CELUOptions& o) {
  check<ValueError>(std::isfinite(o.alpha) && o.alpha != 0, "{}: alpha must be finite and not 0, got {}",
                    layer.text, o.alpha);
}
void check_options(LayerName layer, const SoftplusOptions& o) {
  check_positive(layer.text, "beta", o.beta);
  check<ValueError>(!std::isnan(o.threshold), "{}: threshold must be a number, got {}", layer.text,
                    o.threshold);
}
void check_options(LayerName layer, const SoftshrinkOptions& o) {
  check<ValueError>(o.lambd >= 0, "{}: lambd must be at least 0, got {}", layer.text, o.lambd);
}
void check_options(LayerName layer, const ThresholdOptions& o) {
  check<ValueError>(!std::isnan(o.threshold), "{}: the threshold must be a number, got {}", layer.text,
                    o.threshold);
}
std::string text_of_option(LayerName, GeluApproximation value) {
  return value == GeluApproximation::tanh ? "tanh" : "none";
}
std::string text_of_options(LayerName, const SoftplusOptions& o) {
  return OptionsText()("beta", o.beta)("threshold", o.threshold, 20);
}

}  // namespace detail
}  // namespace pleat::nn
