#include <array>
#include <cstring>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/cpu/direct_weight_plan.h"
#include "pleat/ops/conv/nhwc.h"

/// dw [K, taps C] is dy [pixels, K], transposed, times the windows of x [pixels, taps C]. The products of
/// some hundred pixels are summed in registers, in tiles of some rows by two vectors, before they are
/// added to sums in memory. A task has a block of dw, and a share of the pixels where there are few blocks;
/// piece by piece it copies its channels of x and dy into panels that are dense in the order in which tiles
/// read them: what a panel's tiles share stays in the first-level cache, the rest of the piece in the second.
/// (Goto, van de Geijn: "Anatomy of high-performance matrix multiplication", ACM TOMS 2008.) Groups are so
/// many products. x of 1x1 convolutions, and dy of few channels, are read where they lie. Each tile fetches
/// one column of what comes next, a pixel of it with each of its own: fetched at once it would wait.
///
/// One thread of a Zen 4, float32, of the FMA ceiling: 3x3 and 5x5 of 64 channels 90 %, 1x1 of 96 to 512
/// channels 83 to 87 %; from memory, 16 to 32 channels on one side, 74 to 85 %.

namespace pleat::ops {
namespace {

using namespace direct_weight;
using simd::Vector;

/// Bytes of a pixel of dy up to which it is read where it lies. Longer ones share too few sets of a cache.
constexpr int64_t most_pixel_bytes = 1024;

/// Where a tile is added to: `rows` of `leading` elements.
template <class T>
struct TileSums {
  T* sums;
  int64_t leading;
  int64_t width;    ///< elements of a row, at most the tile's
  bool accumulate;  ///< else overwritten
};

/// Memory that will be read after the tiles that are being summed: with each of their pixels comes what lies
/// `pitch` elements further, into the second-level cache.
template <class T>
struct Ahead {
  const T* at;
  int64_t pitch;
};

/// sums[row][lane] += the products of x and dy over `count` windows: a tile's rows are filters of dy, its
/// lanes elements of a window, or the other way round. `step` is from one pixel of dy to the next.
template <class T, Along along, int rows, int vectors>
void sum_outer(const T* x, const int64_t* bases, const T* dy, int64_t step, int64_t count, Ahead<T> next_x,
               Ahead<T> next_dy, const TileSums<T>& to) {
  using V = Vector<T>;
  constexpr int64_t width = vectors * lanes<T>;
  if (to.accumulate)
    for (int i = 0; i < rows; ++i)
      for (int v = 0; v < vectors; ++v) __builtin_prefetch(to.sums + i * to.leading + v * lanes<T>, 1);
  V total[rows][vectors] = {};
  for (int64_t p = 0; p < count; ++p, dy += step) {
    const T* window = x + bases[p];
    const T* across = along == Along::windows ? window : dy;
    const T* down = along == Along::windows ? dy : window;
    __builtin_prefetch(next_x.at, 0, 2);
    __builtin_prefetch(next_dy.at, 0, 2);
    next_x.at += next_x.pitch;
    next_dy.at += next_dy.pitch;
    V a[vectors];
    for (int v = 0; v < vectors; ++v) a[v] = *reinterpret_cast<const V*>(across + v * lanes<T>);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const V element = down[i] - V{};  // in every lane
      for (int v = 0; v < vectors; ++v) total[i][v] += element * a[v];
    }
  }
  for (int i = 0; i < rows; ++i) {
    T* sums = to.sums + i * to.leading;
    if (to.width == width) {
      for (int v = 0; v < vectors; ++v) {
        V& sum = *reinterpret_cast<V*>(sums + v * lanes<T>);
        sum = to.accumulate ? sum + total[i][v] : total[i][v];
      }
    } else {
      alignas(64) T part[width];
      std::memcpy(part, total[i], sizeof part);
      for (int64_t k = 0; k < to.width; ++k) sums[k] = to.accumulate ? sums[k] + part[k] : part[k];
    }
  }
}

template <class T>
using SumOuter = void (*)(const T*, const int64_t*, const T*, int64_t, int64_t, Ahead<T>, Ahead<T>,
                          const TileSums<T>&);

/// sum_outer for 1 ... most_rows rows.
template <class T, Along along, int vectors>
constexpr std::array<SumOuter<T>, most_rows> sum_outer_of = []<int... i>(std::integer_sequence<int, i...>) {
  return std::array<SumOuter<T>, most_rows>{sum_outer<T, along, i + 1, vectors>...};
}
(std::make_integer_sequence<int, most_rows>());

/// A stretch of a window that lies side by side: `offset` in the buffer, `column` in a filter's weights.
struct WindowRun {
  int64_t offset;
  int64_t length;
  int64_t column;
};

/// Rows of memory that will be read next, of which each tile fetches a column as wide as a cache line.
template <class T>
class ReadAhead {
 public:
  ReadAhead() = default;
  /// Rows of `width` elements, `pitch` apart.
  ReadAhead(const T* at, int64_t width, int64_t pitch) : at_(at), width_(width), pitch_(pitch) {}

