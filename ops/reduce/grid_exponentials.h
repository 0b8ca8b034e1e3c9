// Private header: not installed.
#pragma once

#include <type_traits>

#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/reduce/fold.h"
#include "pleat/ops/reduce/grid_lines.h"
#include "pleat/ops/reduce/logsumexp_functors.h"

/// What softmax and the class losses need of a line: its largest element and its exponentials' sum.

namespace pleat::ops {

struct AddNumber {
  PLEAT_HOST_DEVICE void operator()(double& into, double other) const { into += other; }
};

struct TakeLarger {
  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& into, T other) const {
    into = reduction::ExtremeStep<T, true>::better(into, other);
  }
};

/// Leaves with every thread of a team the largest element of the team's line, and the sum of exp(element -
/// exponent_shift(largest)). `at(place)` reads an element as T.
template <class Block, class Largest, class Sum, class At>
PLEAT_HOST_DEVICE void line_exponentials(const GridLines& lines, int64_t b, Block& block, Largest& largest,
                                         Sum& sum, const At& at) {
  using T = std::decay_t<decltype(at(0))>;
  using Larger = reduction::ExtremeStep<T, true>;
  block.each([&](int thread) {
    T best = Larger::worst();
    lines.for_own(b, thread, [&](int64_t i) { best = Larger::better(best, at(i)); });
    largest[thread] = best;
  });
  block.combine(largest, lines.teams, TakeLarger{});
  block.share(largest, lines.teams);
  block.each([&](int thread) {
    const T from = reduction::exponent_shift(largest[thread]);
    double total = 0;
    lines.for_own(b, thread, [&](int64_t i) { total += static_cast<double>(vmath::exp(at(i) - from)); });
    sum[thread] = total;
  });
  block.combine(sum, lines.teams, AddNumber{});
  block.share(sum, lines.teams);
}

}  // namespace pleat::ops
