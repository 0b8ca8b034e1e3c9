#include "pleat/nn/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <Eigen/Core>
#include <Eigen/QR>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random_functors.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/option_checks.h"

namespace pleat::nn::init {
namespace {

void check_floating(const char* op, const Tensor& x) {
  check<DTypeError>(is_floating(x.dtype()), "{}: needs a floating tensor, got {}", op, x);
}

/// The fan that Kaiming's mode names.
int64_t fan_of(const char* op, const Tensor& weight, const std::string& mode) {
  check<ValueError>(mode == "fan_in" || mode == "fan_out", "{}: mode must be 'fan_in' or 'fan_out', got '{}'",
                    op, mode);
  const Fans fans = fan_in_and_fan_out(weight);
  return mode == "fan_in" ? fans.in : fans.out;
}

double kaiming_std(const char* op, const Tensor& weight, const KaimingOptions& options) {
  check_floating(op, weight);
  const double gain = calculate_gain(options.nonlinearity, options.a);
  // A weight without elements has no fan, and nothing to fill.
  return gain / std::sqrt(static_cast<double>(std::max<int64_t>(fan_of(op, weight, options.mode), 1)));
}

double xavier_std(const char* op, const Tensor& weight, double gain) {
  check_floating(op, weight);
  check_at_least_0(op, "gain", gain);
  const Fans fans = fan_in_and_fan_out(weight);
  return gain * std::sqrt(2 / static_cast<double>(std::max<int64_t>(fans.in + fans.out, 1)));
}

/// Probability that a standard normal number is below x.
double normal_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

/// The x in [low, high] for which normal_below(x) = p. Precise where p is small: halvings come near, where
/// Newton's steps double the digits.
double normal_quantile(double p, double low, double high) {
  for (int i = 0; i < 12; ++i) {
    const double middle = (low + high) / 2;
    (normal_below(middle) < p ? low : high) = middle;
  }
  double x = (low + high) / 2;
  for (int i = 0; i < 4; ++i) {
    const double density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    x -= (normal_below(x) - p) / density;
  }
  return x;
}

}  // namespace

double calculate_gain(const std::string& nonlinearity, std::optional<double> param) {
  for (const char* linear : {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                             "conv_transpose3d", "sigmoid"})
    if (nonlinearity == linear) return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::numbers::sqrt2;
  if (nonlinearity == "selu") return 0.75;
  check<ValueError>(
      nonlinearity == "leaky_relu",
      "calculate_gain: knows linear, conv1d ... conv_transpose3d, sigmoid, tanh, relu, leaky_relu and "
      "selu, got '{}'",
      nonlinearity);
  const double slope = param.value_or(0.01);
  check_finite("calculate_gain", "the slope of leaky_relu", slope);
  return std::sqrt(2 / (1 + slope * slope));
}

Fans fan_in_and_fan_out(const Tensor& weight) {
  check<ShapeError>(weight.rank() >= 2, "init: fans need a weight [out, in, ...], got {}", weight);
  int64_t kernel = 1;
  for (int64_t d = 2; d < weight.rank(); ++d) kernel = checked_multiply(kernel, weight.size(d), "init");
  return {checked_multiply(weight.size(1), kernel, "init"), checked_multiply(weight.size(0), kernel, "init")};
}

const Tensor& uniform_(const Tensor& x, Real low, Real high, Generator& generator) {
  fill_uniform_(x, low, high, generator);
  return x;
}

const Tensor& normal_(const Tensor& x, Real mean, Real std, Generator& generator) {
  fill_normal_(x, mean, std, generator);
  return x;
}

const Tensor& trunc_normal_(const Tensor& x, TruncNormalOptions o, Generator& generator) {
  check_floating("trunc_normal_", x);
  check<ValueError>(std::isfinite(o.mean) && std::isfinite(o.std) && o.std > 0 && o.low < o.high,
                    "trunc_normal_: needs a finite mean, std > 0 and low < high, got {}, {}, {} and {}",
                    o.mean, o.std, o.low, o.high);
  // In units of std from the mean; a window above it is drawn as its mirror image, where small probabilities
  // are precise. Beyond 38 there is no probability left in a double.
  const bool mirror = o.low > o.mean;
  const double side = mirror ? -1 : 1;
  const double low = std::clamp(side * ((mirror ? o.high : o.low) - o.mean) / o.std, -38.0, 38.0);
  const double high = std::clamp(side * ((mirror ? o.low : o.high) - o.mean) / o.std, -38.0, 38.0);
  const Tensor drawn = empty(x.shape(), {.dtype = float64, .device = Device()});
  fill_uniform_(drawn, normal_below(low), normal_below(high), generator);
  double* values = drawn.data<double>();
  // Ends that x's type has, past which its rounding does not lead.
  double least = 0, most = 0;
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating(dtype_of<T>())) {
      const auto ends = ends_of<T>(o.low, o.high, true);
      least = convert<double>(ends[0]), most = convert<double>(ends[1]);
    }
  });
  parallel_for(0, drawn.numel(), 4096, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      values[i] = std::clamp(o.mean + side * o.std * normal_quantile(values[i], low, high), least, most);
  });
  ops::copy_into(x, ops::to_device(drawn, x.device()));
  return x;
}

