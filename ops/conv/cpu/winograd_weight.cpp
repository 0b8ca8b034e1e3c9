#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/cpu/winograd.h"
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
/// Along a dimension, the first of the pixels that tell how large those of a tile are: it has these where it
/// reaches beyond the image, too.
constexpr int of_window = 1, of_results = 0;
/// Tiles that tell the scales of channels.
constexpr int64_t samples = 9;
/// How large a product may be, beside the mean of a tile's times the tiles.
constexpr double most_of_products = 16;

constexpr int64_t fewest_channels = 32;
constexpr int64_t fewest_tasks = 4;

/// Channels cut into blocks of whole vectors, but for the last, which has at least one.
template <class T>
struct ChannelBlocks {
  int64_t channels;
  int64_t count;

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
struct GradientPlan {
  TileGrid grid;
  ChannelBlocks<T> channels;
  ChannelBlocks<T> filters;
  int64_t columns;  ///< at a time
  int64_t shares;
  /// From point to point in V, E and the sums; of the latter also from tap to tap of the line.
  int64_t source_point, gradient_point, sums_point, sums_tap;

  GradientPlan(const ConvProblem& p, int m)
      : grid(forward_gather(p), *find_kernels(p), m),
        channels{p.in_channels, ceil_div(p.in_channels, most_channels)},
        filters{p.out_channels, ceil_div(p.out_channels, most_channels)} {
    columns = ceil_div(tiles_at_once, grid.slices);
    shares = std::min(ceil_div(tasks_wanted, channels.count * filters.count * grid.phases),
                      ceil_div(grid.columns() * grid.slices, least_share));
    // Of few tiles threads take parts of the channels: always the same, since what is left out of the tiles
    // depends on them.
    for (int64_t most = most_channels / 2; most >= fewest_channels && tasks() < fewest_tasks; most /= 2) {
      channels.count = ceil_div(p.in_channels, most);
      filters.count = ceil_div(p.out_channels, most);
    }
    source_point = point_stride<T>((columns * grid.slices + grid.line_taps - 1) * channels.most());
    gradient_point = point_stride<T>(columns * grid.slices * filters.most());
    sums_tap = filters.most() * channels.most();
    sums_point = point_stride<T>(grid.line_taps * sums_tap);
  }

