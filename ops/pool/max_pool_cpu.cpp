#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/pool/max_pool_functors.h"
#include "pleat/ops/reduce/fold.h"

/// Many channels_last channels are what vectors run along, window by window; small planes are turned to be
/// channels. Else a row of the result is made in two steps: the maxima over the rows of x that belong to it,
/// which are loops over whole rows, and then those over columns. For these, some rows are laid end to end
/// with what pads them, and their columns sorted by their place in a stride, so that each place of the window
/// is a loop over one long array.

namespace pleat::ops {
namespace {

constexpr int64_t grain_elements = 16384;
constexpr int64_t many_channels = 16;
constexpr int64_t narrow_row = 32;  ///< is not worth loops along it
constexpr int64_t small_plane = 1024;
constexpr int64_t wide_window = 32;       ///< is worth a loop of its own
constexpr int64_t block_elements = 4096;  ///< of rows laid end to end: they stay in the first-level cache

/// A window's maximum and its place, for n of them. Null places are not wanted.
template <class T, class Index>
struct Best {
  T* value;
  Index* place;

  Best at(int64_t i) const { return {value + i, place == nullptr ? nullptr : place + i}; }
};

/// Takes the first candidates as they are: their places are `place` + columns[i], or `place` for all without
/// columns.
template <class T, class Index>
void take_all(int64_t n, const T* __restrict value, Index place, const Index* __restrict columns,
              const Best<T, Index>& best) {
  std::copy_n(value, n, best.value);
  if (best.place == nullptr) return;
  Index* __restrict const to = best.place;
  if (columns == nullptr)
    std::fill_n(to, n, place);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = place + columns[i];
}

/// The same where the candidates are larger; they lie behind the best so far.
template <class T, class Index>
void take_larger(int64_t n, const T* __restrict value, Index place, const Index* __restrict columns,
                 const Best<T, Index>& best) {
  T* __restrict const b = best.value;
  Index* __restrict const p = best.place;
  if (p == nullptr) {
    for (int64_t i = 0; i < n; ++i) b[i] = is_new_maximum(value[i], b[i]) ? value[i] : b[i];
    return;
  }
  const auto take = [&](int64_t i, Index own) {
    const bool larger = is_new_maximum(value[i], b[i]);
    b[i] = larger ? value[i] : b[i];
    p[i] = larger ? own : p[i];
  };
  if (columns == nullptr)
    for (int64_t i = 0; i < n; ++i) take(i, place);
  else
    for (int64_t i = 0; i < n; ++i) take(i, place + columns[i]);
}

/// best[i] = that of from[i + ahead[0]], from[i + ahead[1]] ..., for i below n or a little more.
template <class T, class Index>
void slide(const Best<T, Index>& from, std::span<const int64_t> ahead, int64_t n,
           const Best<T, Index>& best) {
  constexpr int64_t lanes = simd::lanes<T>;
  using Values = simd::Vector<T>;
  constexpr int place_bytes = static_cast<int>(lanes * sizeof(Index));
  using Places = simd::Vector<Index, place_bytes>;
  for (int64_t i = 0; i < n; i += lanes) {
    Values value = simd::load(from.value + i + ahead[0]);
    if (from.place == nullptr) {
      for (const int64_t step : ahead.subspan(1)) {
        const Values other = simd::load(from.value + i + step);
        value = ((other > value) | ((other != other) & (value == value))) ? other : value;
      }
    } else {
      Places place = simd::load<place_bytes>(from.place + i + ahead[0]);
      for (const int64_t step : ahead.subspan(1)) {
        const Values other = simd::load(from.value + i + step);
        const Places other_place = simd::load<place_bytes>(from.place + i + step);
        const auto equal = (other == value) | ((other != other) & (value != value));
        const auto larger = (other > value) | ((other != other) & (value == value));
        const auto first = __builtin_convertvector(other_place < place, decltype(equal));
        const auto take = larger | (equal & first);
        value = take ? other : value;
        place = __builtin_convertvector(take, decltype(other_place < place)) ? other_place : place;
      }
      simd::store<place_bytes>(best.place + i, place);
    }
    simd::store(best.value + i, value);
  }
}

/// to[p][q] = from[q][p]: q counts strides of columns, p places in a stride.
template <class T>
void sort_by_place(T* __restrict to, const T* __restrict from, int64_t stride, int64_t count) {
  if (stride != 2) return transpose_matrix(to, count, from, stride, count, stride);
  for (int64_t q = 0; q < count; ++q) {
    to[q] = from[2 * q];
    to[count + q] = from[2 * q + 1];
  }
}

bool are_channels_last(const PlaneSteps& in, const PlaneSteps& out) {
  return in.channel_step == 1 && out.channel_step == 1;
}

template <class T, class Index>
class Forward {
 public:
  Forward(const WindowRules& windows, int64_t images, const PlaneSteps& in, const PlaneSteps& out, const T* x,
          const Best<T, Index>& result)
      : windows_(windows),
        columns_(windows[2]),
        in_(in),
        x_(x),
        result_(result),
        inner_(are_channels_last(in, out) ? in.channels : 1),
        rows_(images * (in.channels / inner_) * windows[0].outputs * windows[1].outputs) {
    // Windows of one size, most of whose places lie in the input, slide over the padded row.
    const int64_t reach = columns_.step * (columns_.kernel - 1) + 1;
    slides_ = !columns_.adaptive && reach <= 2 * columns_.inputs + 2 && columns_.kernel < wide_window;
    // To sort pixels of several numbers would take longer than to slide over windows that are not wanted.
    stride_ = slides_ && inner_ == 1 ? columns_.stride : 1;
    apart_ = columns_.stride / stride_;
    strides_ = slides_ ? (columns_.outputs - 1) * apart_ + 1 + (reach - 1) / stride_ : columns_.inputs;
    if (inner_ >= many_channels || result_.place == nullptr) return;
    column_.resize(static_cast<std::size_t>(columns_.inputs * inner_));
    for (std::size_t i = 0; i < column_.size(); ++i)
      column_[i] = static_cast<Index>(static_cast<int64_t>(i) / inner_);
  }

