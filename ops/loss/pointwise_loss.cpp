#include "pleat/ops/loss/pointwise_loss.h"

#include <cmath>

#include "pleat/core/create.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/elementwise/kernels.h"

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

template <class T>
T sign_of(T d) {
  return static_cast<T>(d > 0) - static_cast<T>(d < 0);
}

/// Calls `f(value, slope)` with f and f' as functions of the distance.
template <class T, class F>
void with_functions(DistanceLoss loss, const F& f) {
  const auto width = static_cast<T>(loss.width);
  const auto half = width / 2;
  switch (loss.width == 0 && loss.kind == Kind::smooth_absolute ? Kind::absolute : loss.kind) {
    case Kind::squared:
      return f([](T d) { return d * d; }, [](T d) { return 2 * d; });
    case Kind::absolute:
      return f([](T d) { return std::abs(d); }, [](T d) { return sign_of(d); });
    case Kind::smooth_absolute:
      return f([=](T d) { return std::abs(d) < width ? d * d / (2 * width) : std::abs(d) - half; },
               [=](T d) { return std::abs(d) < width ? d / width : sign_of(d); });
    case Kind::huber:
      return f([=](T d) { return std::abs(d) < width ? d * d / 2 : width * (std::abs(d) - half); },
               [=](T d) { return std::abs(d) < width ? d : width * sign_of(d); });
  }
}

/// log(1 + exp(-x)).
template <class T>
T softplus_of_negative(T x) {
  return std::log1p(vmath::exp(-std::abs(x))) + (x < 0 ? -x : T(0));
}

}  // namespace

Tensor distance_loss(const char* op, const Tensor& x, const Tensor& target, DistanceLoss loss) {
  check_pair(op, x, target);
  const DType dtype = result_type(x, target);
  const Tensor y = binary_result(op, x, target, dtype);
  dispatch_floating(op, dtype, [&]<class T>(Type<T>) {
    with_functions<T>(loss, [&](const auto& value, const auto&) {
      map_into<T, T, T>(op, y, x, target, [&](T a, T t) { return value(a - t); });
    });
  });
  return y;
}

Tensor distance_loss_backward(const char* op, const Tensor& dy, const Tensor& x, const Tensor& target,
                              DistanceLoss loss) {
  check_pair(op, x, target);
  const DType dtype = result_type(x, target);
  const Tensor dx = binary_result(op, x, target, dtype);
  dispatch_floating(op, dtype, [&]<class T>(Type<T>) {
    with_functions<T>(loss, [&](const auto&, const auto& slope) {
      map_into<T, T, T, T>(op, dx, dy, x, target, [&](T g, T a, T t) { return g * slope(a - t); });
    });
  });
  return dx;
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& pos_weight) {
  const char* const op = "bce_with_logits";
  check_pair(op, x, target);
  const DType dtype = result_type(x, target);
  const Tensor y = binary_result(op, x, target, dtype);
  const Tensor positive = pos_weight.defined() ? pos_weight : scalar(1.0, dtype);
  dispatch_floating(op, dtype, [&]<class T>(Type<T>) {
    map_into<T, T, T, T>(op, y, x, target, positive, [](T a, T t, T w) {
      return (1 - t) * a + (1 + (w - 1) * t) * softplus_of_negative(a);
    });
  });
  return y;
}

Tensor binary_cross_entropy_backward(const Tensor& dy, const Tensor& x, const Tensor& target,
                                     const Tensor& pos_weight) {
  const char* const op = "bce_with_logits";
  check_pair(op, x, target);
  const DType dtype = result_type(x, target);
  const Tensor dx = binary_result(op, x, target, dtype);
  const Tensor positive = pos_weight.defined() ? pos_weight : scalar(1.0, dtype);
  dispatch_floating(op, dtype, [&]<class T>(Type<T>) {
    elementwise<T, T, T, T, T>(op, dx, {dy, x, target, positive},
                               [](T* out, const T* g, const T* a, const T* t, const T* w, int64_t n) {
                                 for (int64_t i = 0; i < n; ++i) {
                                   const T sigmoid_of_negative = 1 / (1 + vmath::exp(a[i]));
                                   out[i] =
                                       g[i] * ((1 - t[i]) - (1 + (w[i] - 1) * t[i]) * sigmoid_of_negative);
                                 }
                               });
  });
  return dx;
}

}  // namespace pleat::ops
