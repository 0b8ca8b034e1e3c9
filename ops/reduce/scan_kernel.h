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

#if PLEAT_COMPILES_KERNELS
#include "pleat/core/kernels/block.h"
#endif

/// Scans on a GPU.
///
/// Lines are cut into chunks, of which each is one thread's, or one warp's where a line's elements neighbour
/// each other. A first launch finds what each chunk amounts to, these are scanned in the same way (in chunks,
/// ...), and a last launch goes through the chunks once more, from what all before amount to. Chunks depend
/// on the shape only.
///
/// A scan is an associative `then`: what a stretch of elements does to the running result, followed by what
/// the next stretch does.

namespace pleat::ops::scans {

inline constexpr int64_t chunk_elements = 32;
/// Lines so many, and beside each other, are enough work for a GPU without cutting them.
inline constexpr int64_t many_lines = 32768;
inline constexpr int64_t side_by_side = 8;
/// Elements of a warp's chunk, and lines that are enough work for a GPU without cutting them.
inline constexpr int64_t warp_chunk_elements = 1024;
inline constexpr int64_t many_warps = 2048;

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

/// Whether vectors of `width` elements, which are seen as T, lie at multiples of their bytes.
template <class T>
bool vectors_lie_in(const std::byte* x, DType dtype, uint32_t width) {
  const bool known =
      moves_vectors_of<T>(dtype) || (std::is_same_v<T, double> && moves_vectors_of<float>(dtype));
  return known && (width == vector_width || is_half(dtype)) &&
         reinterpret_cast<std::uintptr_t>(x) % static_cast<std::uintptr_t>(width * size_of(dtype)) == 0;
}
/// Calls `f` with the type of a vector of `width` elements.
template <class T, std::size_t width, class F>
PLEAT_HOST_DEVICE void with_vector_type(DType dtype, const F& f) {
  if constexpr (std::is_same_v<T, double>)
    if (width == half_width || dtype != float64) return as_stored<float, width>(dtype, f);
  as_stored<T, width>(dtype, f);
}

/// What single elements do.
template <class T, class State>
struct ElementSource {
  const std::byte* x;
  DType dtype;
  PLEAT_HOST_DEVICE State operator()(int64_t at) const { return {load_as<T>(x, at, dtype)}; }
  /// `width` neighbours.
  template <std::size_t width>
  PLEAT_HOST_DEVICE void load(int64_t at, State* states) const {
    with_vector_type<T, width>(dtype, [&]<class Stored>(Type<Stored>) {
      T lanes[width];
      Loaded<Stored, width>(reinterpret_cast<const Stored*>(x) + at).unpack(lanes);
      PLEAT_UNROLL
      for (std::size_t j = 0; j < width; ++j) states[j] = {lanes[j]};
    });
  }
  /// Whether it can, for any multiple of `width`.
  static constexpr bool has_half_width = std::is_floating_point_v<T>;
  bool has_vectors(uint32_t width) const { return vectors_lie_in<T>(x, dtype, width); }
};
struct PairSource {
  static constexpr bool has_half_width = false;
  static bool has_vectors(uint32_t) { return false; }

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
  static constexpr bool has_half_width = false;
  static bool has_vectors(uint32_t) { return false; }
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
  template <std::size_t width, class State>
  PLEAT_HOST_DEVICE void store(int64_t at, const State* states) const {
    T lanes[width];
    PLEAT_UNROLL
    for (std::size_t j = 0; j < width; ++j) lanes[j] = static_cast<T>(states[j].total);
    with_vector_type<T, width>(dtype, [&]<class Stored>(Type<Stored>) {
      store_lanes<width>(reinterpret_cast<Stored*>(y) + at, lanes);
    });
  }
  bool has_vectors(uint32_t width) const { return vectors_lie_in<T>(y, dtype, width); }
};
template <class State>
struct StateSink {
  static bool has_vectors(uint32_t) { return false; }
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
  static constexpr bool keeps_registers = true;
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
  static constexpr bool keeps_registers = true;
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

#if PLEAT_COMPILES_KERNELS

/// A chunk a warp: its lanes have `width` neighbours each, and scan what these amount to. Results, or what
/// the chunks amount to where there is a place for that.
template <class Scan, class Source, class Sink, int width>
struct ScanByWarps {
  using State = typename Scan::State;
  Chunks chunks;
  int64_t count;  ///< chunks
  Source source;
  Sink sink;
  const State* before;
  State* totals;
  bool by_vectors;

