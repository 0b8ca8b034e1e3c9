// Private header: not installed.
#pragma once

#include <type_traits>

#include "pleat/core/base/host_device.h"

/// The functors of arithmetic.h.

namespace pleat::ops {

/// Integer arithmetic wraps around, as everywhere in array libraries: computed without sign, where C++
/// defines it.
template <class T>
PLEAT_HOST_DEVICE auto wrapping(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return static_cast<unsigned>(value);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<std::make_unsigned_t<T>>(value);
  else
    return value;
}

struct Plus {
  static constexpr bool is_memory_bound = true;
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) + wrapping(b));
  }
};

struct Minus {
  static constexpr bool is_memory_bound = true;
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) - wrapping(b));
  }
};

struct Times {
  static constexpr bool is_memory_bound = true;
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) * wrapping(b));
  }
};

struct Over {
  static constexpr bool is_memory_bound = true;
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return a / b;
  }
};

struct Negate {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(0 - wrapping(a));
    else
      return -a;
  }
};

}  // namespace pleat::ops
