// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/ops/loss/class_view.h"
#include "pleat/ops/loss/kernels.h"

namespace pleat::ops {

/// Logits, targets and weights, checked and laid out for a loop: in memory the logits are [outer, classes,
/// inner], and target number i belongs to outer i / inner and inner i % inner.
class ClassProblem {
 public:
  /// Whether targets outside of the classes are an error on CUDA, too, for which it waits for the device.
  enum class Classes : unsigned char { check, check_on_cpu };

  ClassProblem(const char* op, const Tensor& logits, const Tensor& target, const Tensor& weight,
               ClassLossOptions options, Classes classes = Classes::check_on_cpu);

  int64_t class_dim() const { return class_dim_; }
  int64_t classes() const { return view_.classes; }
  int64_t inner() const { return view_.inner.divisor(); }
  int64_t targets() const { return view_.targets; }
  const Shape& target_shape() const { return target_.shape(); }
  /// The logits in the order of the loop; on the CPU in float or double.
  const Tensor& logits() const { return logits_; }

  /// The rest, by element.
  const ClassView& view() const { return view_; }

 private:
  int64_t first_outside(const char* op) const;
  void check_classes(const char* op, const Tensor& logits) const;

  int64_t class_dim_ = 0;
  Tensor logits_;
  Tensor target_;      ///< int64, row-major
  Tensor weights_;     ///< float64, row-major; may be undefined
  Tensor weight_sum_;  ///< of these, where they are wanted
  ClassView view_;     ///< into these tensors
};

}  // namespace pleat::ops
