#include "pleat/ops/loss/class_problem.h"

#include <numeric>

#include "pleat/core/copy.h"
#include "pleat/core/format.h"

namespace pleat::ops {

ClassProblem::ClassProblem(const char* op, const Tensor& logits, const Tensor& target, const Tensor& weight,
                           ClassLossOptions options)
    : options_(options) {
  check<DTypeError>(is_floating(logits.dtype()), "{}: the input must be floating, got {}", op, logits);
  check<DTypeError>(!is_floating(target.dtype()) && target.dtype() != boolean,
                    "{}: class indices must be integers, got {}", op, target);
  for (const Tensor& t : {logits, target, weight})
    check<DeviceError>(!t.defined() || t.device().is_cpu(), "{}: this is Pleat built without CUDA, got {}",
                       op, t);
  check<ShapeError>(logits.rank() >= 1, "{}: the input must be [C] or [N, C, ...], got {}", op, logits);
  check<ValueError>(options.label_smoothing >= 0 && options.label_smoothing <= 1,
                    "{}: label_smoothing must lie in [0, 1], got {}", op, options.label_smoothing);
  class_dim_ = logits.rank() == 1 ? 0 : 1;
  classes_ = logits.size(class_dim_);
  Shape expected = logits.shape();
  expected.erase(expected.begin() + class_dim_);
  check<ShapeError>(target.shape() == expected,
                    "{}: {} classes of input {} need class indices of shape {}, got {}", op, classes_, logits,
                    expected, target);
  if (weight.defined()) {
    check<ShapeError>(weight.shape() == Shape{classes_},
                      "{}: the weight must be [{}], one number for each class, got {}", op, classes_, weight);
    weights_ = weight.to_vector<double>();
  }
  weight_sum_ = weights_.empty() ? static_cast<double>(classes_)
                                 : std::accumulate(weights_.begin(), weights_.end(), 0.0);

  target_ = to_format(cast(target, int64), MemoryFormat::contiguous);
  indices_ = target_.data<int64_t>();
  for (int64_t i = 0; i < target_.numel(); ++i)
    check<IndexError>(
        (indices_[i] >= 0 && indices_[i] < classes_) || indices_[i] == options.ignore_index,
        "{}: class {} of target number {} lies outside [0, {}) (and is not ignore_index, {}); input {}", op,
        indices_[i], i, classes_, options.ignore_index, logits);

  logits_ = cast(logits, logits.dtype() == float64 ? float64 : float32);
  if (!logits_.is_contiguous(MemoryFormat::channels_last))
    logits_ = to_format(logits_, MemoryFormat::contiguous);
  const bool classes_inside = logits.rank() < 3 || !logits_.is_contiguous();
  if (!classes_inside)
    for (std::size_t d = 2; d < expected.size() + 1; ++d) inner_ *= logits.shape()[d];
  if (logits_.numel() == 0) inner_ = 1;
}

}  // namespace pleat::ops
