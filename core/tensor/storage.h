#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "pleat/core/base/device.h"

namespace pleat {

/// A number that no version of any storage has yet; they grow.
uint64_t next_version();

/// Bytes on a device, shared by all tensors that view them.
struct Storage {
  Storage(std::shared_ptr<std::byte> bytes_, int64_t size_, Device device_)
      : bytes(std::move(bytes_)), size(size_), device(device_) {}

  const std::shared_ptr<std::byte> bytes;
  const int64_t size;  ///< in bytes
  const Device device;
  uint64_t version = next_version();  ///< of the elements: another one after each change in place
  uint64_t taped_at = 0;              ///< the version that the last change by a function on the tape left
  uint64_t taped_by = 0;              ///< the id of the tensor that has the history of that change
};

}  // namespace pleat
