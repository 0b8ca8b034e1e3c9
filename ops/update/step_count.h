#pragma once

#include <cstdint>

namespace pleat::ops {

/// Which update of a parameter this is, and whether it is made at all, where only the device has the number:
/// pointers are to memory of the parameter's device. The update's number, from 1, is before + 1 + (made ?
/// *made : 0).
struct StepCount {
  int64_t before = 0;              ///< updates that the host has counted
  int64_t* made = nullptr;         ///< updates made since, of which this becomes one; none: the host counts
  const int32_t* found = nullptr;  ///< not 0: the update is left out; none: it is made
};

}  // namespace pleat::ops
