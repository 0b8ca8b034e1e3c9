// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/host_device.h"
#include "pleat/core/kernels/fast_divider.h"

namespace pleat::ops {

/// A ClassProblem (class_problem.h) as loops and kernels see it.
struct ClassView {
  const int64_t* indices = nullptr;
  const double* weights = nullptr;     ///< null: 1 for each class
  const double* weight_sum = nullptr;  ///< of these
  int64_t classes = 0;
  int64_t targets = 0;
  int64_t ignore_index = 0;
  double label_smoothing = 0;
  FastDivider inner;

  /// The class of a target, -1 when it is to be ignored (as one that does not exist is, too).
  PLEAT_HOST_DEVICE int64_t class_of(int64_t i) const {
    const int64_t t = indices[i];
    return t == ignore_index || t < 0 || t >= classes ? -1 : t;
  }
  PLEAT_HOST_DEVICE double weight(int64_t c) const { return weights == nullptr ? 1 : weights[c]; }
  PLEAT_HOST_DEVICE double sum_of_weights() const {
    return weight_sum == nullptr ? static_cast<double>(classes) : *weight_sum;
  }
  /// What the target's own class gets, and what every class gets besides, as a factor of its weight.
  PLEAT_HOST_DEVICE double own_share() const { return 1 - label_smoothing; }
  PLEAT_HOST_DEVICE double common_share() const { return label_smoothing / static_cast<double>(classes); }
  /// The sum of all shares of a target of that class.
  PLEAT_HOST_DEVICE double share_sum(int64_t own) const {
    return own_share() * weight(own) + common_share() * sum_of_weights();
  }

  /// Where target i's logit of class 0 lies; class c lies c * inner further.
  PLEAT_HOST_DEVICE int64_t first_logit(int64_t i) const {
    int64_t within = i;
    return inner.divide(within) * classes * inner.divisor() + within;
  }
};

}  // namespace pleat::ops