  int64_t tasks() const { return channels.count * filters.count * grid.phases * shares; }
  int64_t task_elements() const { return grid.points * (source_point + gradient_point + sums_point); }
};

/// Scales of channels: 1 / the median of their samples [sample][channel], the fifth largest. Where that is 0,
/// a channel counts as the loudest.
template <class T>
void set_scales(const T* sampled, int64_t channels, T* scales) {
  using V = Vector<T>;
  V least = V{} + std::numeric_limits<T>::max();
  for (int64_t i = 0; i < channels; i += lanes<T>) {
    const int64_t c = std::min(i, channels - lanes<T>);
    V largest[5]{};
    for (int64_t j = 0; j < samples; ++j) {
      V next = simd::load(sampled + j * channels + c);
      for (V& size : largest) {
        const V lesser = smaller(size, next);
        size = larger(size, next);
        next = lesser;
      }
    }
    const V size =
        smaller(larger(largest[4], V{} + std::numeric_limits<T>::min()), V{} + std::numeric_limits<T>::max());
    const V scale = largest[4] > V{} ? 1 / size : V{};
    simd::store(scales + c, scale);
    least = scale > V{} ? smaller(least, scale) : least;
  }
  const T of_loudest = fold<1>(least, [](const auto& a, const auto& b) { return smaller(a, b); })[0];
  for (int64_t c = 0; c < channels; ++c)
    if (!(scales[c] > 0)) scales[c] = of_loudest;
}

/// Scales of the channels of x and of dy, by which an outlier of a quiet one is seen beside loud ones. A
/// sample is the largest |x| of some pixels.
template <class T>
void measure_channels(const TileGrid& grid, const ConvProblem& p, const T* dy, const ConvSource<T>& x,
                      const T* zeros, T* channel_scales, T* filter_scales) {
  const auto memory = scratch<T>(samples * std::max(p.in_channels, p.out_channels));
  T* const sampled = elements_of<T>(memory);
  const auto measure = [&](int64_t channels, T* scales, const T* data, const Spatial& sizes,
                           const Spatial& steps, const auto& read, const auto& place) {
    for (int64_t i = 0; i < samples; ++i) {
      // By the golden ratio: no line of an image has many of them.
      const double at = 0.6180339887 * static_cast<double>(i);
      const auto tile =
          static_cast<int64_t>((at - std::floor(at)) * static_cast<double>(grid.columns() * grid.lines));
      const T* pixels[4][4];
      list_pixels<4, 4, const T>(place(tile / grid.lines, tile % grid.lines), sizes, steps, grid.kernels,
                                 channels, data, zeros, pixels);
      for (int64_t j = 0; j < channels; j += lanes<T>) {
        const int64_t c = std::min(j, channels - lanes<T>);
        Bits<T> largest{};
        for (const auto& row : pixels)
          for (const T* pixel : row) {
            Vector<T> value;
            read(pixel, c, value);
            largest = larger(largest, bits_of_magnitude<T>(value));
          }
        simd::store(sampled + i * channels + c, reinterpret_cast<Vector<T>>(largest));
      }
    }
    set_scales(sampled, channels, scales);
  };
  with_source(x, 0, zeros, [&](const auto& read) {
    measure(p.in_channels, channel_scales, x.data(), grid.source, grid.source_step, read,
            [&](int64_t column, int64_t line) {
              TilePixels at = grid.source_of(column, line + grid.line_taps / 2, 0);
              for (std::size_t d = 0; d < 3; ++d)
                if (grid.tile[d] > 1) at.first[d] += of_window * grid.source_step[d];
              return at;
            });
  });
  with_memory<T>([&](const auto& read) {
    measure(p.out_channels, filter_scales, dy, grid.result, grid.result_step, read,
            [&](int64_t column, int64_t line) { return grid.result_of(column, line); });
  });
}

template <class T, int ma, int mb, int r>
class GradientTask {
 public:
  GradientTask(const GradientPlan<T>& plan, const ConvProblem& p, const T* dy, const ConvSource<T>& x,
               const T* zeros, const T* channel_scales, const T* filter_scales, int64_t task)
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
    channel_scales_ = channel_scales + first_channel_;
    filter_scales_ = filter_scales + first_filter_;
    constexpr double most = overflow_reserve * static_cast<double>(std::numeric_limits<T>::max());
    const auto least = [](const T* scales, int64_t count) {
      return static_cast<double>(*std::min_element(scales, scales + count));
    };
    largest_window_ = most * least(channel_scales_, channels_);
    largest_gradient_ = most * least(filter_scales_, filters_);
    largest_product_ = largest_window_ * least(filter_scales_, filters_);
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
    Largest<T> of_windows, of_gradients;
    typical_.clear();
    grid.for_tiles(begin, count, grid.slices, [&](int64_t t, int64_t column, int64_t slice) {
      const double window = transform_window<Source<ma, r>, Source<mb, r>>(
          column, slice, source_ + t * width_, plan_.source_point, of_windows);
      const double gradient = transform_gradient<Gradient<ma, r>, Gradient<mb, r>>(
          column, slice, gradient_ + t * rows_, plan_.gradient_point, of_gradients);
      if (window * gradient > 0 && std::isfinite(window * gradient)) typical_.push_back(window * gradient);
    });
    for (int64_t i = 0; i < grid.points; ++i)  // what the last tile's further taps read
      std::fill_n(source_ + i * plan_.source_point + count * grid.slices * width_,
                  (grid.line_taps - 1) * width_, T(0));
    // Half of the tiles with products have some of this size, whatever the others have.
    const auto middle = typical_.begin() + static_cast<std::ptrdiff_t>(typical_.size() / 2);
    std::nth_element(typical_.begin(), middle, typical_.end());
    const double typical = typical_.empty() ? 0 : *middle;
    const double most =
        std::min(most_of_products * typical * static_cast<double>(typical_.size()), largest_product_);
    if (!(of_windows.root() * of_gradients.root() / 32 <= most) && leave_out(begin, count, most))
      add_directly(begin, count);
  }

