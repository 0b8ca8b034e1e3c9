#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include "pleat/core/device/capture.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/index/cub_call.h"
#include "pleat/ops/index/ordered_lines.h"

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

}  // namespace

OrderedLines order_lines(const char* op, const Tensor& keys, int64_t lines, int64_t n, int bits) {
  const Device device = keys.device();
  check_cub_size(op, keys.numel());
  if (lines > 1) Capture::refuse_to_wait(op);  // for the sizes of groups of lines, which CUB reads
  const OrderedLines result{empty(keys.shape(), {.dtype = keys.dtype(), .device = device}),
                            empty(keys.shape(), {.dtype = int64, .device = device})};
  if (keys.numel() == 0) return result;
  const Tensor places = empty(keys.shape(), {.dtype = int64, .device = device});
  launch_indices(op, device, keys.numel(), PlaceInLine{FastDivider(n), places.data<int64_t>()});
  if (keys.dtype() == int32)
    sort_on_device<uint32_t>(op, keys, places, result, lines, n, bits);
  else
    sort_on_device<uint64_t>(op, keys, places, result, lines, n, bits);
  return result;
}

}  // namespace pleat::ops
