#include <algorithm>
#include <bit>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"

namespace pleat {
namespace {

/// Below this many elements a thread costs more for meeting the others than for its own work.
constexpr int64_t thread_elements = 16;
/// Threads that read neighbouring elements: of 4 bytes they make up a sector, what a GPU fetches in one go
/// (32 bytes).
constexpr int64_t fetched_together = 8;
/// Neighbouring results read side by side: one warp.
constexpr int64_t side_by_side = 32;

int64_t ceil_power(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }
int64_t floor_power(int64_t n) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n))); }

}  // namespace

Teams choose_teams(int64_t count, int64_t across) {
  const int64_t some = std::max<int64_t>(count, 1);
  const auto log = [](int64_t lanes) { return std::countr_zero(static_cast<uint64_t>(lanes)); };
  if (across == 1) {
    const int64_t fewest = std::min(fetched_together, ceil_power(some));
    return {log(std::clamp<int64_t>(floor_power(some / thread_elements), fewest, block_threads)), true};
  }
  const int64_t width = std::min(side_by_side, ceil_power(across));
  const int64_t lanes = ceil_power(ceil_div(some, thread_elements));
  return {log(std::min(lanes, block_threads / width)), false};
}

}  // namespace pleat