const Tensor& constant_(const Tensor& x, Real value) {
  check_floating("constant_", x);
  check<ValueError>(!std::isnan(value), "constant_: the value must be a number, got {}", value);
  ops::fill(x, double{value});
  return x;
}

const Tensor& zeros_(const Tensor& x) { return constant_(x, 0); }
const Tensor& ones_(const Tensor& x) { return constant_(x, 1); }

const Tensor& kaiming_uniform_(const Tensor& weight, const KaimingOptions& options, Generator& generator) {
  const double bound = std::numbers::sqrt3 * kaiming_std("kaiming_uniform_", weight, options);
  return uniform_(weight, -bound, bound, generator);
}

const Tensor& kaiming_normal_(const Tensor& weight, const KaimingOptions& options, Generator& generator) {
  return normal_(weight, 0, kaiming_std("kaiming_normal_", weight, options), generator);
}

const Tensor& xavier_uniform_(const Tensor& weight, Real gain, Generator& generator) {
  const double bound = std::numbers::sqrt3 * xavier_std("xavier_uniform_", weight, gain);
  return uniform_(weight, -bound, bound, generator);
}

const Tensor& xavier_normal_(const Tensor& weight, Real gain, Generator& generator) {
  return normal_(weight, 0, xavier_std("xavier_normal_", weight, gain), generator);
}

const Tensor& orthogonal_(const Tensor& weight, Real gain, Generator& generator) {
  check_floating("orthogonal_", weight);
  check_finite("orthogonal_", "gain", gain);
  check<ShapeError>(weight.rank() >= 2, "orthogonal_: needs a weight [out, in, ...], got {}", weight);
  const Tensor normal = empty(weight.shape(), {.dtype = float64, .device = Device()});
  fill_normal_(normal, 0, 1, generator);
  if (normal.numel() == 0) return weight;
  const int64_t rows = weight.size(0);
  const int64_t columns = normal.numel() / rows;
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> matrix(
      normal.data<double>(), rows, columns);
  const bool wide = rows < columns;
  const Eigen::MatrixXd tall = wide ? Eigen::MatrixXd(matrix.transpose()) : Eigen::MatrixXd(matrix);
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(tall);
  Eigen::MatrixXd q = qr.householderQ() * Eigen::MatrixXd::Identity(tall.rows(), tall.cols());
  // Uniform over orthogonal matrices only with R's diagonal positive (Mezzadri, 2007).
  for (int64_t column = 0; column < q.cols(); ++column)
    if (qr.matrixQR()(column, column) < 0) q.col(column) *= -1;
  if (wide)
    matrix = gain * q.transpose();
  else
    matrix = gain * q;
  ops::copy_into(weight, ops::to_device(normal, weight.device()));
  return weight;
}

const Tensor& dirac_(const Tensor& weight, Integer groups) {
  check_floating("dirac_", weight);
  check<ShapeError>(weight.rank() >= 3 && weight.rank() <= 5,
                    "dirac_: needs a weight [out, in, kernel...], got {}", weight);
  check_at_least("dirac_", "groups", groups, 1);
  check<ShapeError>(weight.size(0) % groups == 0, "dirac_: groups = {} must divide the {} outputs", groups,
                    weight.size(0));
  ops::fill(weight, 0);
  const int64_t outputs = weight.size(0) / groups;
  int64_t middle = weight.offset();
  for (int64_t d = 2; d < weight.rank(); ++d)
    middle += weight.size(d) / 2 * weight.strides()[static_cast<std::size_t>(d)];
  if (weight.numel() == 0) return weight;
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t channel = 0; channel < std::min(outputs, weight.size(1)); ++channel)
      ops::fill(weight.as_strided({}, {},
                                  middle + (group * outputs + channel) * weight.strides()[0] +
                                      channel * weight.strides()[1]),
                1);
  return weight;
}

}  // namespace pleat::nn::init
