// Private header: not installed.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/pinned_memory.h"

namespace pleat {

/// A few values of the host, on a device for a kernel to read: copied through pinned memory, so that the host
/// waits for nothing.
template <class T>
class HostArray {
 public:
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 16);

  HostArray(std::span<const T> values, Device device) {
    const Shape bytes = {static_cast<int64_t>(values.size_bytes())};
    const Tensor host = device.is_cuda() ? cuda::empty_pinned(bytes, uint8)
                                         : empty(bytes, {.dtype = uint8, .device = Device()});
    if (!values.empty()) std::memcpy(host.raw(), values.data(), values.size_bytes());
    bytes_ = ops::to_device(host, device, {.non_blocking = true});
  }
  HostArray(const std::vector<T>& values, Device device) : HostArray(std::span<const T>(values), device) {}

  /// On the device. What is queued in its stream may read it after this object is gone.
  const T* data() const { return reinterpret_cast<const T*>(bytes_.raw()); }

 private:
  Tensor bytes_;
};

}  // namespace pleat
