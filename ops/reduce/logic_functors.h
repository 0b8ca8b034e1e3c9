// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/host_device.h"

namespace pleat::ops::reduction {

/// Whether any or all elements are not 0.
template <class T, bool is_any>
struct LogicStep {
  using In = T;
  using State = uint8_t;
  PLEAT_HOST_DEVICE State start() const { return is_any ? 0 : 1; }
  PLEAT_HOST_DEVICE State step(State known, T x) const { return join(known, static_cast<State>(x != T(0))); }
  PLEAT_HOST_DEVICE State join(State a, State b) const { return static_cast<State>(is_any ? a | b : a & b); }
};

}  // namespace pleat::ops::reduction
