// Private header: not installed.
#pragma once

#include <cstdint>
#include <memory>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/memory/allocator.h"

namespace pleat {

/// Room for n elements on the CPU. Throws ShapeError where their bytes are beyond int64.
template <class T>
std::shared_ptr<T> allocate_array(int64_t n) {
  return std::reinterpret_pointer_cast<T>(allocate(checked_multiply(n, sizeof(T), "allocate")));
}

}  // namespace pleat
