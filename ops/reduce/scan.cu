#include <algorithm>
#include <type_traits>

#include "pleat/core/checked_math.h"
#include "pleat/core/create.h"
#include "pleat/core/fast_divider.h"
#include "pleat/core/grid_elementwise.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/reduce/grid_scan.h"

/// Lines are cut into chunks, of which each is one thread's. A first launch finds what each chunk amounts to,
/// these are scanned in the same way (in chunks, ...), and a last launch goes through the chunks once more,
/// from what all before amount to. Chunks depend on the shape only.
///
/// A scan is an associative `then`: what a stretch of elements does to the running result, followed by what
/// the next stretch does.

namespace pleat::ops {
namespace {

constexpr int64_t chunk_elements = 32;
/// Lines so many, and beside each other, are enough work for a GPU without cutting them.
constexpr int64_t many_lines = 32768;
constexpr int64_t side_by_side = 8;

template <class T>
struct RunningSum {
  struct State {
    T total;
  };
  PLEAT_HOST_DEVICE static State then(const State& first, const State& second) {
    return {Plus{}(first.total, second.total)};
  }
};

template <class T>
struct RunningProduct {
  struct State {
    T total;
  };
  PLEAT_HOST_DEVICE static State then(const State& first, const State& second) {
    return {Times{}(first.total, second.total)};
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
struct Elements {
  const std::byte* x;
  DType dtype;
  PLEAT_HOST_DEVICE State operator()(int64_t at) const { return {load_as<T>(x, at, dtype)}; }
};
struct Pairs {
  const std::byte* a;
  const std::byte* b;
  DType dtype;
  int64_t ahead;  ///< where the factor lies that belongs to a term
  int64_t end;
  PLEAT_HOST_DEVICE Recurrence::State operator()(int64_t at) const {
    // The first element of all has no factor, and nobody asks for it.
    const int64_t factor = at + ahead;
    return {factor < end ? load_as<double>(a, factor, dtype) : 0, load_as<double>(b, at, dtype)};
  }
};
template <class State>
struct States {
  State* states;
  PLEAT_HOST_DEVICE State operator()(int64_t at) const { return states[at]; }
};

template <class T>
struct Results {
  std::byte* y;
  DType dtype;
  template <class State>
  PLEAT_HOST_DEVICE void operator()(int64_t at, const State& state) const {
    store_as<T>(y, at, dtype, static_cast<T>(state.total));
  }
};
template <class State>
struct ToStates {
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
    return grid_for(op, device, count, ScanChunk<Scan, Source, Sink>{chunks, source, sink, nullptr});
  const Tensor workspace =
      empty({count * number, static_cast<int64_t>(sizeof(State))}, {.dtype = uint8, .device = device});
  auto* const states = reinterpret_cast<State*>(workspace.raw());
  grid_for(op, device, count * number, FoldChunk<Scan, Source>{chunks, source, states});
  Lines of_states = lines;
  of_states.size = number;
  scan_lines<Scan>(op, device, of_states, false, States<State>{states}, ToStates<State>{states});
  grid_for(op, device, count * number, ScanChunk<Scan, Source, Sink>{chunks, source, sink, states});
}

}  // namespace

void grid_running(const char* op, RunningKind kind, const Tensor& y, const Tensor& x, const Lines& lines,
                  bool reverse) {
  const auto run = [&]<class T>(Type<T>) {
    const Results<T> results{y.raw(), y.dtype()};
    if (kind == RunningKind::sum)
      scan_lines<RunningSum<T>>(op, x.device(), lines, reverse,
                                Elements<T, typename RunningSum<T>::State>{x.raw(), x.dtype()}, results);
    else
      scan_lines<RunningProduct<T>>(op, x.device(), lines, reverse,
                                    Elements<T, typename RunningProduct<T>::State>{x.raw(), x.dtype()},
                                    results);
  };
  if (is_floating(x.dtype()))
    run(Type<double>{});
  else
    run(Type<int64_t>{});
}

void grid_linear_scan(const char* op, const Tensor& y, const Tensor& a, const Tensor& b, const Lines& lines,
                      bool reverse) {
  scan_lines<Recurrence>(op, y.device(), lines, reverse,
                         Pairs{a.raw(), b.raw(), a.dtype(), reverse ? lines.inner : 0, a.numel()},
                         Results<double>{y.raw(), y.dtype()});
}

}  // namespace pleat::ops
