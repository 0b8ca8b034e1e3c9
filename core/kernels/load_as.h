// Private header: not installed.
#pragma once

#include <bit>
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

/// Elements that a thread moves at once where it may; of half types, whose vectors have as many bytes as
/// those of float32, kernels may take `half_width`.
inline constexpr uint32_t vector_width = 4, half_width = 8;

/// Whether load_vector and store_vector move vectors of this type as T.
template <class T>
constexpr bool moves_vectors_of(DType dtype) {
  return dtype == dtype_of<T>() || (std::is_same_v<T, float> && is_half(dtype));
}

/// Calls `f` with the type in which elements are stored that are seen as Ts, `count` of them at once.
template <class T, std::size_t count = 1, class F>
PLEAT_HOST_DEVICE void as_stored(DType dtype, const F& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == float16) return f(Type<Half>{});
    if (count == half_width || dtype == bfloat16) return f(Type<BFloat16>{});
  }
  f(Type<T>{});
}

/// `count` neighbours as they were loaded at once, the vector number `index` from a multiple of their bytes
/// on.
template <class Stored, std::size_t count>
class Loaded {
 public:
  Loaded() = default;
  PLEAT_HOST_DEVICE explicit Loaded(const Stored* from, int64_t index = 0)
      : raw_(reinterpret_cast<const Raw*>(from)[index]) {}

  template <class T>
  PLEAT_HOST_DEVICE void unpack(T* lanes) const {
    PLEAT_UNROLL
    for (std::size_t j = 0; j < count; ++j) {
      if constexpr (pairs && !std::is_same_v<T, Stored>) {
        const uint32_t word = raw_.lane[j / 2];
        lanes[j] = convert<T>(std::bit_cast<float>(j % 2 == 0 ? word << 16 : word & 0xffff0000u));
      } else if constexpr (pairs) {  // a NaN keeps its bits
        lanes[j].bits = static_cast<uint16_t>(raw_.lane[j / 2] >> (j % 2 * 16));
      } else {
        lanes[j] = convert<T>(std::bit_cast<Stored>(raw_.lane[j]));
      }
    }
  }

 private:
#if defined(__CUDA_ARCH__)
  static constexpr bool pairs = std::is_same_v<Stored, BFloat16> && count % 2 == 0;
#else
  static constexpr bool pairs = false;
#endif
  using Bits = std::conditional_t<is_half(dtype_of<Stored>()), uint16_t, Stored>;  // which nothing makes 0
  using Raw = std::conditional_t<pairs, Vector<uint32_t, count / 2>, Vector<Bits, count>>;
  Raw raw_;
};

/// Stores `count` neighbours at once, where Loaded would find them. A GPU converts to half types by pairs.
template <std::size_t count, class Stored, class T>
PLEAT_HOST_DEVICE void store_lanes(Stored* to, const T* lanes, int64_t index = 0) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (is_half(dtype_of<Stored>()) && !std::is_same_v<T, Stored> && count % 2 == 0) {
    Vector<uint32_t, count / 2> pairs;
    PLEAT_UNROLL
    for (std::size_t j = 0; j < count; j += 2) {
      const auto low = convert<float>(lanes[j]), high = convert<float>(lanes[j + 1]);
      if constexpr (std::is_same_v<Stored, Half>)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pairs.lane[j / 2]) : "f"(high), "f"(low));
      else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pairs.lane[j / 2]) : "f"(high), "f"(low));
    }
    reinterpret_cast<Vector<uint32_t, count / 2>*>(to)[index] = pairs;
    return;
  }
#endif
  Vector<Stored, count> all;
  PLEAT_UNROLL
  for (std::size_t j = 0; j < count; ++j) all.lane[j] = convert<Stored>(lanes[j]);
  reinterpret_cast<Vector<Stored, count>*>(to)[index] = all;
}

/// `count` neighbours of such a type, from element `index` on, at an address that is a multiple of their
/// bytes: vector_width, or of T = float half_width of the half types.
template <std::size_t count = vector_width, class T, class Index>
PLEAT_HOST_DEVICE void load_vector(T* lanes, const std::byte* base, Index index, DType dtype) {
  as_stored<T, count>(dtype, [&]<class Stored>(Type<Stored>) {
    Loaded<Stored, count>(reinterpret_cast<const Stored*>(base) + index).unpack(lanes);
  });
}
template <std::size_t count = vector_width, class T, class Index>
PLEAT_HOST_DEVICE void store_vector(const T* lanes, std::byte* base, Index index, DType dtype) {
  as_stored<T, count>(dtype, [&]<class Stored>(Type<Stored>) {
    store_lanes<count>(reinterpret_cast<Stored*>(base) + index, lanes);
  });
}

}  // namespace pleat
