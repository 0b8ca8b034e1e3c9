#include <algorithm>
#include <vector>

#include "pleat/core/create.h"
#include "pleat/core/fast_divider.h"
#include "pleat/core/grid.h"
#include "pleat/ops/index/ordered_lines.h"

#if PLEAT_COMPILES_KERNELS
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include "pleat/ops/index/cub_call.h"
#endif

namespace pleat::ops {
namespace {

struct PlaceInLine {
  FastDivider n;
  int64_t* out;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t place = i;
    n.divide(place);
    out[i] = place;
  }
};

template <class Key>
const Key* keys_of(const Tensor& t) {
  return reinterpret_cast<const Key*>(t.raw());
}

#if PLEAT_COMPILES_KERNELS
template <class Key>
void sort_on_device(const char* op, const Tensor& keys, const Tensor& places, const OrderedLines& result,
                    int64_t lines, int64_t n, int bits) {
  auto* const sorted = reinterpret_cast<Key*>(result.keys.raw());
  auto* const order = result.order.data<int64_t>();
  const auto* const from = places.data<int64_t>();
  if (lines == 1)
    return cub_call(op, keys.device(), [&](void* memory, std::size_t& bytes, cudaStream_t stream) {
      return cub::DeviceRadixSort::SortPairs(memory, bytes, keys_of<Key>(keys), sorted, from, order, n, 0,
                                             bits, stream);
    });
  const Tensor starts = arange(0, lines * n + 1, n, {.dtype = int64, .device = keys.device()});
  const auto* const start = starts.data<int64_t>();
  cub_call(op, keys.device(), [&](void* memory, std::size_t& bytes, cudaStream_t stream) {
    return cub::DeviceSegmentedSort::StableSortPairs(memory, bytes, keys_of<Key>(keys), sorted, from, order,
                                                     lines * n, lines, start, start + 1, stream);
  });
}
#endif

template <class Key>
void sort_on_threads(const Tensor& keys, const OrderedLines& result, int64_t lines, int64_t n) {
  for_each_index(
      lines,
      [&](int64_t line) {
        const Key* const from = keys_of<Key>(keys) + line * n;
        int64_t* const order = result.order.data<int64_t>() + line * n;
        for (int64_t i = 0; i < n; ++i) order[i] = i;
        std::stable_sort(order, order + n, [from](int64_t a, int64_t b) { return from[a] < from[b]; });
        auto* const sorted = reinterpret_cast<Key*>(result.keys.raw()) + line * n;
        for (int64_t i = 0; i < n; ++i) sorted[i] = from[order[i]];
      },
      1);
}

}  // namespace

OrderedLines order_lines(const char* op, const Tensor& keys, int64_t lines, int64_t n, int bits) {
  const Device device = keys.device();
  const OrderedLines result{empty(keys.shape(), {.dtype = keys.dtype(), .device = device}),
                            empty(keys.shape(), {.dtype = int64, .device = device})};
  if (keys.numel() == 0) return result;
  const auto run = [&]<class Key>(Type<Key>) {
#if PLEAT_COMPILES_KERNELS
    if (device.is_cuda()) {
      const Tensor places = empty(keys.shape(), {.dtype = int64, .device = device});
      grid_for(op, device, keys.numel(), PlaceInLine{FastDivider(n), places.data<int64_t>()});
      return sort_on_device<Key>(op, keys, places, result, lines, n, bits);
    }
#endif
    (void)op;
    (void)bits;
    sort_on_threads<Key>(keys, result, lines, n);
  };
  if (keys.dtype() == int32)
    run(Type<uint32_t>{});
  else
    run(Type<uint64_t>{});
  return result;
}

}  // namespace pleat::ops
