#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/tensor.h"

/// Starting values for parameters. All change the tensor in place, off the tape, and return it; all throw
/// DTypeError unless it is floating. The same seed gives the same values for any memory format and number of
/// threads.

namespace pleat::nn::init {

/// The factor that keeps the standard deviation of activations through a nonlinearity: "linear"
/// (and "conv1d" ... "conv_transpose3d"), "sigmoid" 1; "tanh" 5/3; "relu" sqrt(2); "leaky_relu"
/// sqrt(2 / (1 + param^2)), param = 0.01 unless given; "selu" 3/4. Throws ValueError for other
/// names.
double calculate_gain(const std::string& nonlinearity, std::optional<double> param = {});

/// Of a weight [out, in, kernel...]: the number of inputs of one output, and of outputs that one
/// input is used for. Throws ShapeError below rank 2.
struct Fans {
  int64_t in;
  int64_t out;
};
Fans fan_in_and_fan_out(const Tensor& weight);

/// Uniform on [low, high).
const Tensor& uniform_(const Tensor& x, Real low = 0, Real high = 1,
                       Generator& generator = default_generator());
/// Normally distributed.
const Tensor& normal_(const Tensor& x, Real mean = 0, Real std = 1,
                      Generator& generator = default_generator());
/// The normal distribution restricted to [low, high].
struct TruncNormalOptions {
  double mean = 0;
  double std = 1;
  double low = -2;
  double high = 2;
};
const Tensor& trunc_normal_(const Tensor& x, TruncNormalOptions options = {},
                            Generator& generator = default_generator());
const Tensor& constant_(const Tensor& x, Real value);  ///< all elements become `value`
const Tensor& zeros_(const Tensor& x);                 ///< all elements become 0
const Tensor& ones_(const Tensor& x);                  ///< all elements become 1

struct KaimingOptions {
  double a = 0;                             ///< slope of leaky_relu below 0
  std::string mode = "fan_in";              ///< keep the variance forwards; or "fan_out": backwards
  std::string nonlinearity = "leaky_relu";  ///< see calculate_gain
};
/// He et al., "Delving deep into rectifiers" (2015): standard deviation gain / sqrt(fan). The uniform numbers
/// are from [-b, b] with b = sqrt(3) times that.
const Tensor& kaiming_uniform_(const Tensor& weight, const KaimingOptions& options = {},
                               Generator& generator = default_generator());
/// The same deviation, normally distributed.
const Tensor& kaiming_normal_(const Tensor& weight, const KaimingOptions& options = {},
                              Generator& generator = default_generator());

/// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010):
/// standard deviation gain * sqrt(2 / (fan_in + fan_out)).
const Tensor& xavier_uniform_(const Tensor& weight, Real gain = 1,
                              Generator& generator = default_generator());
/// The same deviation, normally distributed.
const Tensor& xavier_normal_(const Tensor& weight, Real gain = 1, Generator& generator = default_generator());

/// A matrix [out, in * kernel] with orthonormal rows (columns, where there are fewer), times gain: Saxe et
/// al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks" (2014). Throws
/// ShapeError below rank 2.
const Tensor& orthogonal_(const Tensor& weight, Real gain = 1, Generator& generator = default_generator());

/// A convolution [out, in, kernel...] that passes on as many channels as it can, in each group. Throws
/// ShapeError unless the rank is 3 to 5 and `groups` divides out.
const Tensor& dirac_(const Tensor& weight, Integer groups = 1);

}  // namespace pleat::nn::init
