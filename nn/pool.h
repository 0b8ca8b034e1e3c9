#pragma once

#include "pleat/nn/layer.h"
#include "pleat/ops/pool/pool.h"

/// Pooling modules; options, formulas and errors: ops/pool/pool.h.

namespace pleat::nn {

using MaxPool1d = FunctionLayer<"MaxPool1d", max_pool1d>;
using MaxPool2d = FunctionLayer<"MaxPool2d", max_pool2d>;
using MaxPool3d = FunctionLayer<"MaxPool3d", max_pool3d>;
using AvgPool1d = FunctionLayer<"AvgPool1d", avg_pool1d>;
using AvgPool2d = FunctionLayer<"AvgPool2d", avg_pool2d>;
using AvgPool3d = FunctionLayer<"AvgPool3d", avg_pool3d>;
using LPPool1d = FunctionLayer<"LPPool1d", lp_pool1d>;
using LPPool2d = FunctionLayer<"LPPool2d", lp_pool2d>;
using LPPool3d = FunctionLayer<"LPPool3d", lp_pool3d>;
using AdaptiveMaxPool1d = FunctionLayer<"AdaptiveMaxPool1d", adaptive_max_pool1d>;
using AdaptiveMaxPool2d = FunctionLayer<"AdaptiveMaxPool2d", adaptive_max_pool2d>;
using AdaptiveMaxPool3d = FunctionLayer<"AdaptiveMaxPool3d", adaptive_max_pool3d>;
using AdaptiveAvgPool1d = FunctionLayer<"AdaptiveAvgPool1d", adaptive_avg_pool1d>;
using AdaptiveAvgPool2d = FunctionLayer<"AdaptiveAvgPool2d", adaptive_avg_pool2d>;
using AdaptiveAvgPool3d = FunctionLayer<"AdaptiveAvgPool3d", adaptive_avg_pool3d>;

/// Of two inputs: what a max pool gave, and the indices of max_pool_with_indices.
using MaxUnpool1d = FunctionLayer<"MaxUnpool1d", max_unpool1d>;
using MaxUnpool2d = FunctionLayer<"MaxUnpool2d", max_unpool2d>;
using MaxUnpool3d = FunctionLayer<"MaxUnpool3d", max_unpool3d>;

namespace detail {
std::string text_of_options(LayerName, const MaxPoolOptions& options);
std::string text_of_options(LayerName, const AvgPoolOptions& options);
std::string text_of_options(LayerName, const LpPoolOptions& options);
std::string text_of_options(LayerName, const AdaptivePoolOptions& options);
std::string text_of_options(LayerName, const MaxUnpoolOptions& options);
}  // namespace detail

}  // namespace pleat::nn
