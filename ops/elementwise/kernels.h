// Private header: not installed.
#pragma once

#include <array>

#include "pleat/core/elementwise.h"
#include "pleat/core/format.h"

/// How an elementwise operation is written: a lambda over single elements, instantiated for the types it
/// computes in and mapped over plain arrays by a loop that the compiler vectorises (so the lambda should
/// choose between values rather than branch). Every lane and every rest of a vector runs the same arithmetic:
/// the bits of a result do not depend on where an element lies or on how threads share the work, as they
/// would with Eigen's packet functions. Half types are computed in float32 (the loop of core/elementwise.h
/// converts), so there are no kernels for them.

namespace pleat::ops {

// Arrays may be the same one (in place), but never overlap otherwise: iterations are independent.
#if defined(__clang__)
#define PLEAT_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define PLEAT_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define PLEAT_INDEPENDENT_ITERATIONS
#endif

/// y[i] = f(a[i], ...).
template <class Out, class A, class F>
void map(Out* y, const A* a, int64_t n, const F& f) {
  PLEAT_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i]);
}
template <class Out, class A, class B, class F>
void map(Out* y, const A* a, const B* b, int64_t n, const F& f) {
  PLEAT_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}
template <class Out, class A, class B, class C, class F>
void map(Out* y, const A* a, const B* b, const C* c, int64_t n, const F& f) {
  PLEAT_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i], c[i]);
}

#undef PLEAT_INDEPENDENT_ITERATIONS

/// Kernels read bools as the bytes they are: loops that choose by a byte are vectorised, by a bool they are
/// not.
template <class T>
const T* readable(const T* data) {
  return data;
}
inline const uint8_t* readable(const bool* data) { return reinterpret_cast<const uint8_t*>(data); }

/// out = f(a, ...), computed on elements of type A, B, C (bool comes as uint8_t, 0 or 1); f gives an Out.
template <class Out, class A, class F>
void map_into(const char* op, const Tensor& out, const Tensor& a, const F& f) {
  elementwise<Out, A>(op, out, {a}, [&f](Out* y, const A* p, int64_t n) { map(y, readable(p), n, f); });
}
template <class Out, class A, class B, class F>
void map_into(const char* op, const Tensor& out, const Tensor& a, const Tensor& b, const F& f) {
  elementwise<Out, A, B>(op, out, {a, b}, [&f](Out* y, const A* p, const B* q, int64_t n) {
    map(y, readable(p), readable(q), n, f);
  });
}
template <class Out, class A, class B, class C, class F>
void map_into(const char* op, const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c,
              const F& f) {
  elementwise<Out, A, B, C>(op, out, {a, b, c}, [&f](Out* y, const A* p, const B* q, const C* r, int64_t n) {
    map(y, readable(p), readable(q), readable(r), n, f);
  });
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
    case boolean:
      break;
    case uint8:
      return f(Type<uint8_t>{});
    case int32:
      return f(Type<int32_t>{});
    case int64:
      return f(Type<int64_t>{});
    case float64:
      return f(Type<double>{});
    case bfloat16:
    case float16:
    case float32:
      return f(Type<float>{});
  }
  fail<DTypeError>("{}: needs numbers, got bool; convert it with to(int64) or use the logical functions", op);
}

/// The same where order is all that matters: bool counts as uint8.
template <class F>
decltype(auto) dispatch_ordered(const char* op, DType dtype, F&& f) {
  return dispatch_number(op, dtype == boolean ? uint8 : dtype, std::forward<F>(f));
}

/// The floating type of a result: `dtype` itself, float32 for integers and bool.
inline DType floating_result(DType dtype) { return is_floating(dtype) ? dtype : float32; }

/// A new tensor for the result of the inputs, in their memory order.
inline Tensor unary_result(const Tensor& x, DType dtype) {
  const std::array inputs = {x};
  return empty_as(inputs, x.shape(), dtype);
}
inline Tensor binary_result(const char* op, const Tensor& a, const Tensor& b, DType dtype) {
  const std::array inputs = {a, b};
  return empty_as(inputs, broadcast(a.shape(), b.shape(), op), dtype);
}

/// out = f(x) in floating arithmetic.
template <class F>
void unary_floating_into(const char* op, const Tensor& out, const Tensor& x, const F& f) {
  dispatch_floating(op, floating_result(x.dtype()), [&]<class T>(Type<T>) { map_into<T, T>(op, out, x, f); });
}
/// f(x), floating: integers become float32.
template <class F>
Tensor unary_floating(const char* op, const Tensor& x, const F& f) {
  const Tensor out = unary_result(x, floating_result(x.dtype()));
  unary_floating_into(op, out, x, f);
  return out;
}

/// out = f(x) in x's own type.
template <class F>
void unary_number_into(const char* op, const Tensor& out, const Tensor& x, const F& f) {
  dispatch_number(op, x.dtype(), [&]<class T>(Type<T>) { map_into<T, T>(op, out, x, f); });
}
template <class F>
Tensor unary_number(const char* op, const Tensor& x, const F& f) {
  const Tensor out = unary_result(x, x.dtype());
  unary_number_into(op, out, x, f);
  return out;
}

/// out = f(a, b) in the promoted type of a and b.
template <class F>
void binary_into(const char* op, const Tensor& out, const Tensor& a, const Tensor& b, const F& f) {
  dispatch_number(op, promote(a.dtype(), b.dtype()),
                  [&]<class T>(Type<T>) { map_into<T, T, T>(op, out, a, b, f); });
}
template <class F>
Tensor binary(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const Tensor out = binary_result(op, a, b, promote(a.dtype(), b.dtype()));
  binary_into(op, out, a, b, f);
  return out;
}

/// out = f(a, b) in the promoted floating type of a and b: integers are computed in float32.
template <class F>
void binary_floating_into(const char* op, const Tensor& out, const Tensor& a, const Tensor& b, const F& f) {
  dispatch_floating(op, floating_result(promote(a.dtype(), b.dtype())),
                    [&]<class T>(Type<T>) { map_into<T, T, T>(op, out, a, b, f); });
}
template <class F>
Tensor binary_floating(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const Tensor out = binary_result(op, a, b, floating_result(promote(a.dtype(), b.dtype())));
  binary_floating_into(op, out, a, b, f);
  return out;
}

/// Integer arithmetic wraps around, as everywhere in array libraries: computed without sign, where C++
/// defines it.
template <class T>
auto wrapping(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::make_unsigned_t<T>>(value);
  else
    return value;
}

}  // namespace pleat::ops
