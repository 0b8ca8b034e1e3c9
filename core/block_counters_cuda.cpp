#include <memory>

#include <cuda_runtime_api.h>

#include "pleat/core/allocator.h"
#include "pleat/core/block_counters.h"
#include "pleat/core/check_cuda.h"
#include "pleat/core/cuda.h"
#include "pleat/core/grid_block.h"
#include "pleat/core/handle_pool.h"

namespace pleat::cuda {
namespace {

struct Counters {
  std::shared_ptr<std::byte> memory;
};

std::unique_ptr<Counters> make(StreamId stream) {
  constexpr auto bytes = static_cast<std::size_t>(BlockCounters::most) * sizeof(unsigned);
  const Device device(DeviceType::cuda, stream.device);
  const DeviceGuard guard(device);
  auto counters = std::make_unique<Counters>();
  counters->memory = allocate(static_cast<int64_t>(bytes), device);
  check_cuda(cudaMemsetAsync(counters->memory.get(), 0, bytes, static_cast<cudaStream_t>(stream.native)),
             "block_counters");
  return counters;
}

}  // namespace

unsigned* block_counters(Device device) {
  const StreamId stream{device.index, current_stream(device).native()};
  return reinterpret_cast<unsigned*>(thread_handle<Counters>(stream, make).memory.get());
}

}  // namespace pleat::cuda
