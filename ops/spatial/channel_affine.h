// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/spatial/bounds.h"

/// What normalisations and the functions beside them tell each other of a tensor [N, C, spatial...], so that
/// nobody reads it only to find out.

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

/// How a result was made: by an Affine of each channel of x, element for element, limited to `bounds`. x and
/// the result lie channels_last.
class NormalizedBy {
 public:
  template <class T>
  NormalizedBy(const Tensor& x, Affine<T> numbers, const Bounds& bounds_)
      : bounds(bounds_), x_(x), version_(x.version()), numbers_(std::move(numbers)) {}

  /// x. Throws AutogradError when it was changed in place since.
  const Tensor& x() const {
    check<AutogradError>(x_.version() == version_,
                         "batch_norm: its input {} was changed in place before its result was read; change "
                         "a clone() of the input, or compute the result at once, by nn::FusionPolicy "
                         "guard{{{{.enabled = false}}}}",
                         x_.describe());
    return x_;
  }
  /// T is the type of x.
  template <class T>
  const Affine<T>& numbers() const {
    return std::get<Affine<T>>(numbers_);
  }

  const Bounds bounds;

 private:
  Tensor x_;
  uint64_t version_;
  std::variant<Affine<float>, Affine<double>> numbers_;
};

/// The result when nobody has read it yet. Convolutions on the CPU that copy their source anyway compute it
/// there.
class DeferredAffine : public Deferred {
 public:
  explicit DeferredAffine(std::shared_ptr<const NormalizedBy> of_) : of(std::move(of_)) {}
  const std::shared_ptr<const NormalizedBy> of;
};

/// Of a gradient dy of such a result, for each channel: the sums of dy and of dy * (x - shift), where dy
/// counts only between the bounds.
struct GradientSums {
  std::vector<double> dy;
  std::vector<double> dy_x;
  std::shared_ptr<const NormalizedBy> of = {};
};

}  // namespace pleat::ops
