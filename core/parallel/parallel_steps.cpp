#include "pleat/core/parallel/parallel_steps.h"

#include <atomic>
#include <vector>

#include "pleat/core/parallel/spin.h"

namespace pleat::detail {
namespace {

/// On a line of the cache of its own.
struct alignas(64) Counter {
  std::atomic<int64_t> value{0};
};

}  // namespace

/// A thread takes its chunk of a step, then those that nobody has taken yet, as when a thread comes late or
/// not at all. What is taken is being computed, so no thread waits for what nobody does.
void parallel_steps(int64_t steps, int64_t chunks, StepFunction function, const void* context) {
  if (chunks == 1) {
    for (int64_t step = 0; step < steps; ++step) function(context, step, 0);
    return;
  }
  std::vector<Counter> taken(static_cast<std::size_t>(chunks));  // so many steps of each chunk
  Counter ended;                                                 // so many chunks of all steps
  std::atomic<bool> failed{false};
  parallel_chunks(chunks, [&](int64_t own) {
    for (int64_t step = 0; step < steps; ++step) {
      for (int64_t i = 0; i < chunks; ++i) {
        const int64_t chunk = (own + i) % chunks;
        int64_t before = step;
        if (!taken[static_cast<std::size_t>(chunk)].value.compare_exchange_strong(before, step + 1)) continue;
        try {
          function(context, step, chunk);
        } catch (...) {
          failed = true;
          throw;
        }
        ++ended.value;
      }
      while (!spin_until([&] { return ended.value >= (step + 1) * chunks || failed; })) {
      }
      if (failed) return;
    }
  });
}

}  // namespace pleat::detail
