// Private header: not installed.
#pragma once

#include <Eigen/Core>
#include <array>

#include "pleat/core/elementwise.h"
#include "pleat/core/format.h"

/// How an elementwise operation is written: a lambda over Eigen arrays, instantiated for the types it computes in.
/// Half types are computed in float32 (the loop converts), so there are no kernels for them.

namespace pleat::ops {

template <class T>
auto array(T* data, int64_t n) {
  return Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>(data, n);
}
template <class T>
auto array(const T* data, int64_t n) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(data, n);
}

/// Calls `f(Type<T>{})` for the type in which `dtype` is computed: float or double. Others throw DTypeError.
template <class F>
decltype(auto) dispatch_floating(const char* op, DType dtype, F&& f) {
  check<DTypeError>(is_floating(dtype), "{}: needs a floating type, got {}", op, dtype);
  if (dtype == float64) return f(Type<double>{});
  return f(Type<float>{});
}

/// The same for numbers of any kind: uint8, int32, int64, float, double; bool throws DTypeError.
template <class F>
decltype(auto) dispatch_number(const char* op, DType dtype, F&& f) {
  switch (dtype) {
    case boolean: break;
    case uint8: return f(Type<uint8_t>{});
    case int32: return f(Type<int32_t>{});
    case int64: return f(Type<int64_t>{});
    case float64: return f(Type<double>{});
    case bfloat16:
    case float16:
    case float32: return f(Type<float>{});
  }
  fail<DTypeError>("{}: needs numbers, got bool; convert it with to(int64) or use the logical functions", op);
}

/// The floating type of a result: `dtype` itself, float32 for integers and bool.
inline DType floating_result(DType dtype) { return is_floating(dtype) ? dtype : float32; }

/// y = f(x), floating: `f(array x) -> array expression`. Integers become float32.
template <class F>
Tensor unary_floating(const char* op, const Tensor& x, F f) {
  const DType dtype = floating_result(x.dtype());
  const std::array inputs = {x};
  const Tensor out = empty_as(inputs, x.shape(), dtype);
  dispatch_floating(op, dtype, [&]<class T>(Type<T>) {
    elementwise<T, T>(op, out, {x}, [&](T* y, const T* a, int64_t n) { array(y, n) = f(array(a, n)); });
  });
  return out;
}

/// out = f(a, b) in the promoted type of a and b.
template <class F>
void binary_into(const char* op, const Tensor& out, const Tensor& a, const Tensor& b, F f) {
  dispatch_number(op, promote(a.dtype(), b.dtype()), [&]<class T>(Type<T>) {
    elementwise<T, T, T>(op, out, {a, b}, [&](T* y, const T* p, const T* q, int64_t n) {
      array(y, n) = f(array(p, n), array(q, n));
    });
  });
}

/// A new tensor for the result of a and b in memory order of the inputs.
inline Tensor binary_result(const char* op, const Tensor& a, const Tensor& b, DType dtype) {
  const std::array inputs = {a, b};
  return empty_as(inputs, broadcast(a.shape(), b.shape(), op), dtype);
}

}  // namespace pleat::ops