  void run() const {
    if (inner_ >= many_channels) {
      const int64_t row = columns_.inputs * inner_;
      return parallel_for(0, rows_, std::max<int64_t>(1, grain_elements / row), [&](int64_t r, int64_t end) {
        for (; r < end; ++r) pixels_of_row(r);
      });
    }
    if (inner_ == 1 && columns_.inputs < narrow_row && in_.pixels <= small_plane) return run_turned();
    const int64_t line = strides_ * stride_ * inner_;
    const int64_t rows = std::clamp<int64_t>(block_elements / line, 1, rows_);
    parallel_for(0, ceil_div(rows_, rows), std::max<int64_t>(1, grain_elements / (rows * line)),
                 [&](int64_t i, int64_t end) {
                   Scratch scratch((rows + 1) * line + simd::lanes<T>, result_.place != nullptr);
                   for (; i < end; ++i)
                     rows_at_once(i * rows, std::min(rows_, (i + 1) * rows), line, scratch);
                 });
  }

 private:
  static constexpr Index none = std::numeric_limits<Index>::max();  ///< behind every place

  struct Scratch {
    /// `n` numbers a part, behind which windows that do not exist may reach.
    Scratch(int64_t n, bool with_places)
        : values(static_cast<std::size_t>(3 * n)), places(static_cast<std::size_t>(with_places ? 3 * n : 0)) {
      for (int64_t k = 0; k < 3; ++k)
        part[static_cast<std::size_t>(k)] = {values.data() + k * n,
                                             with_places ? places.data() + k * n : nullptr};
    }
    std::vector<T> values;
    std::vector<Index> places;
    std::array<Best<T, Index>, 3> part;
  };

  /// Calls `f(the first element in x, its place in the plane, whether it is the first)` for the rows of x
  /// that row r of the result depends on.
  template <class F>
  void for_rows(int64_t r, const F& f) const {
    const WindowRule &depth = windows_[0], &height = windows_[1];
    const int64_t h_out = r % height.outputs;
    const int64_t d_out = r / height.outputs % depth.outputs;
    const T* const plane = x_ + r / (height.outputs * depth.outputs) * in_.pixels * inner_;
    bool is_first = true;
    for (int64_t d = depth.begin(d_out); d < depth.end(d_out); d += depth.step)
      for (int64_t h = height.begin(h_out); h < height.end(h_out); h += height.step) {
        const int64_t place = (d * height.inputs + h) * columns_.inputs;
        f(plane + place * inner_, place, is_first);
        is_first = false;
      }
  }

