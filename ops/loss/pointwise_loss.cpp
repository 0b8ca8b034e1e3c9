// Host and device.
#include "pleat/ops/loss/pointwise_loss.h"

#include <cmath>

#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/vector_math.h"

namespace pleat::ops {
namespace {

template <class T>
PLEAT_HOST_DEVICE T sign_of(T d) {
  return static_cast<T>(d > 0) - static_cast<T>(d < 0);
}

struct SquaredDistance {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x, T target) const {
    const T d = x - target;
    return d * d;
  }
};

struct SquaredDistanceBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T target) const {
    return dy * (2 * (x - target));
  }
};

struct AbsoluteDistance {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x, T target) const {
    return std::abs(x - target);
  }
};

struct AbsoluteDistanceBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T target) const {
    return dy * sign_of(x - target);
  }
};

struct SmoothDistance {
  double width;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x, T target) const {
    const T d = x - target;
    const T w = static_cast<T>(width);
    return std::abs(d) < w ? d * d / (2 * w) : std::abs(d) - w / 2;
  }
};

struct SmoothDistanceBackward {
  double width;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T target) const {
    const T d = x - target;
    const T w = static_cast<T>(width);
    return dy * (std::abs(d) >= w ? sign_of(d) : d / w);  // NaN stays
  }
};

struct HuberDistance {
  double width;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x, T target) const {
    const T d = x - target;
    const T w = static_cast<T>(width);
    return std::abs(d) < w ? d * d / 2 : w * (std::abs(d) - w / 2);
  }
};

struct HuberDistanceBackward {
  double width;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T target) const {
    const T d = x - target;
    const T w = static_cast<T>(width);
    return dy * (std::abs(d) >= w ? w * sign_of(d) : d);
  }
};

struct BinaryCrossEntropy {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x, T target, T positive) const {
    return (1 - target) * x + (1 + (positive - 1) * target) * vmath::softplus(-x);
  }
};

struct BinaryCrossEntropyBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T target, T positive) const {
    const T sigmoid_of_negative = 1 / (1 + vmath::exp(x));
    return dy * ((1 - target) - (1 + (positive - 1) * target) * sigmoid_of_negative);
  }
};

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
