#include "pleat/ops/loss/pointwise_loss.h"

#include "pleat/core/create.h"
#include "pleat/core/record_function.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/loss/pointwise_functors.h"

namespace pleat::ops {
namespace {

using Kind = DistanceLoss::Kind;

void check_pair(const char* op, const Tensor& x, const Tensor& target) {
  check<ShapeError>(x.shape() == target.shape(),
                    "{}: input and target must have one shape, got {} and {}; reshape or expand one of them",
                    op, x, target);
}

DType result_type(const Tensor& x, const Tensor& target) {
  return floating_result(promote(x.dtype(), target.dtype()));
}

/// Calls `f(value, slope)` with the functors of the loss and of its derivative.
template <class F>
void with_functors(DistanceLoss loss, const F& f) {
  switch (loss.width == 0 && loss.kind == Kind::smooth_absolute ? Kind::absolute : loss.kind) {
    case Kind::squared:
      return f(SquaredDistance{}, SquaredDistanceBackward{});
    case Kind::absolute:
      return f(AbsoluteDistance{}, AbsoluteDistanceBackward{});
    case Kind::smooth_absolute:
      return f(SmoothDistance{loss.width}, SmoothDistanceBackward{loss.width});
    case Kind::huber:
      return f(HuberDistance{loss.width}, HuberDistanceBackward{loss.width});
  }
}

}  // namespace

Tensor distance_loss(const char* op, const Tensor& x, const Tensor& target, DistanceLoss loss) {
  const RecordOp range(op, x, target);
  check_pair(op, x, target);
  const DType dtype = result_type(x, target);
  const Tensor y = binary_result(op, x, target, dtype);
  with_functors(loss, [&](const auto& value, const auto&) {
    map_into<Floating>(op, dtype, y, std::array{x, target}, value);
  });
  return y;
}

Tensor distance_loss_backward(const char* op, const Tensor& dy, const Tensor& x, const Tensor& target,
                              DistanceLoss loss) {
  const RecordOp range(op, "_backward", dy, x, target);
  check_pair(op, x, target);
  const DType dtype = result_type(x, target);
  const Tensor dx = binary_result(op, x, target, dtype);
  with_functors(loss, [&](const auto&, const auto& slope) {
    map_into<Floating>(op, dtype, dx, std::array{dy, x, target}, slope);
  });
  return dx;
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& pos_weight) {
  const RecordOp range("bce_with_logits", x, target, pos_weight);
  const char* const op = "bce_with_logits";
  check_pair(op, x, target);
  const DType dtype = result_type(x, target);
  const Tensor y = binary_result(op, x, target, dtype);
  const Tensor positive =
      pos_weight.defined() ? pos_weight : full({}, 1.0, {.dtype = dtype, .device = x.device()});
  map_into<Floating>(op, dtype, y, std::array{x, target, positive}, BinaryCrossEntropy{});
  return y;
}

Tensor binary_cross_entropy_backward(const Tensor& dy, const Tensor& x, const Tensor& target,
                                     const Tensor& pos_weight) {
  const RecordOp range("bce_with_logits_backward", dy, x, target, pos_weight);
  const char* const op = "bce_with_logits";
  check_pair(op, x, target);
  const DType dtype = result_type(x, target);
  const Tensor dx = binary_result(op, x, target, dtype);
  const Tensor positive =
      pos_weight.defined() ? pos_weight : full({}, 1.0, {.dtype = dtype, .device = x.device()});
  map_into<Floating>(op, dtype, dx, std::array{dy, x, target, positive}, BinaryCrossEntropyBackward{});
  return dx;
}

}  // namespace pleat::ops
