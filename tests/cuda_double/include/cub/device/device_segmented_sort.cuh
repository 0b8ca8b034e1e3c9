#pragma once

#include "pleat/tests/cuda_double/cub.h"

namespace cub {

struct DeviceSegmentedSort {
  template <class Key, class Value, class Offset>
  static cudaError_t StableSortPairs(void* memory, std::size_t& bytes, const Key* keys, Key* sorted,
                                     const Value* values, Value* out, int64_t n, int64_t segments, Offset begin,
                                     Offset end, cudaStream_t stream) {
    const auto count = static_cast<std::size_t>(n);
    const auto lines = static_cast<std::size_t>(segments);
    return cuda_double::cub_call(
        "cub::DeviceSegmentedSort::StableSortPairs", memory, bytes, 16 * count, stream,
        {{keys, count * sizeof(Key)}, {sorted, count * sizeof(Key)}, {values, count * sizeof(Value)},
         {out, count * sizeof(Value)}, {begin, lines * sizeof(*begin)}, {end, lines * sizeof(*end)}},
        [=] {
          for (int64_t i = 0; i < segments; ++i)
            cuda_double::sort_pairs(keys + begin[i], sorted + begin[i], values + begin[i], out + begin[i],
                                    static_cast<std::size_t>(end[i] - begin[i]), 8 * static_cast<int>(sizeof(Key)));
        },
        // From so many on it reads the sizes of groups of segments before it goes on.
        segments >= 500);
  }
};

}  // namespace cub
