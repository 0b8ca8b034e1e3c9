#pragma once

// CUB's sorting and selecting, for the double of CUDA.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "pleat/tests/cuda_double/cub.h"

namespace cub {

struct DeviceRadixSort {
  template <class Key, class Value, class Count>
  static cudaError_t SortPairs(void* memory, std::size_t& bytes, const Key* keys, Key* sorted, const Value* values,
                               Value* out, Count n, int, int end_bit, cudaStream_t stream) {
    const auto count = static_cast<std::size_t>(n);
    return cuda_double::cub_call(
        "cub::DeviceRadixSort::SortPairs", memory, bytes, 16 * count, stream,
        {{keys, count * sizeof(Key)}, {sorted, count * sizeof(Key)}, {values, count * sizeof(Value)},
         {out, count * sizeof(Value)}},
        [=] { cuda_double::sort_pairs(keys, sorted, values, out, count, end_bit); });
  }
};

}  // namespace cub
