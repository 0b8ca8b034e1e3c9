#pragma once

#include <cstdint>
#include <optional>

#include "pleat/core/tensor/tensor.h"

/// Numbers at a place in the order of others; differentiable. They are sorted for it. NaN in gives NaN.

namespace pleat {

struct MedianOptions {
  std::optional<int64_t> dim = {};  ///< none: of all elements
  bool keepdim = false;
};
/// The middle of the sorted elements, of two the lower; in x's type. The gradient goes to one of equal
/// ones. Throws ShapeError when there are none, IndexError.
Tensor median(const Tensor& x, MedianOptions options = {});

enum class QuantileInterpolation : unsigned char {
  linear,    ///< between the two elements around
  lower,     ///< the one before
  higher,    ///< the one behind
  midpoint,  ///< the mean of both
  nearest    ///< the nearer one, of two the one at an even place
};
struct QuantileOptions {
  std::optional<int64_t> dim = {};  ///< none: of all elements
  bool keepdim = false;
  QuantileInterpolation interpolation = QuantileInterpolation::linear;
};
/// The element at place q (n - 1) of the sorted n, with q in [0, 1]; integers give float32. Throws as median,
/// ValueError for another q.
Tensor quantile(const Tensor& x, Real q, QuantileOptions options = {});

}  // namespace pleat
