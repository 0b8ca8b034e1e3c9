#pragma once

#include <optional>
#include <string>

#include "pleat/core/base/policy.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/spatial/bounds.h"

namespace pleat {

struct BatchNormOptions {
  bool training = false;  ///< normalise by the batch's statistics and update the running ones
  /// Weight of the batch in the running statistics: r <- (1 - momentum) r + momentum * batch. Without a value
  /// they are the plain average over all batches: momentum = 1 / (num_batches_tracked + 1).
  std::optional<double> momentum = 0.1;
  double eps = 1e-5;  ///< added to the variance
  /// Added to the normalised x, in the same pass over memory; of x's shape, type and device. Or undefined.
  Tensor residual = {};
  /// What the result is limited to, in the same pass over memory: {.min = 0} is a ReLU. Rounded to x's type.
  Bounds bounds = {};
  /// How many batches the running statistics have seen: one int64 on x's device, to which 1 is added where
  /// they are updated. Undefined: they are not counted, and without momentum they become those of the batch.
  Tensor num_batches_tracked = {};
  /// Name of the implementation for both passes: "native", "cudnn", "reference"; empty: what the
  /// BatchNormPolicy in force says, else the fastest.
  std::string implementation = {};
  /// The same for the backward pass alone.
  std::string backward_implementation = {};
};

/// What batch normalisations in a scope do where their call does not say it.
struct BatchNormPolicyOptions {
  std::string implementation = {};
  std::string backward_implementation = {};
  /// Times every implementation at the first use of a problem and pass, then takes the fastest
  /// (ops/tune/tuner.h), where none is named and several can compute it. The fastest may differ from run to
  /// run, and with it the last bits of the result.
  bool benchmark = false;
};

/// Sets them for a scope: `BatchNormPolicy guard{{.implementation = "reference"}};`
using BatchNormPolicy = Policy<BatchNormPolicyOptions>;

namespace ops {

// ops/spatial/channel_affine.h
class Normalization;
struct GradientSums;
struct Moments;

/// The result, and the statistics that it was normalised with.
struct BatchNormResult {
  Tensor y;
  Tensor mean;  ///< [C] float64
  Tensor rstd;  ///< [C] float64: 1 / sqrt(variance + eps)
};

/// y = (x - mean) / sqrt(variance + eps) * weight + bias, for each channel of x [N, C] or [N, C, spatial...]
/// of any number of spatial dimensions (Ioffe and Szegedy, 2015, algorithm 1). weight, bias [C] may be
/// undefined (1, 0). A `residual` is added to that, and y is the sum within `bounds`. Training takes mean and
/// (biased) variance from the batch and, when running_mean and running_var [C] are defined, updates those in
/// place, with the unbiased variance; else they are what x is normalised with. Statistics are computed in
/// float32 or better, robust against a large mean; y has x's type and memory format. An empty batch gives an
/// empty result and leaves the running statistics and their count alone. Throws, before anything is changed:
/// ShapeError (rank, lengths other than C, a residual of another shape, one value per channel in training),
/// DTypeError, DeviceError, ValueError (eps <= 0, bounds without min <= max, momentum outside [0, 1], no
/// running statistics without training, an implementation that does not exist or cannot do it). Messages
/// begin with `op`. `moments`: those of x, where they are known. `pending`: y may stay undefined, and this
/// says what is to be made of x.
BatchNormResult batch_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   const Tensor& running_mean, const Tensor& running_var,
                                   const BatchNormOptions& options, const char* op = "batch_norm",
                                   const Moments* moments = nullptr,
                                   std::shared_ptr<const Normalization>* pending = nullptr);

struct BatchNormGrads {
  Tensor x;         ///< like x
  Tensor weight;    ///< [C]
  Tensor bias;      ///< [C]
  Tensor residual;  ///< like x; only where backward was given y
};

/// Gradients of batch_norm_forward's y, whose mean and rstd it gave: in training with respect to x through
/// the statistics too. dx is computed only when `need_input`. weight and bias may be undefined; bias is read
/// with `bounds` only, which let dy through where the result lies between them or is NaN. That is worked out
/// from x again; after a residual the result `y` itself is to be given, and then dy where it is open is the
/// residual's gradient, made in the same pass. (Without bounds that is dy.) `more_dy` is added to dy, where
/// it is given; `sums` are those of dy, where they are known. What the options say of residual and count is
/// not read.
BatchNormGrads batch_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                   const Tensor& bias, const Tensor& mean, const Tensor& rstd,
                                   const BatchNormOptions& options, bool need_input = true,
                                   const char* op = "batch_norm", const Tensor& y = {},
                                   const Tensor& more_dy = {}, const GradientSums* sums = nullptr);

}  // namespace ops
}  // namespace pleat
