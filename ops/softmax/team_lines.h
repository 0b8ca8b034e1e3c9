// Private header: not installed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/ops/reduce/lines.h"

/// Lines of a tensor in the registers of teams of a block's threads, for softmax and the class losses. A line
/// that has no room there is read part by part, as often as a function asks for its parts. For files with
/// kernels only.

namespace pleat::ops {

/// Elements that a thread holds.
template <class T, int most_vectors>
struct Held {
  static constexpr int vectors = most_vectors;
  T of[vectors * vector_width];
};
/// Of a line that its team holds whole, and of a part of a longer one.
template <class T>
using HeldLine = Held<T, sizeof(T) == 4 ? 8 : 2>;
template <class T>
using HeldPart = Held<T, 1>;

/// Lines shared out to teams of threads: side by side where lines lie beside each other.
struct TeamLines {
  enum class Access {
    apart,    ///< elements of a line by neighbouring threads, or of neighbouring lines
    vectors,  ///< by vectors of a line
    staged,   ///< through shared memory: lines whose length is no multiple of vectors, or short ones
  };
  /// Elements that a thread holds of a line, at most.
  template <class T>
  static constexpr int most_of = HeldLine<T>::vectors* static_cast<int>(vector_width);

  int64_t count;  ///< lines
  int64_t size;
  FastDivider inner;
  int most;  ///< most_of their type
  Teams teams{};
  Access access = Access::apart;
  Divider<uint32_t> staged_run{};  ///< staged elements that lie one behind the other
  int gap = 0;                     ///< after these

  /// `all`: what is read and written; the first is no parameter. Shorter lines than `least_vectors` are
  /// staged, which costs less where most is done once a line.
  TeamLines(const Lines& lines, std::initializer_list<Tensor> all, int64_t least_vectors = 32)
      : count(lines.outer * lines.inner),
        size(lines.size),
        inner(lines.inner),
        most(all.begin()->dtype() == float64 ? most_of<double> : most_of<float>) {
    constexpr int64_t side_by_side = 32, sector_vectors = 4, banks = 32;
    constexpr auto width = static_cast<int64_t>(vector_width);
    bool by_vectors = true;
    for (const Tensor& x : all)
      if (x.defined())
        by_vectors = by_vectors && reinterpret_cast<std::uintptr_t>(x.raw()) %
                                           static_cast<std::uintptr_t>(width * size_of(x.dtype())) ==
                                       0;
    const auto lanes_for = [&](int64_t elements) {
      return static_cast<int64_t>(
          std::bit_ceil(static_cast<uint64_t>(ceil_div(std::max<int64_t>(size, 1), elements))));
    };
    int64_t lanes = 0;
    if (lines.inner > 1) {
      const auto beside =
          static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(lines.inner, side_by_side))));
      lanes = std::min(lanes_for(most), block_threads / beside);
    } else if (by_vectors && size % width == 0 && size >= least_vectors) {
      access = Access::vectors;
      lanes = std::clamp<int64_t>(lanes_for(most), sector_vectors, block_threads);
    } else {
      lanes = std::min<int64_t>(lanes_for(most), block_threads);
      if (size <= most * lanes) access = Access::staged;
      // Neighbours lie in different banks: those of a line, and those at one place of lines side by side.
      const int64_t together = ceil_div(size, lanes) / 2 * 2 + 1;
      staged_run = Divider<uint32_t>(lanes == 1 ? std::lcm(std::max<int64_t>(size, 1), banks)
                                                : std::max<int64_t>(size, 1));
      gap = static_cast<int>(lanes == 1 ? 1 : together * lanes - size);
    }
    teams = {std::countr_zero(static_cast<uint64_t>(lanes)), lines.inner == 1};
  }

  __host__ __device__ int64_t blocks() const { return (count + teams.count() - 1) / teams.count(); }
  /// Whether the team holds the line whole.
  __host__ __device__ bool are_held() const { return size <= int64_t{most} << teams.log_lanes; }
};

/// Calls `f(Type<T>{}, Type<Stored>{})`.
template <class F>
void dispatch_stored(DType dtype, const F& f) {
  if (dtype == float64) return f(Type<double>{}, Type<double>{});
  if (dtype == float16) return f(Type<float>{}, Type<Half>{});
  if (dtype == bfloat16) return f(Type<float>{}, Type<BFloat16>{});
  f(Type<float>{}, Type<float>{});
}

/// The line of a thread's team; nothing where there is none.
template <class T>
class OwnLine {
 public:
  __device__ OwnLine(const TeamLines& all_lines, int64_t b, const Block& own_block)
      : lines(all_lines),
        block(own_block),
        line(b * lines.teams.count() + lines.teams.team_of(block.thread())),
        block_number_(b),
        lane_(lines.teams.lane_of(block.thread())),
        rest_(part_from(0, HeldLine<T>::vectors)),
        vectors_(vectors_in(rest_)) {
    if (!exists()) return;
    int64_t within = line;
    first_ = lines.inner.divide(within) * lines.size * lines.inner.divisor() + within;
  }