  /// Small planes, turned to be the channels of each other.
  void run_turned() const {
    const int64_t out_pixels = windows_[0].outputs * windows_[1].outputs * windows_[2].outputs;
    const int64_t planes = rows_ * columns_.outputs / out_pixels;
    const int64_t planes_together = std::clamp<int64_t>(block_elements * 8 / in_.pixels / 16 * 16, 16, 64);
    const auto steps = [](int64_t n, int64_t pixels) { return PlaneSteps{n, pixels, n * pixels, 1, n}; };
    parallel_for(
        0, ceil_div(planes, planes_together),
        std::max<int64_t>(1, grain_elements / (planes_together * in_.pixels)), [&](int64_t i, int64_t end) {
          std::vector<T> x(static_cast<std::size_t>(planes_together * in_.pixels));
          std::vector<T> values(static_cast<std::size_t>(planes_together * out_pixels));
          std::vector<Index> places(result_.place == nullptr ? 0 : values.size());
          for (; i < end; ++i) {
            const int64_t first = i * planes_together;
            const int64_t n = std::min(planes_together, planes - first);
            const Best<T, Index> own{values.data(), result_.place == nullptr ? nullptr : places.data()};
            const Best<T, Index> to = result_.at(first * out_pixels);
            transpose_matrix(x.data(), n, x_ + first * in_.pixels, in_.pixels, n, in_.pixels);
            const Forward turned(windows_, 1, steps(n, in_.pixels), steps(n, out_pixels), x.data(), own);
            for (int64_t r = 0; r < turned.rows_; ++r) turned.pixels_of_row(r);
            transpose_matrix(to.value, out_pixels, own.value, n, out_pixels, n);
            if (to.place != nullptr) transpose_matrix(to.place, out_pixels, own.place, n, out_pixels, n);
          }
        });
  }

  void pixels_of_row(int64_t r) const {
    for (int64_t w_out = 0; w_out < columns_.outputs; ++w_out) {
      const Best<T, Index> to = result_.at((r * columns_.outputs + w_out) * inner_);
      const int64_t begin = columns_.begin(w_out), end = columns_.end(w_out);
      bool is_empty = true;
      for_rows(r, [&](const T* row, int64_t first_place, bool) {
        for (int64_t w = begin; w < end; w += columns_.step) {
          const auto take = is_empty ? take_all<T, Index> : take_larger<T, Index>;
          take(inner_, row + w * inner_, static_cast<Index>(first_place + w), nullptr, to);
          is_empty = false;
        }
      });
      if (is_empty) fill(to, inner_, Index(-1));
    }
  }

  void rows_at_once(int64_t first, int64_t last, int64_t line, Scratch& scratch) const {
    const auto [lines, sorted, best] = scratch.part;
    const int64_t low = slides_ ? columns_.padding : 0;
    const int64_t taken = std::min(columns_.inputs, strides_ * stride_ - low) * inner_;
    const int64_t n = (last - first) * line;
    // Rows without gaps between them are sorted from where they lie.
    const bool lie_so = stride_ > 1 && taken == line && lines.place == nullptr &&
                        windows_[0].inputs * windows_[1].inputs == 1;
    if (taken != line || windows_[0].step > 1 || windows_[1].step > 1) fill(lines, n, none);
    for (int64_t r = first; r < last && !lie_so; ++r) {
      const Best<T, Index> to = lines.at((r - first) * line + low * inner_);
      for_rows(r, [&](const T* row, int64_t place, bool is_first) {
        const auto take = is_first ? take_all<T, Index> : take_larger<T, Index>;
        take(taken, row, static_cast<Index>(place), column_.data(), to);
      });
    }
    if (!slides_) {
      for (int64_t r = first; r < last; ++r) pick_columns(lines.at((r - first) * line), r);
      return;
    }
    const int64_t count = n / (stride_ * inner_);  // strides of all rows
    if (stride_ > 1) {
      sort_by_place(sorted.value, lie_so ? x_ + first * line : lines.value, stride_, count);
      if (lines.place != nullptr) sort_by_place(sorted.place, lines.place, stride_, count);
    }
    std::vector<int64_t> ahead;
    for (int64_t k = 0; k < columns_.kernel; ++k)
      ahead.push_back((k * columns_.step % stride_ * count + k * columns_.step / stride_) * inner_);
    slide(stride_ > 1 ? sorted : lines, std::span<const int64_t>(ahead), count * inner_, best);
    for (int64_t r = first; r < last; ++r) {
      const Best<T, Index> to = result_.at(r * columns_.outputs * inner_);
      const Best<T, Index> of_row = best.at((r - first) * strides_ * inner_);
      if (apart_ == 1) copy(of_row, columns_.outputs * inner_, to);
      for (int64_t w = 0; apart_ > 1 && w < columns_.outputs; ++w)
        copy(of_row.at(w * apart_ * inner_), inner_, to.at(w * inner_));
      name_empty(to, columns_.outputs * inner_);
    }
  }

  /// Windows without an element have the place -1.
  static void name_empty(const Best<T, Index>& of, int64_t n) {
    for (int64_t i = 0; of.place != nullptr && i < n; ++i)
      of.place[i] = of.place[i] == none ? -1 : of.place[i];
  }

