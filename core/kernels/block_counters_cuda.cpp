#include <algorithm>
#include <bit>
#include <memory>

#include <cuda_runtime_api.h>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/device/check_cuda.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/block_counters.h"
#include "pleat/core/kernels/handle_pool.h"
#include "pleat/core/memory/allocator.h"

namespace pleat {
namespace {

struct Counters {
  std::shared_ptr<std::byte> memory;
};

std::unique_ptr<Counters> make(StreamId stream) {
  constexpr auto bytes = static_cast<std::size_t>(most_block_counters) * sizeof(unsigned);
  const Device device(DeviceType::cuda, stream.device);
  const cuda::DeviceGuard guard(device);
  auto counters = std::make_unique<Counters>();
  counters->memory = allocate(static_cast<int64_t>(bytes), device);
  cuda::check_cuda(
      cudaMemsetAsync(counters->memory.get(), 0, bytes, static_cast<cudaStream_t>(stream.native)),
      "block_counters");
  return counters;
}

}  // namespace

unsigned* block_counters(Device device) {
  const StreamId stream{device.index, cuda::current_stream(device).native()};
  return reinterpret_cast<unsigned*>(thread_handle<Counters>(stream, make).memory.get());
}

}  // namespace pleat
