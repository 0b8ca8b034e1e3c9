// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/parallel/parallel.h"

namespace pleat {

namespace detail {
using StepFunction = void (*)(const void* context, int64_t step, int64_t chunk);
void parallel_steps(int64_t steps, int64_t chunks, StepFunction function, const void* context);
}  // namespace detail

/// Calls `body(step, chunk)` for step = 0 ... steps-1 and chunk = 0 ... chunks-1, those of a step when all of
/// the step before have ended: a loop of parallel loops whose threads meet after each step in a fraction of a
/// microsecond, and a chunk of which is the same thread's in every step, which finds in its caches what it
/// read there. The rest is as `parallel_chunks` has it; there should not be more chunks than threads.
template <class Body>
void parallel_steps(int64_t steps, int64_t chunks, const Body& body) {
  detail::parallel_steps(
      steps, chunks,
      [](const void* context, int64_t step, int64_t chunk) {
        (*static_cast<const Body*>(context))(step, chunk);
      },
      &body);
}

}  // namespace pleat
