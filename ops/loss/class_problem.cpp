#include "pleat/ops/loss/class_problem.h"

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/loss/kernels_cuda.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::ops {

ClassProblem::ClassProblem(const char* op, const Tensor& logits, const Tensor& target, const Tensor& weight,
                           ClassLossOptions options, Classes classes) {
  check<DTypeError>(is_floating(logits.dtype()), "{}: the input must be floating, got {}", op, logits);
  check<DTypeError>(!is_floating(target.dtype()) && target.dtype() != boolean,
                    "{}: class indices must be integers, got {}; convert them with to(int64)", op, target);
  for (const Tensor& t : {target, weight})
    check<DeviceError>(!t.defined() || t.device() == logits.device(),
                       "{}: input, class indices and weight must be on one device, got {} and {}", op, logits,
                       t);
  check<ShapeError>(logits.rank() >= 1, "{}: the input must be [C] or [N, C, ...], got {}", op, logits);
  check<ValueError>(options.label_smoothing >= 0 && options.label_smoothing <= 1,
                    "{}: label_smoothing must lie in [0, 1], got {}", op, options.label_smoothing);
  class_dim_ = logits.rank() == 1 ? 0 : 1;
  view_.classes = logits.size(class_dim_);
  Shape expected = logits.shape();
  expected.erase(expected.begin() + class_dim_);
  check<ShapeError>(target.shape() == expected,
                    "{}: {} classes of input {} need class indices of shape {}, got {}", op, view_.classes,
                    logits, expected, target);
  if (weight.defined()) {
    check<ShapeError>(weight.shape() == Shape{view_.classes},
                      "{}: the weight must be [{}], one number for each class, got {}", op, view_.classes,
                      weight);
    weights_ = to_format(cast(weight, float64), MemoryFormat::contiguous);
    view_.weights = weights_.data<double>();
    if (options.label_smoothing > 0) {
      weight_sum_ = reduce_sum(weights_);
      view_.weight_sum = weight_sum_.data<double>();
    }
  }
  target_ = to_format(cast(target, int64), MemoryFormat::contiguous);
  view_.indices = target_.data<int64_t>();
  view_.targets = target_.numel();
  view_.ignore_index = options.ignore_index;
  view_.label_smoothing = options.label_smoothing;
  if (logits.device().is_cpu() || (classes == Classes::check && options.check_target))
    check_classes(op, logits);

  // On a GPU half types are read as they are.
  logits_ = logits.device().is_cuda() ? logits : cast(logits, compute_dtype(logits.dtype()));
  if (!logits_.is_contiguous(MemoryFormat::channels_last))
    logits_ = to_format(logits_, MemoryFormat::contiguous);
  const bool classes_inside = logits.rank() < 3 || !logits_.is_contiguous();
  int64_t inner = 1;
  if (!classes_inside && logits_.numel() > 0)
    for (std::size_t d = 2; d < expected.size() + 1; ++d) inner *= logits.shape()[d];
  view_.inner = FastDivider(inner);
}

/// The first target whose class lies outside and is not the one to ignore, or the number of targets.
int64_t ClassProblem::first_outside(const char* op) const {
  if constexpr (with_cuda)
    if (target_.device().is_cuda()) return first_outside_cuda(op, target_, view_);
  const auto classes = static_cast<uint64_t>(view_.classes);
  int64_t outside = 0;  // counted without a branch, for the vector unit
  for (int64_t i = 0; i < view_.targets; ++i) {
    const bool is_outside = static_cast<uint64_t>(view_.indices[i]) >= classes;
    outside += (is_outside & (view_.indices[i] != view_.ignore_index)) ? 1 : 0;
  }
  if (outside == 0) return view_.targets;
  int64_t first = 0;
  while (first < view_.targets && (view_.class_of(first) >= 0 || view_.indices[first] == view_.ignore_index))
    ++first;
  return first;
}

void ClassProblem::check_classes(const char* op, const Tensor& logits) const {
  const int64_t first = first_outside(op);
  if (first == view_.targets) return;
  const auto outside = reshape(target_, {view_.targets});
  fail<IndexError>(
      "{}: class {} of target number {} lies outside [0, {}) (and is not ignore_index, {}); input {}", op,
      select(outside, 0, first).item<int64_t>(), first, view_.classes, view_.ignore_index, logits);
}

}  // namespace pleat::ops
