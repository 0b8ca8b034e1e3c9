// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/spatial/bounds.h"

/// Numbers for each channel of a tensor [N, C, spatial...]: what a convolution and the normalisation beside
/// it hand to each other when they are computed together (ops/conv/conv_norm_act.h).

namespace pleat::ops {

/// For each group of elements: the mean, and the sum of squared distances from it.
struct Moments {
  std::vector<double> mean;
  std::vector<double> m2;
};

/// Merges the moments (mean_b, m2_b) of n_b values into those of n_a values.
inline void merge_moments(double& mean_a, double& m2_a, double n_a, double mean_b, double m2_b, double n_b) {
  const double delta = mean_b - mean_a;
  const double part = n_b / (n_a + n_b);
  mean_a += delta * part;
  m2_a += m2_b + delta * delta * n_a * part;
}

/// y = (x - shift) * scale + bias, numbers for each group. The shift is apart, so that x - mean loses
/// nothing.
template <class T>
struct Affine {
  explicit Affine(std::size_t groups) : shift(groups), scale(groups), bias(groups) {}
  std::vector<T> shift;
  std::vector<T> scale;
  std::vector<T> bias;
};

/// An Affine of each channel, limited to `bounds`: what a batch norm and an activation do to each element of
/// x when the statistics are known.
class Normalization {
 public:
  template <class T>
  Normalization(Affine<T> numbers, const Bounds& bounds_) : bounds(bounds_), numbers_(std::move(numbers)) {}

  /// T is the type of x.
  template <class T>
  const Affine<T>& numbers() const {
    return std::get<Affine<T>>(numbers_);
  }
  const Bounds bounds;

 private:
  std::variant<Affine<float>, Affine<double>> numbers_;
};

/// Writes what it makes of x, which lies dense, channels_last.
Tensor normalized(const Normalization& by, const Tensor& x);

/// Of a gradient dy of a Normalization of x, for each channel: the sums of dy and of dy * (x - shift), where
/// dy counts only between the bounds.
struct GradientSums {
  std::vector<double> dy;
  std::vector<double> dy_x;
};

}  // namespace pleat::ops
