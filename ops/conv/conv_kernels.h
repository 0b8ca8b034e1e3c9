#pragma once

#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"

/// Raw convolutions of 1, 2 and 3 spatial dimensions, by the rank of the weight. All three passes check all
/// sizes (ops/conv/problem.h has the formulas), choose an implementation and run it. The result
/// has the format that the options or the policy ask for, else the one that the implementation writes best
/// (channels-last; `reference` keeps its input's). Sums of float16 and bfloat16 are float32. They throw
/// ShapeError, DTypeError, DeviceError, ValueError.

namespace pleat::ops {

struct ConvFusion;  // ops/conv/fusion.h

/// y [N, K, ...] = x [N, C, ...] * w [K, C/groups, ...] + bias [K] (undefined: none).
/// `fusion`, here and below: what is computed beside that; null: nothing.
Tensor conv_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options,
                    ConvFusion* fusion = nullptr);

/// The gradient [N, C, ...] of x, whose shape has to be given: several fit one dy when stride > 1.
Tensor conv_backward_input(const Tensor& dy, const Tensor& w, const Sizes& input_shape,
                           const ConvOptions& options, ConvFusion* fusion = nullptr);

/// The gradient [K, C/groups, ...] of w.
Tensor conv_backward_weight(const Tensor& dy, const Tensor& x, const Sizes& weight_shape,
                            const ConvOptions& options, ConvFusion* fusion = nullptr);

/// The gradient [K] of the bias: dy summed over all but the channels.
Tensor conv_backward_bias(const Tensor& dy);

/// Names that `implementation` takes on a device, the preferred first.
std::vector<std::string> conv_implementations(Device device = {});

}  // namespace pleat::ops
