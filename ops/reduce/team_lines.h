// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/reduce/fold.h"
#include "pleat/ops/reduce/lines.h"
#include "pleat/ops/reduce/logsumexp_functors.h"

/// Lines of a tensor read by teams of a block's threads, for softmax and the class losses. For files with
/// kernels only.

namespace pleat::ops {

/// Lines shared out to teams of threads: side by side where lines lie beside each other.
struct TeamLines {
  int64_t count;  ///< lines
  int64_t size;
  FastDivider inner;
  Teams teams;

  explicit TeamLines(const Lines& lines)
      : count(lines.outer * lines.inner),
        size(lines.size),
        inner(lines.inner),
        teams(choose_teams(lines.size, lines.inner)) {}

  __host__ __device__ int64_t blocks() const { return (count + teams.count() - 1) / teams.count(); }

  __device__ int64_t line_of(int64_t b, const Block& block) const {
    return b * teams.count() + teams.team_of(block.thread());
  }
  /// Where a line's first element lies; the others follow `inner` apart.
  __device__ int64_t first_of(int64_t line) const {
    int64_t within = line;
    return inner.divide(within) * size * inner.divisor() + within;
  }

  /// Calls `f(place)` for the elements that are this thread's, `f(place, number in the line)` if it can.
  template <class F>
  __device__ void for_own(int64_t b, const Block& block, const F& f) const {
    const int64_t line = line_of(b, block);
    if (line >= count) return;
    const int64_t first = first_of(line);
    for (int64_t k = teams.lane_of(block.thread()); k < size; k += teams.lanes()) {
      if constexpr (requires { f(k, k); })
        f(first + k * inner.divisor(), k);
      else
        f(first + k * inner.divisor());
    }
  }
};

struct AddNumber {
  __device__ void operator()(double& into, double other) const { into += other; }
};

struct TakeLarger {
  template <class T>
  __device__ void operator()(T& into, T other) const {
    into = reduction::ExtremeStep<T, true>::better(into, other);
  }
};

/// Leaves with every thread of a team the largest element of the team's line, and the sum of exp(element -
/// exponent_shift(largest)). `at(place)` reads an element as T.
template <class T, class At>
__device__ void line_exponentials(const TeamLines& lines, int64_t b, const Block& block, T& largest,
                                  double& sum, const At& at) {
  using Larger = reduction::ExtremeStep<T, true>;
  largest = Larger::worst();
  lines.for_own(b, block, [&](int64_t i) { largest = Larger::better(largest, at(i)); });
  block.combine(largest, lines.teams, TakeLarger{});
  block.share(largest, lines.teams);
  const T from = reduction::exponent_shift(largest);
  sum = 0;
  lines.for_own(b, block, [&](int64_t i) { sum += static_cast<double>(vmath::exp(at(i) - from)); });
  block.combine(sum, lines.teams, AddNumber{});
  block.share(sum, lines.teams);
}

}  // namespace pleat::ops
