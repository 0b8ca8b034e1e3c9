// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/host_device.h"

/// The functors of logic.h, which see 0 or 1. Bitwise: both sides are known, and a branch would not
/// vectorise.

namespace pleat::ops {

struct And {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a, uint8_t b) const { return (a & b) != 0; }
};
struct Or {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a, uint8_t b) const { return (a | b) != 0; }
};
struct Xor {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a, uint8_t b) const { return a != b; }
};
struct Not {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a) const { return a == 0; }
};

}  // namespace pleat::ops
