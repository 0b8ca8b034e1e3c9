#include <algorithm>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/cpu/winograd.h"
#include "pleat/ops/conv/cpu/winograd_tiles.h"
#include "pleat/ops/conv/nhwc.h"
#include "pleat/ops/matmul/tile_product.h"

/// Winograd convolution's gradient of the weight. A task has a block of filters, one of channels and
/// a phase of x, and a share of the tiles where these are few. Some tiles at a time, windows of x become V
/// [point][tile][C] and tiles of dy become E [point][tile][K]; for each point E, transposed, times V is added
/// to sums [K, C]. In the end the sums of the points are transformed into the taps of dw.

namespace pleat::ops::winograd {
namespace {

using simd::lanes;
using simd::Vector;

/// Channels and filters of a task, at most: so many that transforming tiles is little beside the products.
constexpr int64_t most_channels = 128;
/// Tiles at a time, and in a share of its own.
constexpr int64_t tiles_at_once = 64;
constexpr int64_t least_share = 64;

/// Channels cut into blocks of whole vectors, but for the last, which has at least one.
template <class T>
struct ChannelBlocks {
  int64_t channels;
  int64_t count = ceil_div(channels, most_channels);

  int64_t first(int64_t i) const {
    return i == count ? channels : channels * i / count / lanes<T> * lanes<T>;
  }
  int64_t size(int64_t i) const { return first(i + 1) - first(i); }
  /// Of the largest block, in whole vectors.
  int64_t most() const {
    int64_t most = 0;
    for (int64_t i = 0; i < count; ++i) most = std::max(most, round_up(size(i), lanes<T>));
    return most;
  }
};

template <class T>
struct WeightPlan {
  TileGrid grid;
  ChannelBlocks<T> channels;
  ChannelBlocks<T> filters;
  int64_t columns;  ///< at a time
  int64_t shares;
  /// From point to point in V, E and the sums; of the latter also from tap to tap of the line.
  int64_t source_point, gradient_point, sums_point, sums_tap;

  WeightPlan(const ConvProblem& p, int m)
      : grid(forward_gather(p), *find_kernels(p), m), channels{p.in_channels}, filters{p.out_channels} {
    columns = ceil_div(tiles_at_once, grid.slices);
    shares = std::min(ceil_div(tasks_wanted, channels.count * filters.count * grid.phases),
                      ceil_div(grid.columns() * grid.slices, least_share));
    source_point = point_stride<T>((columns * grid.slices + grid.line_taps - 1) * channels.most());
    gradient_point = point_stride<T>(columns * grid.slices * filters.most());
    sums_tap = filters.most() * channels.most();
    sums_point = point_stride<T>(grid.line_taps * sums_tap);
  }

  int64_t tasks() const { return channels.count * filters.count * grid.phases * shares; }
  int64_t task_elements() const { return grid.points * (source_point + gradient_point + sums_point); }
};

template <class T, int ma, int mb, int r>
class WeightTask {
 public:
  WeightTask(const WeightPlan<T>& plan, const ConvProblem& p, const T* dy, const ConvSource<T>& x,
             const T* zeros, int64_t task)
      : plan_(plan), p_(p), dy_(dy), x_(x), zeros_(zeros) {
    share_ = task % plan.shares;
    task /= plan.shares;
    phase_ = task % plan.grid.phases;
    task /= plan.grid.phases;
    const int64_t channel_block = task % plan.channels.count;
    const int64_t filter_block = task / plan.channels.count;
    channels_ = plan.channels.size(channel_block);
    filters_ = plan.filters.size(filter_block);
    first_channel_ = plan.channels.first(channel_block);
    first_filter_ = plan.filters.first(filter_block);
    width_ = round_up(channels_, lanes<T>);
    rows_ = round_up(filters_, lanes<T>);
  }

  /// Adds the share's tiles up, and writes their part of dw to `shares` [share][K, taps, C].
  void run(T* shares) {
    const auto memory = scratch<T>(plan_.task_elements());
    source_ = elements_of<T>(memory);
    gradient_ = source_ + plan_.grid.points * plan_.source_point;
    sums_ = gradient_ + plan_.grid.points * plan_.gradient_point;
    const int64_t begin = plan_.grid.columns() * share_ / plan_.shares;
    const int64_t end = plan_.grid.columns() * (share_ + 1) / plan_.shares;
    for (int64_t column = begin; column < end; column += plan_.columns) {
      const int64_t count = std::min(plan_.columns, end - column);
      transform_columns(column, count);
      multiply(count * plan_.grid.slices, column > begin);
    }
    write(shares + share_ * p_.out_channels * p_.taps() * p_.in_channels);
  }

 private:
  /// V and E of some columns. Of E there are as many tiles as of V, zeros behind those of the result: then
  /// one product for each tap of the line has all columns.
  void transform_columns(int64_t begin, int64_t count) {
    const TileGrid& grid = plan_.grid;
    grid.for_tiles(begin, count, grid.slices, [&](int64_t t, int64_t column, int64_t slice) {
      const T* windows[window<ma, r>][window<mb, r>];
      list_pixels<window<ma, r>, window<mb, r>, const T>(grid.source_of(column, slice, phase_), grid.source,
                                                         grid.source_step, grid.kernels, p_.in_channels,
                                                         x_.data() + first_channel_, zeros_, windows);
      transform_window<Source<ma, r>, Source<mb, r>>(x_, first_channel_, windows, zeros_, channels_,
                                                     source_ + t * width_, plan_.source_point);
      const T* results[ma][mb];
      list_pixels<ma, mb, const T>(grid.result_of(column, slice), grid.result, grid.result_step, grid.kernels,
                                   p_.out_channels, dy_ + first_filter_, zeros_, results);
      transform_memory<Gradient<ma, r>, Gradient<mb, r>>(results, filters_, gradient_ + t * rows_,
                                                         plan_.gradient_point);
    });
    for (int64_t i = 0; i < grid.points; ++i)  // what the last tile's further taps read
      std::fill_n(source_ + i * plan_.source_point + count * grid.slices * width_,
                  (grid.line_taps - 1) * width_, T(0));
  }

