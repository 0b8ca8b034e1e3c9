// Private header: not installed.
#pragma once

#include "pleat/core/memory/block_cache.h"

/// What BlockCache builds on where there is CUDA. Only for files that are compiled with it.

namespace pleat::cuda {

class CudaEvents : public RawMemory {
 public:
  Event record(StreamId stream) override;
  bool is_done(Event event) override;
  void wait(Event event) override;
  void destroy(Event event) noexcept override;
  bool is_capturing() const override;
};

/// The memory of one GPU.
class GpuMemory final : public CudaEvents {
 public:
  explicit GpuMemory(Device device) : device_(device) {}
  std::byte* allocate(int64_t bytes) override;
  void free(std::byte* memory) noexcept override;
  void report(const std::byte* memory, int64_t bytes) noexcept override;
  std::string name() const override;
  std::string state() const override;

 private:
  Device device_;
};

/// Memory of the host that GPUs read and write by themselves.
class PinnedMemory final : public CudaEvents {
 public:
  std::byte* allocate(int64_t bytes) override;
  void free(std::byte* memory) noexcept override;
  std::string name() const override { return "the cpu as pinned memory"; }
  std::string state() const override { return "the system gives no more"; }
};

}  // namespace pleat::cuda
