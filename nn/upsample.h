#pragma once

#include "pleat/nn/layer.h"
#include "pleat/ops/interpolate/interpolate.h"

namespace pleat::nn {

/// Resamples [N, C, spatial...]: `nn::Upsample{{.scale_factor = 2}}`; options, formulas and errors:
/// ops/interpolate/interpolate.h.
using Upsample = FunctionLayer<"Upsample", interpolate>;

namespace detail {
std::string text_of_options(LayerName, const InterpolateOptions& options);
}  // namespace detail

}  // namespace pleat::nn
