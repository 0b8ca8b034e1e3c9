// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/tensor/dtype.h"

namespace pleat {

/// Calls `f(Type<T>{})` with the unsigned integer that has the size of an element: for what only moves
/// elements. All bits 0 is zero in every type.
template <class F>
decltype(auto) dispatch_size(DType dtype, const F& f) {
  switch (size_of(dtype)) {
    case 1:
      return f(Type<uint8_t>{});
    case 2:
      return f(Type<uint16_t>{});
    case 4:
      return f(Type<uint32_t>{});
    default:
      break;
  }
  return f(Type<uint64_t>{});
}

}  // namespace pleat
