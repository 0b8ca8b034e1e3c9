// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/convert.h"

namespace pleat {

/// An element of any type, read as T or written from one.
template <class T, class Index>
PLEAT_HOST_DEVICE T load_as(const std::byte* base, Index index, DType dtype) {
  if (dtype == dtype_of<T>()) return reinterpret_cast<const T*>(base)[index];
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
template <class T, class Index>
PLEAT_HOST_DEVICE void store_as(std::byte* base, Index index, DType dtype, T value) {
  if (dtype == dtype_of<T>()) {
    reinterpret_cast<T*>(base)[index] = value;
    return;
  }
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

/// `width` neighbours, moved at once.
template <class T, std::size_t width>
struct alignas(sizeof(T) * width) Vector {
  T lane[width];
};

/// Elements that a thread moves at once where it may.
inline constexpr uint32_t vector_width = 4;

/// Whether load_vector and store_vector move vectors of this type as T.
template <class T>
constexpr bool moves_vectors_of(DType dtype) {
  return dtype == dtype_of<T>() || (std::is_same_v<T, float> && is_half(dtype));
}

/// `vector_width` neighbours of such a type, from element `index` on, at an address that is a multiple of
/// their bytes.
template <class T, class Index>
PLEAT_HOST_DEVICE void load_vector(T* lanes, const std::byte* base, Index index, DType dtype) {
  const auto load = [&]<class Stored>(Type<Stored>) {
    const auto loaded =
        *reinterpret_cast<const Vector<Stored, vector_width>*>(reinterpret_cast<const Stored*>(base) + index);
    for (std::size_t j = 0; j < vector_width; ++j) lanes[j] = convert<T>(loaded.lane[j]);
  };
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == float16) return load(Type<Half>{});
    if (dtype == bfloat16) return load(Type<BFloat16>{});
  }
  load(Type<T>{});
}
template <class T, class Index>
PLEAT_HOST_DEVICE void store_vector(const T* lanes, std::byte* base, Index index, DType dtype) {
  const auto store = [&]<class Stored>(Type<Stored>) {
    Vector<Stored, vector_width> result;
    for (std::size_t j = 0; j < vector_width; ++j) result.lane[j] = convert<Stored>(lanes[j]);
    *reinterpret_cast<Vector<Stored, vector_width>*>(reinterpret_cast<Stored*>(base) + index) = result;
  };
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == float16) return store(Type<Half>{});
    if (dtype == bfloat16) return store(Type<BFloat16>{});
  }
  store(Type<T>{});
}

}  // namespace pleat
