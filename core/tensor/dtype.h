#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <type_traits>

#include "pleat/core/tensor/half.h"

namespace pleat {

/// Element types. The order is that of promotion inside a category: see `promote`.
enum class DType : uint8_t { boolean, uint8, int32, int64, bfloat16, float16, float32, float64 };

using enum DType;  // pleat::float32 and so on

/// Bytes of one element.
constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case boolean:
    case uint8:
      return 1;
    case bfloat16:
    case float16:
      return 2;
    case int32:
    case float32:
      return 4;
    case int64:
    case float64:
      return 8;
  }
  return 0;
}

/// "float32", "int64", "bool" ...
constexpr std::string_view name(DType dtype) {
  switch (dtype) {
    case boolean:
      return "bool";
    case uint8:
      return "uint8";
    case int32:
      return "int32";
    case int64:
      return "int64";
    case bfloat16:
      return "bfloat16";
    case float16:
      return "float16";
    case float32:
      return "float32";
    case float64:
      return "float64";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, DType dtype);

constexpr bool is_floating(DType dtype) { return dtype >= bfloat16; }
constexpr bool is_half(DType dtype) { return dtype == bfloat16 || dtype == float16; }

/// The type of a result of two tensors: the later category of bool < integer < floating wins, inside a
/// category the larger type; bfloat16 with float16 gives float32. Tensors of rank 0 count like any other;
/// plain C++ numbers are weak (see `promote_with_number`).
constexpr DType promote(DType a, DType b) {
  if ((a == bfloat16 && b == float16) || (a == float16 && b == bfloat16)) return float32;
  return a > b ? a : b;
}

/// The type in which elements of `dtype` are computed: half types in float32, bool and integers as they are.
constexpr DType compute_dtype(DType dtype) { return is_half(dtype) ? float32 : dtype; }

/// The DType of a C++ type.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return boolean;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return uint8;
  else if constexpr (std::is_same_v<T, int32_t>)
    return int32;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 8 && std::is_signed_v<T>)
    return int64;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return bfloat16;
  else if constexpr (std::is_same_v<T, Half>)
    return float16;
  else if constexpr (std::is_same_v<T, float>)
    return float32;
  else {
    static_assert(std::is_same_v<T, double>, "not an element type of pleat::Tensor");
    return float64;
  }
}

/// Whether T is one of the eight element types.
template <class T>
concept Element = std::is_same_v<T, bool> || std::is_same_v<T, uint8_t> || std::is_same_v<T, int32_t> ||
                  (std::is_integral_v<T> && sizeof(T) == 8 && std::is_signed_v<T>) ||
                  std::is_same_v<T, BFloat16> || std::is_same_v<T, Half> || std::is_same_v<T, float> ||
                  std::is_same_v<T, double>;

/// Stands for a C++ type in a call: `dispatch(dtype, [&]<class T>(Type<T>) { ... })`.
template <class T>
struct Type {
  using type = T;
};

/// Calls `f(Type<T>{})` with the C++ type of `dtype`; any of the eight.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case boolean:
      return f(Type<bool>{});
    case uint8:
      return f(Type<uint8_t>{});
    case int32:
      return f(Type<int32_t>{});
    case int64:
      return f(Type<int64_t>{});
    case bfloat16:
      return f(Type<BFloat16>{});
    case float16:
      return f(Type<Half>{});
    case float32:
      return f(Type<float>{});
    case float64:
      break;
  }
  return f(Type<double>{});
}

}  // namespace pleat
