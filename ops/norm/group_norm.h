#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat {

struct GroupNormOptions {
  int64_t num_groups = 1;  ///< of equally many channels, next to each other
  double eps = 1e-5;       ///< added to the variance
};

struct InstanceNormOptions {
  bool use_input_stats = true;  ///< else normalise by the running statistics
  double momentum = 0.1;        ///< weight of the batch in the running statistics
  double eps = 1e-5;            ///< added to the variance
  /// One int64 on the input's device, to which 1 is added where running statistics are updated; or undefined.
  Tensor num_batches_tracked = {};
};

namespace ops {

/// The result, and the statistics of each group of each image.
struct GroupNormResult {
  Tensor y;
  Tensor mean;      ///< [N, groups] float64
  Tensor variance;  ///< [N, groups] float64, biased
  Tensor rstd;      ///< [N, groups] float64: 1 / sqrt(variance + eps)
};

/// y = (x - mean) / sqrt(variance + eps) * weight + bias, mean and (biased) variance over each group of
/// channels of each image of x [N, C] or [N, C, spatial...] (Wu and He, 2018). weight, bias [C] may be
/// undefined (1, 0). Statistics are computed in float32 or better; y has x's type and memory format. Throws
/// ShapeError (rank, lengths other than C, C not a multiple of the groups), ValueError (eps <= 0, groups <
/// 1), DTypeError, DeviceError.
GroupNormResult group_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   const GroupNormOptions& options, const char* op = "group_norm");

struct GroupNormGrads {
  Tensor x;       ///< like x
  Tensor weight;  ///< [C]
  Tensor bias;    ///< [C]
};

/// Gradients of group_norm_forward's y, whose mean and rstd it gave; those of weight and bias may be
/// undefined where they are not needed.
GroupNormGrads group_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                   const Tensor& mean, const Tensor& rstd, const GroupNormOptions& options,
                                   bool need_input = true, bool need_parameters = true,
                                   const char* op = "group_norm");

/// Group norm with a group for each channel (Ulyanov et al., 2016). running_mean and running_var [C], when
/// defined, are moved in place towards the mean over the images of the instances' means and unbiased
/// variances. Throws, before anything is changed, what group_norm_forward does, and ShapeError when a channel
/// has a single element.
GroupNormResult instance_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                      const Tensor& running_mean, const Tensor& running_var,
                                      const InstanceNormOptions& options);

}  // namespace ops
}  // namespace pleat
