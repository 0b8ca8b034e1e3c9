// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "pleat/ops/softmax/team_lines.h"

/// Short lines, such as the logits of ten classes: a thread has one, which comes to it through shared memory
/// by pairs of neighbours. For files with kernels only.

namespace pleat::ops {

/// TeamLines, some of which are such.
struct ShortLines : TeamLines {
  Divider<uint32_t> pairs{1};  ///< of a line
  bool are_short = false;

  ShortLines(const Lines& lines, std::initializer_list<Tensor> all, int64_t least_vectors = 32)
      : TeamLines(lines, all, least_vectors) {
    are_short = access == Access::staged && teams.log_lanes == 0 && size >= 2 && size % 2 == 0;
    for (const Tensor& x : all)
      are_short = are_short && reinterpret_cast<std::uintptr_t>(x.raw()) %
                                       static_cast<std::uintptr_t>(2 * size_of(x.dtype())) ==
                                   0;
    if (are_short) pairs = Divider<uint32_t>(size / 2);
  }
};

/// The line of a thread, with what an OwnLine has that functions of held lines call.
template <class T>
class ShortLine {
 public:
  __device__ ShortLine(const ShortLines& lines, int64_t b, const Block& own_block)
      : block(own_block),
        line(b * block_threads + own_block.thread()),
        count_(static_cast<int>(lines.pairs.divisor())),
        own_count_(line < lines.count ? count_ : 0),
        pairs_(lines.pairs),
        first_(b * block_threads),
        rest_(static_cast<int>(std::min<int64_t>(lines.count - first_, block_threads)) * count_) {}

  __device__ bool exists() const { return own_count_ > 0; }
  __device__ bool is_first() const { return exists(); }
  template <class F>
  __device__ void for_parts(const F& f) const {
    HeldLine<T> held;
    f(0, held);
  }
  template <class F>
  __device__ void for_held(int64_t, const HeldLine<T>&, const F& f) const {
    for_pairs([&](int p) {
      f(2 * p);
      f(2 * p + 1);
    });
  }
  template <class F>
  __device__ void for_numbered(int64_t, const HeldLine<T>& held, const F& f) const {
    for_held(0, held, [&](int k) { f(k, int64_t{k}); });
  }
  template <class Stored>
  __device__ void load(int64_t, HeldLine<T>& held, const Stored* x, T) const {
    const auto* const from = reinterpret_cast<const Vector<Stored, 2>*>(x) + first_ * count_;
    __syncthreads();
    for_staged([&](int i, int place) {
      const Vector<Stored, 2> raw = from[i];
      staged().write(place, {convert<T>(raw.lane[0]), convert<T>(raw.lane[1])});
    });
    __syncthreads();
    for_pairs([&](int p) {
      const Vector<T, 2> pair = staged().read(own_place() + p);
      held.of[2 * p] = pair.lane[0];
      held.of[2 * p + 1] = pair.lane[1];
    });
  }
  template <class Stored>
  __device__ void store(int64_t, const HeldLine<T>& held, Stored* y) const {
    auto* const to = reinterpret_cast<Vector<Stored, 2>*>(y) + first_ * count_;
    __syncthreads();
    for_pairs([&](int p) { staged().write(own_place() + p, {held.of[2 * p], held.of[2 * p + 1]}); });
    __syncthreads();
    for_staged([&](int i, int place) {
      const Vector<T, 2> pair = staged().read(place);
      to[i] = {convert<Stored>(pair.lane[0]), convert<Stored>(pair.lane[1])};
    });
  }
  template <class Stored>
  __device__ T element(const Stored*, int64_t number) const {
    const Vector<T, 2> pair = staged().read(own_place() + static_cast<int>(number) / 2);
    return number % 2 == 0 ? pair.lane[0] : pair.lane[1];
  }
  /// After `load` of x.
  template <class Stored, class F>
  __device__ void for_all(const Stored*, const F& f) const {
    for_pairs([&](int p) {
      const Vector<T, 2> pair = staged().read(own_place() + p);
      f(pair.lane[0]);
      f(pair.lane[1]);
    });
  }
  template <class Number, class Merge>
  __device__ void merge(Number&, const Merge&) const {}

  const Block& block;
  const int64_t line;

 private:
  static constexpr int most_pairs = TeamLines::most_of<T> / 2;
  using Staged = SharedArray<Vector<T, 2>, static_cast<std::size_t>(block_threads*(most_pairs + 1))>;
  static __device__ Staged staged() { return {}; }

  /// Pairs of neighbouring lines lie in different banks where each has an odd number of them.
  __device__ int own_place() const { return block.thread() * (count_ | 1); }
  template <class F>
  __device__ void for_pairs(const F& f) const {
    PLEAT_UNROLL
    for (int p = 0; p < most_pairs; ++p) {
      if (p >= own_count_) break;
      f(p);
    }
  }
  /// Calls `f(number, shared place)` for the thread's share of the block's pairs.
  template <class F>
  __device__ void for_staged(const F& f) const {
    for (int i = block.thread(); i < rest_; i += block_threads) {
      auto within = static_cast<uint32_t>(i);
      f(i, (count_ & 1) != 0 ? i : i + static_cast<int>(pairs_.divide(within)));
    }
  }

  int count_, own_count_;
  Divider<uint32_t> pairs_;
  int64_t first_;  ///< line of the block
  int rest_;       ///< pairs of the block
};

template <class Own>
inline constexpr bool is_short_line = false;
template <class T>
inline constexpr bool is_short_line<ShortLine<T>> = true;

/// Calls `f(Type<T>{}, Type<Stored>{}, Type<Own>{})` with what a thread sees of the lines.
template <class F>
void dispatch_lines(DType dtype, const ShortLines& lines, const F& f) {
  dispatch_stored(dtype, [&]<class T, class Stored>(Type<T> type, Type<Stored> stored) {
    if constexpr (std::is_same_v<T, float>)
      if (lines.are_short) return f(type, stored, Type<ShortLine<T>>{});
    f(type, stored, Type<OwnLine<T>>{});
  });
}

}  // namespace pleat::ops
