#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "pleat/core/base/device.h"

namespace pleat {

/// How elements are computed that nobody has read yet. A function may give such a result where whoever reads
/// it is likely to compute it on the way, from what it is made of (ops/spatial/channel_affine.h); it is
/// written to memory for all others.
class Deferred {
 public:
  Deferred() = default;
  Deferred(const Deferred&) = delete;
  Deferred& operator=(const Deferred&) = delete;
  virtual ~Deferred() = default;
  /// Writes all elements of the storage.
  virtual void compute(std::byte* elements) const = 0;
};

/// A number that no version of any storage has yet; they grow.
uint64_t next_version();

/// Bytes on a device, shared by all tensors that view them.
class Storage {
 public:
  Storage(std::shared_ptr<std::byte> bytes, int64_t size_, Device device_)
      : size(size_), device(device_), bytes_(std::move(bytes)) {}
  Storage(std::shared_ptr<const Deferred> deferred, int64_t size_, Device device_)
      : size(size_), device(device_), deferred_(std::move(deferred)), is_deferred_(true) {}

  /// Deferred ones are computed now: throws what that throws. Several threads may ask.
  const std::shared_ptr<std::byte>& bytes() {
    if (is_deferred_.load(std::memory_order_acquire)) [[unlikely]]
      compute();
    return bytes_;
  }
  /// How they are computed, as long as that is still to be done; else null.
  std::shared_ptr<const Deferred> deferred() const;

  const int64_t size;  ///< bytes
  const Device device;
  uint64_t version = next_version();  ///< of the elements: another one after each change in place
  uint64_t taped_at = 0;              ///< the version that the last change by a function on the tape left
  uint64_t taped_by = 0;              ///< the id of the tensor that has the history of that change

 private:
  void compute();

  std::shared_ptr<std::byte> bytes_;
  std::shared_ptr<const Deferred> deferred_;
  std::atomic<bool> is_deferred_ = false;
};

}  // namespace pleat