  void multiply(int64_t tiles, bool accumulate) {
    for (int64_t i = 0; i < plan_.grid.points; ++i)
      for (int64_t tap = 0; tap < plan_.grid.line_taps; ++tap)
        for (int64_t c = 0; c < width_; c += 2 * lanes<T>) {
          const auto run = width_ - c > lanes<T> ? multiply_rows<T, 2> : multiply_rows<T, 1>;
          T* const sums = sums_ + i * plan_.sums_point + tap * plan_.sums_tap + c;
          run({gradient_ + i * plan_.gradient_point, 1, rows_,
               source_ + i * plan_.source_point + tap * width_ + c, width_, tiles, sums, width_,
               accumulate ? sums : nullptr, width_},
              filters_);
        }
  }

  void write(T* dw) const {
    using V = Vector<T>;
    const TileGrid& grid = plan_.grid;
    const auto [a, b, line, count, taps_] = grid.kernels;
    const Spatial step{p_.kernel[1] * p_.kernel[2], p_.kernel[2], 1};
    const int64_t of_phase = grid.phase_shift(phase_, a) * step[a] + grid.phase_shift(phase_, b) * step[b];
    const int64_t row = grid.source_step[a] * step[a], column = grid.source_step[b] * step[b];
    for (int64_t k = 0; k < filters_; ++k)
      for (int64_t tap = 0; tap < grid.line_taps; ++tap)
        for (int64_t i = 0; i < channels_; i += lanes<T>) {
          const int64_t c = std::min(i, channels_ - lanes<T>);
          const T* sums = sums_ + tap * plan_.sums_tap + k * width_ + c;
          T* out = dw + ((first_filter_ + k) * p_.taps() + of_phase + tap * step[line]) * p_.in_channels +
                   first_channel_ + c;
          transform<V, WeightGradient<ma, r>, WeightGradient<mb, r>>(
              [&](int u, int v) { return simd::load(sums + (u * window<mb, r> + v) * plan_.sums_point); },
              [&](int u, int v, const V& value) {
                simd::store(out + (u * row + v * column) * p_.in_channels, value);
              });
        }
  }

  const WeightPlan<T>& plan_;
  const ConvProblem& p_;
  const T* dy_;
  const ConvSource<T>& x_;
  const T* zeros_;  ///< what lies outside
  int64_t share_;
  int64_t phase_;
  int64_t channels_, filters_, first_channel_, first_filter_;
  int64_t width_, rows_;  ///< channels and filters in whole vectors
  T* source_ = nullptr;
  T* gradient_ = nullptr;
  T* sums_ = nullptr;
};

template <class T, int ma, int mb, int r>
void weight_gradient(const ConvProblem& p, const T* dy, const ConvSource<T>& x, T* dw) {
  const WeightPlan<T> plan(p, mb);
  const int64_t size = p.out_channels * p.taps() * p.in_channels;
  const auto partials = plan.shares > 1 ? scratch<T>(plan.shares * size) : nullptr;
  T* shares = plan.shares > 1 ? elements_of<T>(partials) : dw;
  const int64_t most = std::max(p.in_channels, p.out_channels);
  const auto zeros = scratch<T>(most);
  std::fill_n(elements_of<T>(zeros), most, T(0));
  parallel_chunks(plan.tasks(), [&](int64_t task) {
    WeightTask<T, ma, mb, r>(plan, p, dy, x, elements_of<T>(zeros), task).run(shares);
  });
  if (plan.shares > 1) sum_partials(shares, plan.shares, size, dw);
}

}  // namespace

template <class T>
int64_t weight_gradient_workspace(const ConvProblem& p, int m) {
  const WeightPlan<T> plan(p, m);
  const int64_t partials = plan.shares > 1 ? plan.shares * p.out_channels * p.depth() : 0;
  return (partials + std::max(p.in_channels, p.out_channels) + num_threads() * plan.task_elements()) *
         static_cast<int64_t>(sizeof(T));
}

template <class T>
void weight_gradient(const ConvProblem& p, int m, const T* dy, const ConvSource<T>& x, T* dw) {
  by_kernels(*find_kernels(p), m,
             [&](auto ma, auto mb, auto r) { weight_gradient<T, ma, mb, r>(p, dy, x, dw); });
}

#define PLEAT_WINOGRAD_WEIGHT(T)                                                              \
  template void weight_gradient(const ConvProblem&, int, const T*, const ConvSource<T>&, T*); \
  template int64_t weight_gradient_workspace<T>(const ConvProblem&, int);
PLEAT_WINOGRAD_WEIGHT(float)
PLEAT_WINOGRAD_WEIGHT(double)
#undef PLEAT_WINOGRAD_WEIGHT

}  // namespace pleat::ops::winograd
