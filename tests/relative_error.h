#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::test {

/// |got - wanted| / |wanted| as vectors, in float64; infinite when a number is not finite or sizes differ.
/// A `wanted` of zeros is measured absolutely.
inline double relative_error(const std::vector<double>& got, const std::vector<double>& wanted) {
  if (got.size() != wanted.size()) return std::numeric_limits<double>::infinity();
  double difference = 0;
  double length = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    length += wanted[i] * wanted[i];
  }
  const double error = length > 0 ? std::sqrt(difference / length) : std::sqrt(difference);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

inline double relative_error(const Tensor& got, const std::vector<double>& wanted) {
  return relative_error(got.to_vector<double>(), wanted);
}

inline double relative_error(const Tensor& got, const Tensor& wanted) {
  if (got.shape() != wanted.shape()) return std::numeric_limits<double>::infinity();
  return relative_error(got, wanted.to_vector<double>());
}

}  // namespace pleat::test