  /// Transforms pixels. Returns the mean of |x|, scaled, of two from `first` on.
  template <class A, class B, int first, class Read>
  static double transform(const T* const (&pixels)[A::in][B::in], int64_t channels, T* to, int64_t point,
                          const Read& read, const T* scales, Largest<T>& largest) {
    transform_pixels<A, B>(pixels, channels, to, point, read);
    add_squares<A, B>(to, channels, point, scales, largest);
    constexpr int row = A::in == 1 ? 0 : first;
    Vector<T> sum{};
    for (int64_t c = 0; c + lanes<T> <= channels; c += lanes<T>)
      sum += magnitudes<1, 2>(pixels, row, first, c, read) * simd::load(scales + c);
    return static_cast<double>(sum_of_lanes(sum)) / static_cast<double>(2 * channels);
  }

  /// The pixels of a tile's window in x, and those of its results in dy; `zeros_` outside.
  using Window = const T * [window<ma, r>][window<mb, r>];
  using Results = const T* [ma][mb];
  void list_window(int64_t column, int64_t slice, Window& pixels) const {
    const TileGrid& grid = plan_.grid;
    list_pixels<window<ma, r>, window<mb, r>, const T>(grid.source_of(column, slice, phase_), grid.source,
                                                       grid.source_step, grid.kernels, p_.in_channels,
                                                       x_.data() + first_channel_, zeros_, pixels);
  }
  void list_results(int64_t column, int64_t slice, Results& pixels) const {
    const TileGrid& grid = plan_.grid;
    list_pixels<ma, mb, const T>(grid.result_of(column, slice), grid.result, grid.result_step, grid.kernels,
                                 p_.out_channels, dy_ + first_filter_, zeros_, pixels);
  }

  template <class A, class B>
  double transform_window(int64_t column, int64_t slice, T* to, int64_t point, Largest<T>& largest) const {
    Window pixels;
    list_window(column, slice, pixels);
    return with_source(x_, first_channel_, zeros_, [&](const auto& read) {
      return transform<A, B, of_window>(pixels, channels_, to, point, read, channel_scales_, largest);
    });
  }
  template <class A, class B>
  double transform_gradient(int64_t column, int64_t slice, T* to, int64_t point, Largest<T>& largest) const {
    Results pixels;
    list_results(column, slice, pixels);
    return with_memory<T>([&](const auto& read) {
      return transform<A, B, of_results>(pixels, filters_, to, point, read, filter_scales_, largest);
    });
  }

  /// The largest |x|, scaled, of some pixels; NaN if one is.
  template <int rows, int columns, class Read>
  static double largest_of(const T* const (&pixels)[rows][columns], int64_t channels, const Read& read,
                           const T* scales) {
    Largest<T> largest;
    for (const auto& row : pixels)
      for (const T* pixel : row)
        for (int64_t i = 0; i < channels; i += lanes<T>) {
          Vector<T> value;
          const int64_t c = std::min(i, channels - lanes<T>);
          read(pixel, c, value);
          largest.add(value * simd::load(scales + c));
        }
    return largest.value();
  }

  /// Clears those tiles of V and E that have larger products than `most`. Returns whether there are any.
  bool leave_out(int64_t begin, int64_t count, double most) {
    const TileGrid& grid = plan_.grid;
    const int64_t tiles = count * grid.slices;
    std::vector<double> windows(static_cast<std::size_t>(tiles + grid.line_taps - 1)),
        gradients(windows.size());
    grid.for_tiles(begin, count, grid.slices, [&](int64_t t, int64_t column, int64_t slice) {
      Window window;
      Results results;
      list_window(column, slice, window);
      list_results(column, slice, results);
      windows[static_cast<std::size_t>(t)] = with_source(x_, first_channel_, zeros_, [&](const auto& read) {
        return largest_of(window, channels_, read, channel_scales_);
      });
      gradients[static_cast<std::size_t>(t)] = with_memory<T>(
          [&](const auto& read) { return largest_of(results, filters_, read, filter_scales_); });
    });
    windows_left_out_.assign(windows.size(), false);
    gradients_left_out_.assign(windows.size(), false);
    bool any = false;
    for (std::size_t t = 0; t < static_cast<std::size_t>(tiles); ++t)
      for (std::size_t l = 0; l < static_cast<std::size_t>(grid.line_taps); ++l)
        if (!(windows[t + l] * gradients[t] <= most && windows[t + l] <= largest_window_ &&
              gradients[t] <= largest_gradient_))
          windows_left_out_[t + l] = gradients_left_out_[t] = any = true;
    for (int64_t t = 0; any && t < tiles; ++t)
      for (int64_t i = 0; i < grid.points; ++i) {
        if (windows_left_out_[static_cast<std::size_t>(t)])
          std::fill_n(source_ + i * plan_.source_point + t * width_, width_, T(0));
        if (gradients_left_out_[static_cast<std::size_t>(t)])
          std::fill_n(gradient_ + i * plan_.gradient_point + t * rows_, rows_, T(0));
      }
    return any;
  }

