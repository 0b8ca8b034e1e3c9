#pragma once

#include "pleat/nn/module.h"
#include "pleat/ops/interpolate/interpolate.h"

namespace pleat::nn {

/// Resamples [N, C, spatial...]: `nn::Upsample{{.scale_factor = 2}}`; options, formulas and errors:
/// ops/interpolate/interpolate_kernels.h.
class Upsample : public Module {
 public:
  explicit Upsample(InterpolateOptions options_) : options(std::move(options_)) {}
  Tensor forward(const Tensor& x) override { return interpolate(x, options); }
  std::string type_name() const override { return "Upsample"; }
  std::string options_text() const override;

  InterpolateOptions options;
};

}  // namespace pleat::nn
