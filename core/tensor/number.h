#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#undef max  // of <windows.h>, as the next
#include "pleat/core/base/argument.h"
#include "pleat/core/tensor/dtype.h"
#undef min
namespace pleat {

/// A plain C++ number given to an operation. It is weak: it never widens a tensor inside its category
/// (float16 tensor * 2.0 stays float16), but lifts the category (int64 tensor * 2.0 is float32). A bool, a
/// character or a pointer is none. Throws ValueError for an integer above 2^63 - 1.
class Number {
 public:
  template <IntegerType T>
  Number(T value) : integer_(Integer(value)), real_(static_cast<double>(value)), kind_(int64) {}
  template <std::floating_point T>
  Number(T value)
      : integer_(cut(static_cast<double>(value))), real_(static_cast<double>(value)), kind_(float64) {}

  /// The value as T; int64 values keep all their bits.
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      return T(static_cast<float>(real_));
    else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return static_cast<T>(integer_);
    else if constexpr (std::is_same_v<T, bool>)
      return real_ != 0;
    else
      return static_cast<T>(real_);
  }

  /// boolean, int64 or float64: the category.
  DType kind() const { return kind_; }

 protected:
  struct Bool {
    bool value;
  };
  explicit Number(Bool b) : integer_(b.value), real_(b.value), kind_(boolean) {}

 private:
  /// Towards 0; the nearer end of the range for what lies outside, 0 for NaN: C++ leaves both undefined.
  static constexpr int64_t cut(double value) {
    if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
    if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
    return value == value ? static_cast<int64_t>(value) : 0;
  }

  int64_t integer_;
  double real_;
  DType kind_;
};

/// A plain number or a bool: what can be stored in a tensor, or compared with its elements.
class Scalar : public Number {
 public:
  Scalar(Number number) : Number(number) {}
  template <NumberType T>
  Scalar(T value) : Number(value) {}
  template <std::same_as<bool> T>
  Scalar(T value) : Number(Bool{value}) {}
};

/// The type of a result of a tensor of `dtype` and a number.
inline DType promote_with_number(DType dtype, const Scalar& number) {
  if (number.kind() == float64 && !is_floating(dtype)) return float32;
  if (number.kind() == int64 && dtype == boolean) return int64;
  return dtype;
}

}  // namespace pleat