  __device__ bool exists() const { return line < lines.count; }
  __device__ bool is_first() const { return lane_ == 0 && exists(); }
  /// Calls `f(start, held)` with the number of the first element and memory for the elements: of the line, or
  /// of each part of it.
  template <class F>
  __device__ void for_parts(const F& f) const {
    if (lines.are_held()) {
      HeldLine<T> held;
      return f(0, held);
    }
    HeldPart<T> held;
    for (int64_t start = 0; start < lines.size; start += size_of(held)) f(start, held);
  }
  /// Calls `f(k)` for the elements that the thread holds of a part; also for what is left of its last vector.
  template <int vectors, class F>
  __device__ void for_held(int64_t start, const Held<T, vectors>&, const F& f) const {
    for_vectors<vectors>(start, [&](int v) {
      PLEAT_UNROLL
      for (int j = 0; j < width; ++j) f(v * width + j);
    });
  }
  /// Calls `f(k, number in the line)`, also for what is left of the last vector.
  template <int vectors, class F>
  __device__ void for_numbered(int64_t start, const Held<T, vectors>&, const F& f) const {
    const int first = lines.access == Access::vectors ? lane_ * width : lane_;
    const int step = lines.access == Access::vectors ? 1 : lanes();
    for_vectors<vectors>(start, [&](int v) {
      PLEAT_UNROLL
      for (int j = 0; j < width; ++j) f(v * width + j, start + (first + v * width * lanes() + j * step));
    });
  }
  /// Calls `f(k)` for the elements of a held line alone.
  template <class F>
  __device__ void for_elements(const HeldLine<T>& held, const F& f) const {
    if (lines.access == Access::vectors) return for_held(0, held, f);
    for_numbers<HeldLine<T>::vectors>(0, [&](int k, int, bool is_one) {
      if (is_one) f(k);
    });
  }

  /// What is no element of the line is `otherwise`. All threads of a block call this, and `store`.
  template <int vectors, class Stored>
  __device__ void load(int64_t start, Held<T, vectors>& held, const Stored* x, T otherwise) const {
    if (lines.access == Access::staged) {
      __syncthreads();
      for_staged([&](int64_t from, int to) { staged().write(to, convert<T>(x[from])); });
      __syncthreads();
      const int own = place(0);
      return for_numbers<vectors>(start, [&](int k, int number, bool is_one) {
        held.of[k] = is_one ? staged().read(own + number) : otherwise;
      });
    }
    // Loads do not wait for each other; and a half type would be 0 first.
    const Stored* const from = x + first_ + start * lines.inner.divisor();
    if (lines.access == Access::vectors) {
      Loaded<Stored, vector_width> raw[vectors];
      int64_t at = lane_;
      for_vectors<vectors>(start, [&](int v) {
        raw[v] = Loaded<Stored, vector_width>(from, at);
        at += lanes();
      });
      return for_vectors<vectors>(start, [&](int v) { raw[v].unpack(held.of + v * width); });
    }
    using Bits = std::conditional_t<sizeof(Stored) == 2, uint16_t, Stored>;
    Bits raw[vectors * width];
    const auto* at = reinterpret_cast<const std::byte*>(from + lane_ * lines.inner.divisor());
    const int64_t step = lanes() * lines.inner.divisor() * static_cast<int64_t>(sizeof(Stored));
    for_numbers<vectors>(start, [&](int k, int, bool is_one) {
      raw[k] = is_one ? *reinterpret_cast<const Bits*>(at) : std::bit_cast<Bits>(convert<Stored>(otherwise));
      at += step;
    });
    for_held(start, held, [&](int k) { held.of[k] = convert<T>(std::bit_cast<Stored>(raw[k])); });
  }
  /// The elements of a row that belong to those of every line, for instance its weights.
  template <class Stored>
  __device__ void load_row(HeldLine<T>& held, const Stored* row) const {
    if (lines.access == Access::vectors) {
      int64_t at = lane_;
      return for_vectors<HeldLine<T>::vectors>(0, [&](int v) {
        Loaded<Stored, vector_width>(row, at).unpack(held.of + v * width);
        at += lanes();
      });
    }
    for_numbers<HeldLine<T>::vectors>(
        0, [&](int k, int number, bool is_one) { held.of[k] = is_one ? convert<T>(row[number]) : T(0); });
  }
  template <int vectors, class Stored>
  __device__ void store(int64_t start, const Held<T, vectors>& held, Stored* y) const {
    if (lines.access == Access::staged) {
      __syncthreads();
      const int own = place(0);
      for_numbers<vectors>(start, [&](int k, int number, bool is_one) {
        if (is_one) staged().write(own + number, held.of[k]);
      });
      __syncthreads();
      return for_staged([&](int64_t to, int from) { y[to] = convert<Stored>(staged().read(from)); });
    }
    Stored* const to = y + first_ + start * lines.inner.divisor();
    if (lines.access == Access::vectors) {
      int64_t number = lane_;
      return for_vectors<vectors>(start, [&](int v) {
        store_lanes<vector_width>(to, held.of + v * width, number);
        number += lanes();
      });
    }
    auto* at = reinterpret_cast<std::byte*>(to + lane_ * lines.inner.divisor());
    const int64_t step = lanes() * lines.inner.divisor() * static_cast<int64_t>(sizeof(Stored));
    for_numbers<vectors>(start, [&](int k, int, bool is_one) {
      if (is_one) *reinterpret_cast<Stored*>(at) = convert<Stored>(held.of[k]);
      at += step;
    });
  }
  /// Element `number` of the line, after `load` of x.
  template <class Stored>
  __device__ T element(const Stored* x, int64_t number) const {
    return lines.access == Access::staged ? staged().read(place(static_cast<int>(number)))
                                          : convert<T>(x[first_ + number * lines.inner.divisor()]);
  }

