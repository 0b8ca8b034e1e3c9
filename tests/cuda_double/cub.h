#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

/// What the double's versions of CUB's functions share.

namespace cuda_double {

/// Answers the question how much temporary memory is needed (`memory` is null) with `needed`; else checks it
/// and the operands, and gives `run` to the stream, for which it waits if the real function does.
cudaError_t cub_call(const char* what, void* memory, std::size_t& bytes, std::size_t needed,
                     cudaStream_t stream, std::initializer_list<std::pair<const void*, std::size_t>> operands,
                     std::function<void()> run, bool waits = false);

/// Stably by the bits below `end_bit`.
template <class Key, class Value>
void sort_pairs(const Key* keys, Key* sorted, const Value* values, Value* out, std::size_t n, int end_bit) {
  const Key mask = end_bit >= 8 * static_cast<int>(sizeof(Key)) ? ~Key{0} : (Key{1} << end_bit) - 1;
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return (keys[a] & mask) < (keys[b] & mask); });
  for (std::size_t i = 0; i < n; ++i) {
    sorted[i] = keys[order[i]];
    out[i] = values[order[i]];
  }
}

}  // namespace cuda_double