  __device__ void operator()(int64_t b, const Block& block) const {
    constexpr int64_t warp = detail::warp_threads;
    const int64_t chunk = b * (block_threads / warp) + block.thread() / warp;
    if (chunk >= count) return;
    const int lane = block.thread() % detail::warp_threads;
    const Chunks::Own own = chunks.own(chunk);
    bool has_before = before != nullptr && own.number > 0;
    State so_far = has_before ? before[chunk - 1] : State{};
    for (int64_t start = 0; start < own.n; start += warp * width) {
      const int64_t first = start + lane * width;
      const int mine = static_cast<int>(first + width <= own.n ? width : first < own.n ? own.n - first : 0);
      State states[width];
      load(own, first, mine, states);
      PLEAT_UNROLL
      for (int j = 1; j < width; ++j)
        if (j < mine) states[j] = Scan::then(states[j - 1], states[j]);
      State total = states[0];
      PLEAT_UNROLL
      for (int j = 1; j < width; ++j)
        if (j < mine) total = states[j];
      for (int apart = 1; apart < warp; apart *= 2) {
        const State other = detail::moved_words(total, [apart](unsigned word) {
          return __shfl_up_sync(detail::whole_warp, word, static_cast<unsigned>(apart));
        });
        if (lane >= apart) total = Scan::then(other, total);
      }
      if (totals == nullptr) {
        const State left = detail::moved_words(
            total, [](unsigned word) { return __shfl_up_sync(detail::whole_warp, word, 1); });
        const bool has_left = lane > 0 || has_before;
        const State prefix = lane == 0 ? so_far : has_before ? Scan::then(so_far, left) : left;
        PLEAT_UNROLL
        for (int j = 0; j < width; ++j)
          if (has_left) states[j] = Scan::then(prefix, states[j]);
        store(own, first, mine, states);
      }
      const int64_t left_over = own.n - start;
      const int last = static_cast<int>(left_over >= warp * width ? warp - 1 : (left_over - 1) / width);
      const State all = detail::moved_words(
          total, [last](unsigned word) { return __shfl_sync(detail::whole_warp, word, last); });
      so_far = has_before ? Scan::then(so_far, all) : all;
      has_before = true;
    }
    if (totals != nullptr && lane == 0) totals[chunk] = so_far;
  }

 private:
  /// Where the neighbours lie that begin with element `first` of a chunk.
  static __device__ int64_t vector_at(const Chunks::Own& own, int64_t first) {
    return own.step > 0 ? own.first + first : own.first - first - (width - 1);
  }
  /// Neighbours in the order of the scan, or in that of memory.
  static __device__ void turn(const Chunks::Own& own, const State* from, State* to) {
    PLEAT_UNROLL
    for (int j = 0; j < width; ++j) to[j] = own.step > 0 ? from[j] : from[width - 1 - j];
  }
  __device__ void load(const Chunks::Own& own, int64_t first, int mine, State* states) const {
    if constexpr (requires { source.template load<width>(first, states); })
      if (by_vectors && mine == width) {
        State lanes[width];
        source.template load<width>(vector_at(own, first), lanes);
        return turn(own, lanes, states);
      }
    PLEAT_UNROLL
    for (int j = 0; j < width; ++j)
      states[j] = j < mine ? source(own.first + (first + j) * own.step) : State{};
  }
  __device__ void store(const Chunks::Own& own, int64_t first, int mine, const State* states) const {
    if constexpr (requires { sink.template store<width>(first, states); })
      if (by_vectors && mine == width) {
        State lanes[width];
        turn(own, states, lanes);
        return sink.template store<width>(vector_at(own, first), lanes);
      }
    PLEAT_UNROLL
    for (int j = 0; j < width; ++j)
      if (j < mine) sink(own.first + (first + j) * own.step, states[j]);
  }
};

template <class Scan, class Source, class Sink>
void scan_lines(const char* op, Device device, const Lines& lines, bool reverse, const Source& source,
                const Sink& sink) {
  using State = typename Scan::State;
  const int64_t count = lines.outer * lines.inner;
  if (count == 0 || lines.size == 0) return;
  const bool by_warps = lines.inner == 1 && lines.size > detail::warp_threads;
  const int64_t in_chunk = by_warps ? warp_chunk_elements : chunk_elements;
  const bool enough = by_warps ? count >= many_warps : count >= many_lines && lines.inner >= side_by_side;
  const int64_t chunk = enough || lines.size <= 2 * in_chunk ? lines.size : in_chunk;
  const int64_t number = ceil_div(lines.size, chunk);
  const Chunks chunks{lines.size, chunk, FastDivider(lines.inner), FastDivider(number), reverse};
  const auto has_vectors = [&](uint32_t width) {
    return lines.size % width == 0 && source.has_vectors(width) && sink.has_vectors(width);
  };
  const auto scan = [&](const State* before, State* totals) {
    const auto launch_warps = [&]<int width>(std::integral_constant<int, width>, bool by_vectors) {
      const ScanByWarps<Scan, Source, Sink, width> functor{chunks, count * number, source,    sink,
                                                           before, totals,         by_vectors};
      launch_blocks(op, device, ceil_div(count * number, int64_t{block_threads / detail::warp_threads}),
                    functor);
    };
    if constexpr (Source::has_half_width)
      if (by_warps && has_vectors(half_width))
        return launch_warps(std::integral_constant<int, half_width>{}, true);
    if (by_warps)
      launch_warps(std::integral_constant<int, vector_width>{}, has_vectors(vector_width));
    else if (totals != nullptr)
      launch_indices(op, device, count * number, FoldChunk<Scan, Source>{chunks, source, totals});
    else
      launch_indices(op, device, count * number, ScanChunk<Scan, Source, Sink>{chunks, source, sink, before});
  };
  if (number == 1) return scan(nullptr, nullptr);
  const Tensor workspace =
      empty({count * number, static_cast<int64_t>(sizeof(State))}, {.dtype = uint8, .device = device});
  auto* const states = reinterpret_cast<State*>(workspace.raw());
  scan(nullptr, states);
  Lines of_states = lines;
  of_states.size = number;
  scan_lines<Scan>(op, device, of_states, false, StateSource<State>{states}, StateSink<State>{states});
  scan(states, nullptr);
}

#else

template <class Scan, class Source, class Sink>
void scan_lines(const char* op, Device device, const Lines& lines, bool reverse, const Source& source,
                const Sink& sink);

#endif

}  // namespace pleat::ops::scans