  Ahead<T> next() {
    if (width_ <= 0) return {at_, 0};
    width_ -= line_elements<T>;
    return {std::exchange(at_, at_ + line_elements<T>), pitch_};
  }

 private:
  const T* at_ = nullptr;
  int64_t width_ = 0;
  int64_t pitch_ = 0;
};

template <class T>
class WeightTask {
 public:
  WeightTask(const WeightPlan<T>& plan, const ConvProblem& p, const T* dy, const T* x, T* sums, int64_t task)
      : plan_(plan),
        p_(p),
        dy_(dy),
        x_(x),
        dy_end_(dy + p.batch * p.output_pixels() * p.out_channels),
        x_end_(x + p.batch * p.input_pixels() * p.in_channels) {
    chunk_ = task % plan.chunks;
    const int64_t block = task / plan.chunks;
    const int64_t group = block / plan.channel_blocks / plan.filter_blocks;
    first_channel_ = block % plan.channel_blocks * plan.channels;
    first_filter_ = block / plan.channel_blocks % plan.filter_blocks * plan.filters;
    channels_ = std::min(plan.channels, p.group_in() - first_channel_);
    filters_ = std::min(plan.filters, p.group_out() - first_filter_);
    x_ += group * p.group_in() + first_channel_;
    dy_ += group * p.group_out() + first_filter_;
    sums_ = sums + (chunk_ * plan.groups + group) * plan.sums(p);
  }

  void run() {
    const auto source = plan_.in_place ? nullptr : scratch<T>(plan_.source_elements());
    const auto dy_copy = scratch<T>(plan_.filter_elements());
    copy_ = elements_of<T>(source);
    source_ = plan_.in_place ? x_ : copy_;
    dy_copy_ = elements_of<T>(dy_copy);
    const int64_t pieces = plan_.pieces.count();
    const int64_t begin = pieces * chunk_ / plan_.chunks;
    // The first products are stored; where they are not of all taps, added to 0 as all are.
    bool accumulate = plan_.pieces.skips_padding();
    if (accumulate) clear_sums();
    for (int64_t piece = begin; piece < pieces * (chunk_ + 1) / plan_.chunks; ++piece) {
      plan_.pieces.list(piece, 1, pixels_);
      if (!plan_.in_place) fill_source(piece);
      std::size_t first = 0;
      for (const GatherPixels::Group& group : pixels_.groups) {
        const auto windows = static_cast<int64_t>(std::exchange(first, group.end));
        add_group(windows, static_cast<int64_t>(group.end) - windows, group.runs, accumulate);
        accumulate = true;
      }
    }
  }

 private:
  void clear_sums() {
    const int64_t leading = plan_.leading(p_);
    for (int64_t tap = 0; tap < p_.taps(); ++tap) {
      const int64_t column = tap * p_.group_in() + first_channel_;
      if (plan_.along == Along::windows)
        for (int64_t k = first_filter_; k < first_filter_ + filters_; ++k)
          std::fill_n(sums_ + k * leading + column, channels_, T(0));
      else
        for (int64_t c = column; c < column + channels_; ++c)
          std::fill_n(sums_ + c * leading + first_filter_, round_up(filters_, lanes<T>), T(0));
    }
  }