  /// Adds the products of tiles that are left out to [tap of the line][tap][K][C].
  void add_directly(int64_t begin, int64_t count) {
    constexpr int64_t columns = window<mb, r>, of_plane = taps<ma, r> * taps<mb, r>;
    const TileGrid& grid = plan_.grid;
    if (direct_ == nullptr) {
      const int64_t size = grid.line_taps * of_plane * plan_.sums_tap;
      direct_ = scratch<T>(size);
      std::fill_n(elements_of<T>(direct_), size, T(0));
    }
    const auto memory = scratch<T>(window<ma, r> * columns * width_ + ma * mb * rows_);
    T* const x = elements_of<T>(memory);
    T* const dy = x + window<ma, r> * columns * width_;
    grid.for_tiles(begin, count, grid.slices, [&](int64_t t, int64_t column, int64_t slice) {
      for (int64_t l = 0; l < grid.line_taps && slice < grid.lines; ++l) {
        if (!windows_left_out_[static_cast<std::size_t>(t + l)] &&
            !gradients_left_out_[static_cast<std::size_t>(t)])
          continue;
        Largest<T> ignored;
        transform_window<Identity<window<ma, r>>, Identity<window<mb, r>>>(column, slice + l, x, width_,
                                                                           ignored);
        transform_gradient<Identity<ma>, Identity<mb>>(column, slice, dy, rows_, ignored);
        Window window_pixels;
        Results results;
        list_window(column, slice + l, window_pixels);
        list_results(column, slice, results);
        for (int64_t tap = 0; tap < of_plane; ++tap)
          for (int64_t i = 0; i < ma; ++i) {
            const int64_t row = i + tap / taps<mb, r>, first = tap % taps<mb, r>;
            // Nothing outside is multiplied: 0 times infinity is NaN.
            const auto exists = [&](int64_t j) {
              return results[i][j] != zeros_ && window_pixels[row][first + j] != zeros_;
            };
            int64_t low = 0, high = mb;
            while (low < high && !exists(low)) ++low;
            while (low < high && !exists(high - 1)) --high;
            if (low == high) continue;
            add_product(
                {dy + (i * mb + low) * rows_, 1, rows_, x + (row * columns + first + low) * width_, width_,
                 high - low, elements_of<T>(direct_) + (l * of_plane + tap) * plan_.sums_tap, width_},
                true);
          }
      }
    });
  }

  /// A product of filters and channels, perhaps added to what is there.
  void add_product(TileProduct<T> product, bool accumulate) const {
    const auto from = product;
    for (int64_t c = 0; c < width_; c += 2 * lanes<T>) {
      product.b = from.b + c;
      product.result = from.result + c;
      if (accumulate) {
        product.start = product.result;
        product.start_row = product.result_row;
      }
      (width_ - c > lanes<T> ? multiply_rows<T, 2> : multiply_rows<T, 1>)(product, filters_);
    }
  }

  void multiply(int64_t tiles, bool accumulate) {
    for (int64_t i = 0; i < plan_.grid.points; ++i)
      for (int64_t tap = 0; tap < plan_.grid.line_taps; ++tap)
        add_product(
            {gradient_ + i * plan_.gradient_point, 1, rows_, source_ + i * plan_.source_point + tap * width_,
             width_, tiles, sums_ + i * plan_.sums_point + tap * plan_.sums_tap, width_},
            accumulate);
  }

