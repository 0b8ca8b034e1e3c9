// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/fast_divider.h"
#include "pleat/core/grid_block.h"
#include "pleat/ops/reduce/lines.h"

namespace pleat::ops {

/// Lines shared out to teams of threads: side by side where lines lie beside each other.
struct GridLines {
  int64_t count;  ///< lines
  int64_t size;
  FastDivider inner;
  Teams teams;

  explicit GridLines(const Lines& lines)
      : count(lines.outer * lines.inner),
        size(lines.size),
        inner(lines.inner),
        teams(choose_teams(lines.size, lines.inner)) {}

  PLEAT_HOST_DEVICE int64_t blocks() const { return (count + teams.count() - 1) / teams.count(); }

  PLEAT_HOST_DEVICE int64_t line_of(int64_t block, int thread) const {
    return block * teams.count() + teams.team_of(thread);
  }
  /// Where a line's first element lies; the others follow `inner` apart.
  PLEAT_HOST_DEVICE int64_t first_of(int64_t line) const {
    int64_t within = line;
    return inner.divide(within) * size * inner.divisor() + within;
  }

  /// Calls `f(place)` for the elements that are this thread's, `f(place, number in the line)` if it can.
  template <class F>
  PLEAT_HOST_DEVICE void for_own(int64_t block, int thread, const F& f) const {
    const int64_t line = line_of(block, thread);
    if (line >= count) return;
    const int64_t first = first_of(line);
    for (int64_t k = teams.lane_of(thread); k < size; k += teams.lanes()) {
      if constexpr (requires { f(k, k); })
        f(first + k * inner.divisor(), k);
      else
        f(first + k * inner.divisor());
    }
  }
};

}  // namespace pleat::ops
