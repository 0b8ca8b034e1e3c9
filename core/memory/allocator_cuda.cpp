#include <cstdlib>
#include <deque>

#include "pleat/core/device/capture.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/memory/cuda_memory.h"
#include "pleat/core/memory/device_allocator.h"

namespace pleat {
namespace {

/// For compute-sanitizer and its like: see BlockCache.
bool separate_blocks() {
  const char* const value = std::getenv("PLEAT_CUDA_SEPARATE_BLOCKS");
  return value != nullptr && *value == '1';
}

class GpuAllocator final : public DeviceAllocator {
 public:
  explicit GpuAllocator(Device device)
      : device_(device), memory_(device), cache_(memory_, separate_blocks()) {}

  std::shared_ptr<std::byte> allocate(int64_t size) override {
    void* const stream = cuda::current_stream(device_).native();
    const Capture* const capture = Capture::current();
    return cache_.allocate(size, {device_.index, capture != nullptr ? capture->memory_stream() : stream});
  }
  void release() override {
    Capture::refuse_to_wait("empty_cache");
    cache_.release();
  }
  void set_limit(int64_t bytes) override { cache_.set_limit(bytes); }
  AllocatorStatistics statistics() override { return cache_.statistics(); }
  void reset_peak() override { cache_.reset_peak(); }
  void trim() override { cache_.trim(); }
  void hold(void* stream) override { cache_.hold({device_.index, stream}); }
  void let_go(void* stream) override { cache_.let_go({device_.index, stream}); }

 private:
  Device device_;
  cuda::GpuMemory memory_;
  BlockCache cache_;
};

}  // namespace

DeviceAllocator& cuda_allocator(Device device) {
  cuda::check_device("allocate", device);
  static auto* allocators = [] {
    auto* all = new std::deque<GpuAllocator>;
    for (int i = 0; i < cuda::device_count(); ++i) all->emplace_back(Device(DeviceType::cuda, i));
    return all;
  }();
  return (*allocators)[static_cast<std::size_t>(device.index)];
}

}  // namespace pleat
