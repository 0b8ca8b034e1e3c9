// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/dtype.h"

/// How elements change their type, the same everywhere: integers wrap around, anything to bool is "not 0",
/// half types go through float.

namespace pleat {

/// Floating to integer: cut towards 0; what lies outside becomes the nearer end of the range, NaN becomes 0.
/// C++ defines neither, and processors differ.
template <class To, class From>
PLEAT_HOST_DEVICE To cut(From value) {
  constexpr To least = std::numeric_limits<To>::min();
  constexpr To most = std::numeric_limits<To>::max();
  // Powers of two, which every floating type has; `end` is one above the largest.
  constexpr From begin = static_cast<From>(least);
  constexpr From end = 2 * static_cast<From>(most / 2 + 1);
  const bool inside = value >= begin && value < end;
  const To whole = static_cast<To>(inside ? value : From(0));
  return value >= end ? most : value < begin ? least : whole;
}

template <class To, class From>
PLEAT_HOST_DEVICE To convert(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>)
    return convert<To>(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>)
    return To(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, bool>)
    return value != From(0);
  else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>)
    return cut<To>(value);
  else
    return static_cast<To>(value);
}

/// Distances in elements: of neighbours in a row, and of rows.
struct Steps {
  int64_t element;
  int64_t row = 0;
};

/// Copies and converts rows of n elements each.
using ConvertRun = void (*)(std::byte* to, Steps to_step, const std::byte* from, Steps from_step, int64_t n,
                            int64_t rows);

ConvertRun find_convert_run(DType to, DType from);

/// The same of n elements that lie one after the other.
template <class To, class From>
void convert_array(To* to, const From* from, int64_t n) {
  static const ConvertRun run = find_convert_run(dtype_of<To>(), dtype_of<From>());
  run(reinterpret_cast<std::byte*>(to), {1}, reinterpret_cast<const std::byte*>(from), {1}, n, 1);
}

}  // namespace pleat
