// Private header: not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "pleat/ops/loss/class_loss.h"

namespace pleat::ops {

/// Logits, targets and weights, checked and laid out for a walk: in memory the logits are [outer, classes,
/// inner], and target number i belongs to outer i / inner and inner i % inner.
class ClassProblem {
 public:
  ClassProblem(const char* op, const Tensor& logits, const Tensor& target, const Tensor& weight,
               ClassLossOptions options);

  int64_t class_dim() const { return class_dim_; }
  int64_t classes() const { return classes_; }
  int64_t inner() const { return inner_; }
  int64_t targets() const { return target_.numel(); }
  const Shape& target_shape() const { return target_.shape(); }
  /// The logits in float or double, in an order for the walk.
  const Tensor& logits() const { return logits_; }

  /// The class of a target, -1 when it is to be ignored.
  int64_t class_of(int64_t i) const {
    const int64_t t = indices_[i];
    return t == options_.ignore_index ? -1 : t;
  }
  double weight(int64_t c) const { return weights_.empty() ? 1 : weights_[static_cast<std::size_t>(c)]; }
  /// What the target's own class gets, and what every class gets besides, as a factor of its weight.
  double own_share() const { return 1 - options_.label_smoothing; }
  double common_share() const { return options_.label_smoothing / static_cast<double>(classes_); }
  double weight_sum() const { return weight_sum_; }

  /// Where target i's logit of class 0 lies; class c lies c * inner() further.
  int64_t first_logit(int64_t i) const { return i / inner_ * classes_ * inner_ + i % inner_; }

 private:
  ClassLossOptions options_;
  int64_t class_dim_ = 0;
  int64_t classes_ = 0;
  int64_t inner_ = 1;
  Tensor logits_;
  Tensor target_;
  const int64_t* indices_ = nullptr;  ///< target_'s elements
  std::vector<double> weights_;
  double weight_sum_ = 0;
};

}  // namespace pleat::ops