  /// Calls `f(element)` for those of x that are the thread's, in all parts.
  template <class Stored, class F>
  __device__ void for_all(const Stored* x, const F& f) const {
    if (!exists()) return;
    for (int64_t k = lane_; k < lines.size; k += lanes())
      f(convert<T>(x[first_ + k * lines.inner.divisor()]));
  }

  /// A team's numbers put together, for all its threads; `merge_numbers` does not care which comes first.
  template <class Number, class Merge>
  __device__ void merge(Number& number, const Merge& merge_numbers) const {
    if (!lines.teams.adjacent || lanes() > detail::warp_threads) {
      block.combine(number, lines.teams, merge_numbers);
      return block.share(number, lines.teams);
    }
    PLEAT_UNROLL
    for (int apart = detail::warp_threads / 2; apart > 0; apart /= 2) {
      if (apart >= lanes()) continue;
      const int other = (block.thread() ^ apart) & (detail::warp_threads - 1);
      merge_numbers(number, detail::moved_words(number, [other](unsigned word) {
                      return __shfl_sync(detail::whole_warp, word, other);
                    }));
    }
  }

  static constexpr int width = vector_width, log_width = std::countr_zero(vector_width);
  const TeamLines& lines;
  const Block& block;
  const int64_t line;

 private:
  using Access = TeamLines::Access;
  using Staged = SharedArray<T, block_threads*(TeamLines::most_of<T> + 2)>;
  static __device__ Staged staged() { return {}; }

  __device__ int lanes() const { return lines.teams.lanes(); }
  template <int vectors>
  __device__ int size_of(const Held<T, vectors>&) const {
    return vectors * width * lanes();
  }
  /// Where element i of a block's lines is staged.
  __device__ int staged_place(int i) const {
    auto rest = static_cast<uint32_t>(i);
    return i + static_cast<int>(lines.staged_run.divide(rest)) * lines.gap;
  }
  /// The same of an element of the line.
  __device__ int place(int number) const {
    return staged_place(lines.teams.team_of(block.thread()) * static_cast<int>(lines.size)) + number;
  }
  /// Elements of a part from the thread's first on, of which some may be other threads'.
  template <int vectors>
  __device__ int rest_of(int64_t start) const {
    return vectors == HeldLine<T>::vectors ? rest_ : part_from(start, vectors);
  }
  __device__ int part_from(int64_t start, int vectors) const {
    const int64_t rest = exists() ? lines.size - start : 0;
    const int64_t part = vectors * width * lanes();
    return static_cast<int>(rest < part ? rest : part) -
           (lines.access == Access::vectors ? lane_ * width : lane_);
  }
  /// How many of a thread's vectors have one of `rest` elements from its first on.
  __device__ int vectors_in(int rest) const {
    return (rest + width * lanes() - 1) >> (lines.teams.log_lanes + log_width);
  }
  template <int vectors, class F>
  __device__ void for_vectors(int64_t start, const F& f) const {
    const int mine = vectors == HeldLine<T>::vectors ? vectors_ : vectors_in(rest_of<vectors>(start));
    PLEAT_UNROLL
    for (int v = 0; v < vectors; ++v) {
      if (v >= mine) break;
      f(v);
    }
  }
  /// Calls `f(k, number in the part, whether it is an element)` where they lie apart.
  template <int vectors, class F>
  __device__ void for_numbers(int64_t start, const F& f) const {
    const int rest = rest_of<vectors>(start);
    PLEAT_UNROLL
    for (int v = 0; v < vectors; ++v) {
      if (v * width * lanes() >= rest) break;
      PLEAT_UNROLL
      for (int j = 0; j < width; ++j) {
        const int before = (v * width + j) * lanes();
        f(v * width + j, before + lane_, before < rest);
      }
    }
  }

  /// Calls `f(place, shared place)` for the threads' share of the block's lines.
  template <class F>
  __device__ void for_staged(const F& f) const {
    const int64_t first = block_number_ * lines.teams.count() * lines.size;
    const int64_t rest = lines.count * lines.size - first;
    const int all = static_cast<int>(lines.size) * lines.teams.count();
    const int n = rest < all ? static_cast<int>(rest) : all;
    for (int i = block.thread(); i < n; i += block_threads) f(first + i, staged_place(i));
  }

  int64_t block_number_;
  int64_t first_ = 0;
  int lane_;
  int rest_, vectors_;  ///< rest_of(0) of the whole line, and how many of its vectors are the thread's
};

}  // namespace pleat::ops
