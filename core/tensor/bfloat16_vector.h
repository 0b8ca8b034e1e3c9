// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/simd.h"
#include "pleat/core/tensor/half.h"

namespace pleat::simd {

/// A vector of `bytes` of floats from as many bfloat16.
template <int bytes>
Vector<float, bytes> load_floats(const BFloat16* from) {
  using Words = Vector<uint32_t, bytes>;
  const auto halves = load<bytes / 2>(reinterpret_cast<const uint16_t*>(from));
  return reinterpret_cast<Vector<float, bytes>>(__builtin_convertvector(halves, Words) << 16);
}

}  // namespace pleat::simd