  /// Adds the products of `count` windows from `begin` on with their gradients, for some runs of taps.
  void add_group(int64_t begin, int64_t count, const std::vector<GatherRun>& taps, bool accumulate) {
    list_runs(taps);
    if (runs_.empty()) return;  // windows in the padding alone
    const int64_t parts = ceil_div(count, most_pixels);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = count * part / parts;
      const int64_t windows = count * (part + 1) / parts - first;
      read_ahead(begin + first, windows, part == 0);
      if (plan_.along == Along::windows) {
        take_gradients<Along::windows>(begin + first, windows);
        sum_along_windows(begin + first, windows, accumulate || part > 0);
      } else {
        take_gradients<Along::filters>(begin + first, windows);
        sum_along_filters(begin + first, windows, accumulate || part > 0);
      }
    }
  }

  /// What is read after some windows: those behind them, or what will be copied for the next piece.
  void read_ahead(int64_t first, int64_t count, bool is_first_part) {
    const int64_t* rows = pixels_.rows.data() + first;
    dy_ahead_ = {dy_ + (rows[count - 1] + 1) * p_.out_channels, filters_, p_.out_channels};
    x_ahead_ = {x_, 0, 0};
    if (plan_.in_place && count > 1) {
      const int64_t* bases = pixels_.bases.data() + first;
      const int64_t step = bases[1] - bases[0];
      x_ahead_ = {x_ + bases[count - 1] + step, channels_, step};
    } else if (!plan_.in_place && is_first_part && x_is_read_on_) {
      x_ahead_ = {next_x_, channels_, p_.in_channels};
    }
  }

  /// Taps that lie side by side in the buffer are one run where all their channels do.
  void list_runs(const std::vector<GatherRun>& taps) {
    const int64_t block = plan_.source_block;
    runs_.clear();
    for (int64_t c = 0; c < channels_; c += block)
      for (const GatherRun& run : taps) {
        const int64_t joined = block == p_.group_in() ? run.length : 1;
        for (int64_t i = 0; i < run.length; i += joined) {
          const int64_t length = joined * std::min(block, channels_ - c);
          const int64_t offset = plan_.in_place
                                     ? run.offset + c
                                     : c / block * plan_.source_block_elements() + (run.offset + i) * block;
          runs_.push_back({offset, length, (run.tap + i) * p_.group_in() + first_channel_ + c});
        }
      }
  }

  /// Copies `block` elements, or what is left of them before `end`: a constant size needs no call. Those
  /// beyond the last channel are the next ones in memory, and go into unused lanes.
  template <int64_t block>
  static void copy_block(const T* from, const T* end, T* to) {
    if (end - from >= block)
      std::memcpy(to, from, block * sizeof(T));
    else
      std::copy(from, end, to);
  }

  template <int64_t block>
  void fill_blocks(int64_t to, int64_t from, int64_t count, int64_t stride) {
    const int64_t between = plan_.source_block_elements();
    for (int64_t i = 0; i < count; ++i) {
      const T* pixel = x_ + (from + i * stride) * p_.in_channels;
      T* out = copy_ + (to + i) * block;
      for (int64_t c = 0; c < channels_; c += block, out += between)
        copy_block<block>(pixel + c, x_end_, out);
    }
  }

  void fill_source(int64_t piece) {
    const int64_t block = plan_.source_block;
    const int64_t pitch = p_.in_channels;
    const auto copy = [&](int64_t to, int64_t from, int64_t count, int64_t stride) {
      next_x_ = x_ + (from + count * stride) * pitch;
      x_is_read_on_ = stride == 1;
      if (block == pitch && stride == 1)
        std::copy_n(x_ + from * pitch, count * pitch, copy_ + to * pitch);
      else if (block == tile_width<T>)
        fill_blocks<tile_width<T>>(to, from, count, stride);
      else if (block == most_rows)
        fill_blocks<most_rows>(to, from, count, stride);
      else
        for (int64_t i = 0; i < count; ++i)
          copy_channels(x_ + (from + i * stride) * pitch, block, copy_ + (to + i) * block);
    };
    const auto clear = [&](int64_t to, int64_t count) {
      for (int64_t c = 0; c < channels_; c += block)
        std::fill_n(copy_ + c / block * plan_.source_block_elements() + to * block, count * block, T(0));
    };
    plan_.pieces.visit(piece, copy, clear);
    for (int64_t& base : pixels_.bases) base *= block;
  }