  /// The windows of one row, which may be of any size.
  void pick_columns(const Best<T, Index>& line, int64_t r) const {
    for (int64_t w_out = 0; w_out < columns_.outputs; ++w_out) {
      const Best<T, Index> to = result_.at((r * columns_.outputs + w_out) * inner_);
      const int64_t begin = columns_.begin(w_out), end = columns_.end(w_out);
      if (begin >= end) {
        fill(to, inner_, Index(-1));
        continue;
      }
      if (inner_ == 1 && columns_.step == 1) {
        pick_wide(line.at(begin), end - begin, to);
        name_empty(to, 1);
        continue;
      }
      copy(line.at(begin * inner_), inner_, to);
      for (int64_t w = begin + columns_.step; w < end; w += columns_.step)
        for (int64_t c = 0; c < inner_; ++c) {
          const T value = line.value[w * inner_ + c];
          const bool equal = (value == to.value[c]) | ((value != value) & (to.value[c] != to.value[c]));
          const bool is_first = to.place != nullptr && line.place[w * inner_ + c] < to.place[c];
          if (!(is_new_maximum(value, to.value[c]) | (equal & is_first))) continue;
          to.value[c] = value;
          if (to.place != nullptr) to.place[c] = line.place[w * inner_ + c];
        }
      name_empty(to, inner_);
    }
  }

  /// The best of n neighbours.
  static void pick_wide(const Best<T, Index>& from, int64_t n, const Best<T, Index>& to) {
    const T best = reduction::Fold<reduction::ExtremeStep<T, true>>{}.row(from.value, n, 0);
    *to.value = best;
    if (to.place == nullptr) return;
    Index place = none;
    for (int64_t i = 0; i < n; ++i) {
      const bool equal = (from.value[i] == best) | ((from.value[i] != from.value[i]) & (best != best));
      place = std::min(place, equal ? from.place[i] : none);
    }
    *to.place = place;
  }

  static void copy(const Best<T, Index>& from, int64_t n, const Best<T, Index>& to) {
    std::copy_n(from.value, n, to.value);
    if (to.place != nullptr) std::copy_n(from.place, n, to.place);
  }
  static void fill(const Best<T, Index>& to, int64_t n, Index place) {
    std::fill_n(to.value, n, -std::numeric_limits<T>::infinity());
    if (to.place != nullptr) std::fill_n(to.place, n, place);
  }

  const WindowRules& windows_;
  const WindowRule& columns_;
  PlaneSteps in_;
  const T* x_;
  Best<T, Index> result_;
  int64_t inner_;  ///< numbers of a pixel that are neighbours
  int64_t rows_;   ///< of the result
  bool slides_;
  int64_t stride_, strides_;   ///< of columns, and how many of them a row takes
  int64_t apart_;              ///< strides from a window of the result to the next
  std::vector<Index> column_;  ///< of each number of a row of x
};

}  // namespace

template <class T, class Index>
void max_pool_on_cpu(const WindowRules& windows, int64_t images, const PlaneSteps& in, const PlaneSteps& out,
                     const T* x, T* values, Index* indices) {
  Forward<T, Index>(windows, images, in, out, x, {values, indices}).run();
}

template <class T, class Index>
void max_pool_backward_on_cpu(int64_t images, const MaxPoolScatter<T, Index>& scatter) {
  const PlaneSteps& in = scatter.in;
  // Channels that share cache lines stay together.
  const int64_t group = are_channels_last(in, scatter.out) ? std::min<int64_t>(64, in.channels) : 1;
  const int64_t groups = ceil_div(in.channels, group);
  parallel_for(0, images * groups, std::max<int64_t>(1, grain_elements / (in.pixels * group)),
               [&](int64_t i, int64_t end) {
                 for (; i < end; ++i)
                   scatter(i / groups, i % groups * group, std::min(in.channels, i % groups * group + group));
               });
}

#define PLEAT_INSTANTIATE(T, Index)                                                                          \
  template void max_pool_on_cpu(const WindowRules&, int64_t, const PlaneSteps&, const PlaneSteps&, const T*, \
                                T*, Index*);                                                                 \
  template void max_pool_backward_on_cpu(int64_t, const MaxPoolScatter<T, Index>&);
PLEAT_INSTANTIATE(float, int32_t)
PLEAT_INSTANTIATE(float, int64_t)
PLEAT_INSTANTIATE(double, int32_t)
PLEAT_INSTANTIATE(double, int64_t)
#undef PLEAT_INSTANTIATE

}  // namespace pleat::ops
