// Private header: not installed.
#pragma once

#include <cstddef>
#include <type_traits>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/tensor.h"

/// The types in which functors over single elements are computed.

namespace pleat::ops {

/// float, or double for float64.
struct Floating {
  static constexpr const char* needs = "a floating type";
  static constexpr const char* remedy = "";
  static constexpr bool supports(DType dtype) { return is_floating(dtype); }
  template <class F>
  static decltype(auto) dispatch(DType dtype, const F& f) {
    if (dtype == float64) return f(Type<double>{});
    return f(Type<float>{});
  }
};

/// uint8, int32, int64, float, double.
struct Numbers {
  static constexpr const char* needs = "numbers";
  static constexpr const char* remedy = "; convert it with to(int64) or use the logical functions";
  static constexpr bool supports(DType dtype) { return dtype != boolean; }
  template <class F>
  static decltype(auto) dispatch(DType dtype, const F& f) {
    if (dtype == uint8 || dtype == boolean) return f(Type<uint8_t>{});
    if (dtype == int32) return f(Type<int32_t>{});
    if (dtype == int64) return f(Type<int64_t>{});
    return Floating::dispatch(dtype, f);
  }
};

/// Numbers, of which bool is one: for what order alone decides.
struct Ordered : Numbers {
  static constexpr bool supports(DType) { return true; }
};

/// Every type as it is stored: for what only moves elements.
struct Stored {
  static constexpr const char* needs = "any type";
  static constexpr const char* remedy = "";
  static constexpr bool supports(DType) { return true; }
  template <class F>
  static decltype(auto) dispatch(DType dtype, const F& f) {
    return pleat::dispatch(dtype, f);
  }
};

/// Anything is asked whether it is "not 0".
struct Truths {
  static constexpr const char* needs = "any type";
  static constexpr const char* remedy = "";
  static constexpr bool supports(DType) { return true; }
  template <class F>
  static decltype(auto) dispatch(DType, const F& f) {
    return f(Type<bool>{});
  }
};

/// Anything is compared as double.
struct Doubles {
  static constexpr const char* needs = "any type";
  static constexpr const char* remedy = "";
  static constexpr bool supports(DType) { return true; }
  template <class F>
  static decltype(auto) dispatch(DType, const F& f) {
    return f(Type<double>{});
  }
};

/// What a functor gives: an element of the type it sees, or a bool.
struct Same {};
struct Truth {};
template <class Result, class T>
using OutputOf = std::conditional_t<std::is_same_v<Result, Truth>, bool, T>;

/// What a functor sees as its input number `input`: an element of the type computed in, or the bool of a mask
/// where the functor says `static constexpr std::size_t mask = input`.
template <class F, class T, std::size_t input>
struct InputType {
  using type = T;
};
template <class F, class T, std::size_t input>
requires(F::mask == input) struct InputType<F, T, input> {
  using type = bool;
};
template <class F, class T, std::size_t input>
using InputOf = typename InputType<F, T, input>::type;

template <class Types>
void check_types(const char* op, DType dtype) {
  check<DTypeError>(Types::supports(dtype), "{}: needs {}, got {}{}", op, Types::needs, dtype, Types::remedy);
}

/// Calls `f(Type<T>{})` for the type in which `dtype` is computed: float or double. Others throw DTypeError.
template <class F>
decltype(auto) dispatch_floating(const char* op, DType dtype, const F& f) {
  check_types<Floating>(op, dtype);
  return Floating::dispatch(dtype, f);
}

/// The floating type of a result: `dtype` itself, float32 for integers and bool.
inline DType floating_result(DType dtype) { return is_floating(dtype) ? dtype : float32; }

}  // namespace pleat::ops