  void write(T* dw) const {
    using V = Vector<T>;
    const TileGrid& grid = plan_.grid;
    const auto [a, b, line, count, taps_] = grid.kernels;
    const Spatial step{p_.kernel[1] * p_.kernel[2], p_.kernel[2], 1};
    const int64_t of_phase = grid.first_tap(phase_, a) * step[a] + grid.first_tap(phase_, b) * step[b];
    const int64_t repeated_rows = grid.repeated(phase_, a), repeated_columns = grid.repeated(phase_, b);
    const int64_t row = grid.tap_step[a] * step[a], column = grid.tap_step[b] * step[b];
    for (int64_t k = 0; k < filters_; ++k)
      for (int64_t tap = 0; tap < grid.line_taps; ++tap)
        for (int64_t i = 0; i < channels_; i += lanes<T>) {
          const int64_t c = std::min(i, channels_ - lanes<T>);
          const T* sums = sums_ + tap * plan_.sums_tap + k * width_ + c;
          T* out = dw + ((first_filter_ + k) * p_.taps() + of_phase + tap * step[line]) * p_.in_channels +
                   first_channel_ + c;
          const T* direct = direct_ == nullptr ? nullptr
                                               : elements_of<T>(direct_) + k * width_ + c +
                                                     tap * taps<ma, r> * taps<mb, r> * plan_.sums_tap;
          winograd::transform<V, WeightGradient<ma, r>, WeightGradient<mb, r>>(
              [&](int u, int v) { return simd::load(sums + (u * window<mb, r> + v) * plan_.sums_point); },
              [&](int u, int v, V value) {
                if (u < repeated_rows || v < repeated_columns) return;
                if (direct != nullptr) value += simd::load(direct + (u * taps<mb, r> + v) * plan_.sums_tap);
                simd::store(out + (u * row + v * column) * p_.in_channels, value);
              });
        }
  }

  const GradientPlan<T>& plan_;
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
  const T* channel_scales_;
  const T* filter_scales_;
  double largest_window_, largest_gradient_, largest_product_;  ///< scaled: larger ones may overflow
  std::vector<double> typical_;                                 ///< products of each tile
  std::vector<bool> windows_left_out_, gradients_left_out_;
  std::shared_ptr<std::byte> direct_;  ///< sums of what is left out; none where nothing is
};

template <class T, int ma, int mb, int r>
void weight_gradient(const ConvProblem& p, const T* dy, const ConvSource<T>& x, T* dw) {
  const GradientPlan<T> plan(p, mb);
  const int64_t size = p.out_channels * p.taps() * p.in_channels;
  const auto partials = plan.shares > 1 ? scratch<T>(plan.shares * size) : nullptr;
  T* shares = plan.shares > 1 ? elements_of<T>(partials) : dw;
  const int64_t most = std::max(p.in_channels, p.out_channels);
  const auto memory = scratch<T>(most + p.in_channels + p.out_channels);
  T* const zeros = elements_of<T>(memory);
  T* const channel_scales = zeros + most;
  T* const filter_scales = channel_scales + p.in_channels;
  std::fill_n(zeros, most, T(0));
  measure_channels(plan.grid, p, dy, x, zeros, channel_scales, filter_scales);
  parallel_chunks(plan.tasks(), [&](int64_t task) {
    GradientTask<T, ma, mb, r>(plan, p, dy, x, zeros, channel_scales, filter_scales, task).run(shares);
  });
  if (plan.shares > 1) sum_partials(shares, plan.shares, size, dw);
}

}  // namespace

template <class T>
int64_t weight_gradient_workspace(const ConvProblem& p, int m) {
  const GradientPlan<T> plan(p, m);
  const int64_t partials = plan.shares > 1 ? plan.shares * p.out_channels * p.depth() : 0;
  return (partials + std::max(p.in_channels, p.out_channels) + p.in_channels + p.out_channels +
          num_threads() * plan.task_elements()) *
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