  /// dy of some windows where it lies, else copied.
  template <Along along>
  void take_gradients(int64_t first, int64_t count) {
    constexpr int64_t block = filter_block<T, along>;
    const int64_t* rows = pixels_.rows.data() + first;
    const T* dy = dy_;
    const bool dense = rows[count - 1] - rows[0] == count - 1;
    const bool whole = along == Along::windows || filters_ % lanes<T> == 0;  // no vector reads beyond
    if (dense && whole && p_.out_channels * static_cast<int64_t>(sizeof(T)) <= most_pixel_bytes) {
      gradients_ = {dy + rows[0] * p_.out_channels, p_.out_channels, block};
      return;
    }
    gradients_ = {dy_copy_, block, plan_.filter_block_elements()};
    for (int64_t i = 0; i < count; ++i) {
      const T* pixel = dy + rows[i] * p_.out_channels;
      T* out = dy_copy_ + i * block;
      for (int64_t k = 0; k < filters_; k += block, out += gradients_.between)
        copy_block<block>(pixel + k, dy_end_, out);
    }
  }

  void sum_along_windows(int64_t first, int64_t count, bool accumulate) {
    const int64_t leading = plan_.leading(p_);
    const int64_t* bases = pixels_.bases.data() + first;
    for (const WindowRun& run : runs_)
      for (int64_t c = 0; c < run.length; c += tile_width<T>) {
        const int64_t width = std::min(tile_width<T>, run.length - c);
        const auto& kernels =
            width > lanes<T> ? sum_outer_of<T, Along::windows, 2> : sum_outer_of<T, Along::windows, 1>;
        T* sums = sums_ + first_filter_ * leading + run.column + c;
        const T* dy = gradients_.data;
        for (int64_t k = 0; k < filters_; k += most_rows, dy += gradients_.between) {
          const int64_t rows = std::min<int64_t>(most_rows, filters_ - k);
          kernels[static_cast<std::size_t>(rows - 1)](source_ + run.offset + c, bases, dy, gradients_.step,
                                                      count, x_ahead_.next(), dy_ahead_.next(),
                                                      {sums + k * leading, leading, width, accumulate});
        }
      }
  }

  void sum_along_filters(int64_t first, int64_t count, bool accumulate) {
    const int64_t leading = plan_.leading(p_);
    const int64_t* bases = pixels_.bases.data() + first;
    const T* dy = gradients_.data;
    for (int64_t k = 0; k < filters_; k += tile_width<T>, dy += gradients_.between) {
      const int64_t width = round_up(std::min(tile_width<T>, filters_ - k), lanes<T>);
      const auto& kernels =
          width > lanes<T> ? sum_outer_of<T, Along::filters, 2> : sum_outer_of<T, Along::filters, 1>;
      for (const WindowRun& run : runs_) {
        const int64_t tiles = ceil_div(run.length, most_rows);
        for (int64_t tile = 0; tile < tiles; ++tile) {
          const int64_t c = run.length * tile / tiles;
          const int64_t rows = run.length * (tile + 1) / tiles - c;
          T* sums = sums_ + (run.column + c) * leading + first_filter_ + k;
          kernels[static_cast<std::size_t>(rows - 1)](source_ + run.offset + c, bases, dy, gradients_.step,
                                                      count, x_ahead_.next(), dy_ahead_.next(),
                                                      {sums, leading, width, accumulate});
        }
      }
    }
  }

