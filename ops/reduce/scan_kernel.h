// Private header: not installed.
#pragma once

#include <algorithm>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/reduce/lines.h"

/// Scans on a GPU.
///
/// Lines are cut into chunks, of which each is one thread's. A first launch finds what each chunk amounts to,
/// these are scanned in the same way (in chunks, ...), and a last launch goes through the chunks once more,
/// from what all before amount to. Chunks depend on the shape only.
///
/// A scan is an associative `then`: what a stretch of elements does to the running result, followed by what
/// the next stretch does.

namespace pleat::ops::scans {

inline constexpr int64_t chunk_elements = 32;
/// Lines so many, and beside each other, are enough work for a GPU without cutting them.
inline constexpr int64_t many_lines = 32768;
inline constexpr int64_t side_by_side = 8;

/// Running sums (Step = Plus) and products (Times).
template <class T, class Step>
struct Running {
  struct State {
    T total;
  };
  PLEAT_HOST_DEVICE static State then(const State& first, const State& second) {
    return {Step{}(first.total, second.total)};
  }
};

/// A stretch turns y into factor y + total.
struct Recurrence {
  struct State {
    double factor;
    double total;
  };
  PLEAT_HOST_DEVICE static State then(const State& first, const State& second) {
    return {product(first.factor, second.factor), product(second.factor, first.total) + second.total};
  }

 private:
  /// The product of many finite factors may be infinite; element by element the 0 would have come first.
  PLEAT_HOST_DEVICE static double product(double a, double b) {
    const bool has_zero = (a == 0 && b == b) || (b == 0 && a == a);
    return has_zero ? 0 : a * b;
  }
};

/// What single elements do.
template <class T, class State>
struct ElementSource {
  const std::byte* x;
  DType dtype;
  PLEAT_HOST_DEVICE State operator()(int64_t at) const { return {load_as<T>(x, at, dtype)}; }
};
struct PairSource {
  const std::byte* a;
  const std::byte* b;
  DType dtype;
  int64_t ahead;  ///< where the factor lies that belongs to a term
  int64_t end;
  PLEAT_HOST_DEVICE Recurrence::State operator()(int64_t at) const {
    // The first element of all has no factor, and it is never read.
    const int64_t factor = at + ahead;
    return {factor < end ? load_as<double>(a, factor, dtype) : 0, load_as<double>(b, at, dtype)};
  }
};
template <class State>
struct StateSource {
  State* states;
  PLEAT_HOST_DEVICE State operator()(int64_t at) const { return states[at]; }
};

template <class T>
struct ResultSink {
  std::byte* y;
  DType dtype;
  template <class State>
  PLEAT_HOST_DEVICE void operator()(int64_t at, const State& state) const {
    store_as<T>(y, at, dtype, static_cast<T>(state.total));
  }
};
template <class State>
struct StateSink {
  State* states;
  PLEAT_HOST_DEVICE void operator()(int64_t at, const State& state) const { states[at] = state; }
};

/// Threads over [outer, chunks, inner].
struct Chunks {
  int64_t size;   ///< elements of a line
  int64_t chunk;  ///< of these in one chunk
  FastDivider inner;
  FastDivider chunks;
  bool reverse;

  struct Own {
    int64_t number;  ///< of the chunk in its line
    int64_t first;   ///< the place of its first element
    int64_t step;    ///< from one element to the next
    int64_t n;
  };
  PLEAT_HOST_DEVICE Own own(int64_t thread) const {
    int64_t within = thread;
    int64_t number = inner.divide(within);
    const int64_t outer = chunks.divide(number);
    const int64_t element = number * chunk;
    const int64_t place = reverse ? size - 1 - element : element;
    const int64_t left = size - element;
    return {number, (outer * size + place) * inner.divisor() + within,
            reverse ? -inner.divisor() : inner.divisor(), left < chunk ? left : chunk};
  }
};

/// states[thread] = what the chunk amounts to.
template <class Scan, class Source>
struct FoldChunk {
  Chunks chunks;
  Source source;
  typename Scan::State* states;

  PLEAT_HOST_DEVICE void operator()(int64_t thread) const {
    const Chunks::Own own = chunks.own(thread);
    typename Scan::State total = source(own.first);
    for (int64_t k = 1; k < own.n; ++k) total = Scan::then(total, source(own.first + k * own.step));
    states[thread] = total;
  }
};

/// Results of a chunk, from the state of all chunks up to the one before.
template <class Scan, class Source, class Sink>
struct ScanChunk {
  Chunks chunks;
  Source source;
  Sink sink;
  const typename Scan::State* before;

  PLEAT_HOST_DEVICE void operator()(int64_t thread) const {
    const Chunks::Own own = chunks.own(thread);
    typename Scan::State total = source(own.first);
    if (own.number > 0) total = Scan::then(before[thread - chunks.inner.divisor()], total);
    sink(own.first, total);
    for (int64_t k = 1; k < own.n; ++k) {
      const int64_t at = own.first + k * own.step;
      total = Scan::then(total, source(at));
      sink(at, total);
    }
  }
};

template <class Scan, class Source, class Sink>
void scan_lines(const char* op, Device device, const Lines& lines, bool reverse, const Source& source,
                const Sink& sink) {
  using State = typename Scan::State;
  const int64_t count = lines.outer * lines.inner;
  if (count == 0 || lines.size == 0) return;
  const bool whole = lines.size <= 2 * chunk_elements || (count >= many_lines && lines.inner >= side_by_side);
  const int64_t chunk = whole ? lines.size : chunk_elements;
  const int64_t number = ceil_div(lines.size, chunk);
  const Chunks chunks{lines.size, chunk, FastDivider(lines.inner), FastDivider(number), reverse};
  if (number == 1)
    return launch_indices(op, device, count, ScanChunk<Scan, Source, Sink>{chunks, source, sink, nullptr});
  const Tensor workspace =
      empty({count * number, static_cast<int64_t>(sizeof(State))}, {.dtype = uint8, .device = device});
  auto* const states = reinterpret_cast<State*>(workspace.raw());
  launch_indices(op, device, count * number, FoldChunk<Scan, Source>{chunks, source, states});
  Lines of_states = lines;
  of_states.size = number;
  scan_lines<Scan>(op, device, of_states, false, StateSource<State>{states}, StateSink<State>{states});
  launch_indices(op, device, count * number, ScanChunk<Scan, Source, Sink>{chunks, source, sink, states});
}

}  // namespace pleat::ops::scans
