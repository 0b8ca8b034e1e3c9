#pragma once

#include <string>

#include "pleat/core/device/cuda.h"
#include "pleat/tests/skip.h"

namespace pleat_test {

/// For the first line of a test that needs GPUs: `if (lacks_gpus(1)) return;`. Marks the test as skipped,
/// with the reason.
inline bool lacks_gpus(int needed = 1) {
  const int found = pleat::cuda::device_count();
  if (found >= needed) return false;
  if (found == 0)
    skip("needs a GPU: " + pleat::cuda::unavailable_reason());
  else
    skip("needs " + std::to_string(needed) + " GPUs, found " + std::to_string(found));
  return true;
}

/// What `f()` gives where new tensors are on that device.
template <class F>
auto on_device(pleat::Device device, const F& f) {
  const pleat::DefaultDevice guard(device);
  return f();
}

}  // namespace pleat_test
