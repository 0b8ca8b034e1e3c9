#pragma once

#include <optional>
#include <string>

#include "pleat/core/scope.h"
#include "pleat/core/tensor.h"

namespace pleat {

struct BatchNormOptions {
  bool training = false;  ///< normalise by the batch's statistics and update the running ones
  /// Weight of the batch in the running statistics: r <- (1 - momentum) r + momentum * batch. Without a value
  /// they are the plain average over all batches: momentum = 1 / (batches_tracked + 1).
  std::optional<double> momentum = 0.1;
  double eps = 1e-5;  ///< added to the variance
  bool relu = false;  ///< max(0, ...) of the result, in the same pass over memory
  int64_t batches_tracked =
      0;  ///< how many batches the running statistics have seen; read without momentum only
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
};

/// Sets the policy of this thread for a scope: `BatchNormPolicy guard{{.implementation = "reference"}};`
/// As with ConvPolicy, a backward pass obeys the policy in force at its forward call, not one around
/// backward().
class BatchNormPolicy {
 public:
  explicit BatchNormPolicy(BatchNormPolicyOptions options);

  static const BatchNormPolicyOptions& current();

 private:
  Scoped<BatchNormPolicyOptions> scope_;
};

namespace ops {

/// The result, and the statistics that it was normalised with.
struct BatchNormResult {
  Tensor y;
  Tensor mean;  ///< [C] float64
  Tensor rstd;  ///< [C] float64: 1 / sqrt(variance + eps)
};

/// y = (x - mean) / sqrt(variance + eps) * weight + bias, for each channel of x [N, C] or [N, C, spatial...]
/// of any number of spatial dimensions (Ioffe and Szegedy, 2015, algorithm 1). weight, bias [C] may be
/// undefined (1, 0). With `relu` y is max(0, that). Training takes mean and (biased) variance from the batch
/// and, when running_mean and running_var [C] are defined, updates those in place, with the unbiased
/// variance; else they are what x is normalised with. Statistics are computed in float32 or better, robust
/// against a large mean; y has x's type and memory format. An empty batch gives an empty result and leaves
/// the running statistics alone. Throws, before anything is changed: ShapeError (rank, lengths other than C,
/// one value per channel in training), DTypeError, DeviceError, ValueError (eps <= 0, momentum outside [0,
/// 1], no running statistics without training, an implementation that does not exist or cannot do it).
/// Messages begin with `op`.
BatchNormResult batch_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   const Tensor& running_mean, const Tensor& running_var,
                                   const BatchNormOptions& options, const char* op = "batch_norm");

struct BatchNormGrads {
  Tensor x;       ///< like x
  Tensor weight;  ///< [C]
  Tensor bias;    ///< [C]
};

/// Gradients of batch_norm_forward's y, whose mean and rstd it gave: in training with respect to x through
/// the statistics too. dx is computed only when `need_input`. weight and bias may be undefined; bias is read
/// with `relu` only, which lets dy through where the result, worked out from x again, is above 0.
BatchNormGrads batch_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                   const Tensor& bias, const Tensor& mean, const Tensor& rstd,
                                   const BatchNormOptions& options, bool need_input = true,
                                   const char* op = "batch_norm");

}  // namespace ops
}  // namespace pleat