  const WeightPlan<T>& plan_;
  const ConvProblem& p_;
  // From the task's first channel and filter on.
  const T* dy_;
  const T* x_;
  const T* dy_end_;
  const T* x_end_;
  T* sums_;
  int64_t chunk_;
  int64_t first_channel_, channels_;
  int64_t first_filter_, filters_;
  std::vector<WindowRun> runs_;
  const T* source_ = nullptr;  ///< x in place, or the copy
  T* copy_ = nullptr;          ///< [block][pixel][source_block]
  T* dy_copy_ = nullptr;       ///< [block][window][filter_block]
  const T* next_x_ = nullptr;  ///< after the last pixel copied
  bool x_is_read_on_ = false;  ///< the next pixels are those behind it
  /// Of a part's windows: the first, and from a window and from a block to the next.
  struct {
    const T* data;
    int64_t step;
    int64_t between;
  } gradients_{};
  ReadAhead<T> x_ahead_, dy_ahead_;
  GatherPixels pixels_;  ///< of the piece
};

template <class T>
void multiply_transposed(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const WeightPlan<T> plan(p);
  const int64_t size = plan.sums(p);
  const auto partials = plan.sums_are_result() ? nullptr : scratch<T>(plan.chunks * plan.groups * size);
  T* sums = plan.sums_are_result() ? dw : elements_of<T>(partials);
  parallel_chunks(plan.tasks(), [&](int64_t task) { WeightTask<T>(plan, p, dy, x, sums, task).run(); });
  if (plan.along == Along::filters)
    for (int64_t g = 0; g < plan.groups; ++g)
      sum_transposed(sums + g * size, plan.chunks, plan.groups * size, p.depth(), p.group_out(),
                     plan.leading(p), dw + g * p.group_out() * p.depth());
  else if (!plan.sums_are_result())
    sum_partials(sums, plan.chunks, plan.groups * size, dw);
}

}  // namespace

template <class T>
void sum_transposed(const T* sums, int64_t chunks, int64_t chunk_size, int64_t depth, int64_t channels,
                    int64_t leading, T* dw) {
  // By blocks that are turned in the first-level cache.
  constexpr int64_t width = lanes<T>, height = 64;
  parallel_for(0, ceil_div(channels, width), ceil_div(8192, chunks * depth * width),
               [&](int64_t begin, int64_t end) {
                 alignas(64) T block[height * width];
                 for (int64_t k = begin * width; k < std::min(end * width, channels); k += width)
                   for (int64_t first = 0; first < depth; first += height) {
                     const int64_t columns = std::min(width, channels - k);
                     const int64_t rows = std::min(height, depth - first);
                     for (int64_t i = 0; i < rows; ++i) {
                       const T* from = sums + (first + i) * leading + k;
                       T* total = block + i * width;
                       std::copy_n(from, columns, total);
                       for (int64_t c = 1; c < chunks; ++c)
                         for (int64_t j = 0; j < columns; ++j) total[j] += from[c * chunk_size + j];
                     }
                     transpose_matrix(dw + k * depth + first, depth, block, width, rows, columns);
                   }
               });
}

template <class T>
void direct_backward_weight(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const Gather gather = forward_gather(p);
  if (lanes_suit_weight(gather)) return lanes_weight_gradient(gather, dy, x, dw);
  multiply_transposed(p, dy, x, dw);
}

template void direct_backward_weight(const ConvProblem&, const float*, const float*, float*);
template void direct_backward_weight(const ConvProblem&, const double*, const double*, double*);
template void sum_transposed(const float*, int64_t, int64_t, int64_t, int64_t, int64_t, float*);
template void sum_transposed(const double*, int64_t, int64_t, int64_t, int64_t, int64_t, double*);

int64_t direct_weight_workspace(const ConvProblem& p) {
  int64_t bytes = 0;
  by_type(p, [&]<class T>(Type<T>) {
    const Gather gather = forward_gather(p);
    if (lanes_suit_weight(gather)) {
      bytes = lanes_weight_workspace<T>(gather);
      return;
    }
    const WeightPlan<T> plan(p);
    int64_t elements = num_threads() * (plan.source_elements() + plan.filter_elements());
    if (!plan.sums_are_result()) elements += plan.chunks * plan.groups * plan.sums(p);
    bytes = elements * static_cast<int64_t>(sizeof(T));
  });
  return bytes;
}

}  // namespace pleat::ops
