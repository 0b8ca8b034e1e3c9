// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pleat/core/dtype.h"
#include "pleat/core/host_device.h"

/// How elements change their type, the same everywhere: floating to integer truncates, anything to bool asks
/// "not 0", half types go through float.

namespace pleat {

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
  else
    return static_cast<To>(value);
}

/// Copies and converts n elements that lie `step` elements apart.
using ConvertRun = void (*)(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step,
                            int64_t n);

ConvertRun find_convert_run(DType to, DType from);

}  // namespace pleat
