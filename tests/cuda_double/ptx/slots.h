#pragma once

#include <vector>

#include "pleat/tests/cuda_double/ptx/program.h"

namespace cuda_double::ptx {

/// A register as PTX declares it, while a kernel is translated: instructions' slots are numbers of these.
struct Register {
  uint8_t bytes = 0;  ///< of a lane; 0: a predicate
  bool fixed = false;
};

/// Gives each register a place in a warp's file, and writes it into the instructions. Registers that are
/// never needed at the same time share one: what a warp works on then stays in the processor's cache.
void assign_slots(Program& program, const std::vector<Register>& registers);

}  // namespace cuda_double::ptx
