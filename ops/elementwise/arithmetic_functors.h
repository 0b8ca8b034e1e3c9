// Private header: not installed.
#pragma once

#include <type_traits>

#include "pleat/core/base/host_device.h"

/// The functors of arithmetic.h.

namespace pleat::ops {

/// Base of functors that cost less than reading their operands: where one of these does not change along a
/// run, as a bias, the CPU has a loop of its own.
struct MemoryBound {};

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

struct Plus : MemoryBound {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) + wrapping(b));
  }
};

struct Minus : MemoryBound {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) - wrapping(b));
  }
};

struct Times : MemoryBound {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) * wrapping(b));
  }
};

struct Over : MemoryBound {
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
