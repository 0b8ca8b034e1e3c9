// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/convert.h"

namespace pleat {

/// An element of any type, read as T or written from one.
template <class T>
PLEAT_HOST_DEVICE T load_as(const std::byte* base, int64_t index, DType dtype) {
  switch (dtype) {
    case boolean:
      return convert<T>(reinterpret_cast<const bool*>(base)[index]);
    case uint8:
      return convert<T>(reinterpret_cast<const uint8_t*>(base)[index]);
    case int32:
      return convert<T>(reinterpret_cast<const int32_t*>(base)[index]);
    case int64:
      return convert<T>(reinterpret_cast<const int64_t*>(base)[index]);
    case bfloat16:
      return convert<T>(reinterpret_cast<const BFloat16*>(base)[index]);
    case float16:
      return convert<T>(reinterpret_cast<const Half*>(base)[index]);
    case float32:
      return convert<T>(reinterpret_cast<const float*>(base)[index]);
    case float64:
      break;
  }
  return convert<T>(reinterpret_cast<const double*>(base)[index]);
}
template <class T>
PLEAT_HOST_DEVICE void store_as(std::byte* base, int64_t index, DType dtype, T value) {
  switch (dtype) {
    case boolean:
      reinterpret_cast<bool*>(base)[index] = convert<bool>(value);
      return;
    case uint8:
      reinterpret_cast<uint8_t*>(base)[index] = convert<uint8_t>(value);
      return;
    case int32:
      reinterpret_cast<int32_t*>(base)[index] = convert<int32_t>(value);
      return;
    case int64:
      reinterpret_cast<int64_t*>(base)[index] = convert<int64_t>(value);
      return;
    case bfloat16:
      reinterpret_cast<BFloat16*>(base)[index] = convert<BFloat16>(value);
      return;
    case float16:
      reinterpret_cast<Half*>(base)[index] = convert<Half>(value);
      return;
    case float32:
      reinterpret_cast<float*>(base)[index] = convert<float>(value);
      return;
    case float64:
      break;
  }
  reinterpret_cast<double*>(base)[index] = convert<double>(value);
}

}  // namespace pleat
