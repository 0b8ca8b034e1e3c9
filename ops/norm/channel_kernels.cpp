#include "pleat/ops/norm/channel_kernels.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <Eigen/Core>

#include "pleat/core/parallel.h"

namespace pleat::ops {
namespace {

/// Elements that a tile has at least (where there are so many): it stays in the first- or second-level cache
/// between two readings, and merging its sums costs little beside making them.
constexpr int64_t tile_elements = 16384;
/// Rows of a tile at least, when a row of many channels is long.
constexpr int64_t tile_rows = 64;
/// Lanes summed side by side at most. More would only make folding them slower.
constexpr int64_t max_lanes = 1024;

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// How a view is cut. In channels_last a tile has all channels of some pixels, else one channel of some
/// pixels of one image or, where images are small, of all pixels of several. With `per_image` a tile stays
/// inside an image.
struct Tiling {
  ChannelView view;
  int64_t images_per_tile = 1;
  int64_t pixels_per_tile = 1;
  int64_t blocks = 0;    ///< along images
  int64_t segments = 0;  ///< along pixels

  Tiling(const ChannelView& of, bool per_image) : view(of) {
    if (view.channels_last && !per_image) {
      // Images are nothing but more pixels here.
      view.pixels *= view.images;
      view.images = 1;
    }
    const int64_t row = view.channels_last ? std::max<int64_t>(view.channels, 1) : 1;
    pixels_per_tile = std::max(ceil_divide(tile_elements, row), tile_rows);
    // Whole super-rows in every tile but the last.
    pixels_per_tile = ceil_divide(pixels_per_tile, 64) * 64;
    if (!view.channels_last && !per_image)
      images_per_tile = std::max<int64_t>(1, tile_elements / std::max<int64_t>(view.pixels, 1));
    blocks = ceil_divide(view.images, images_per_tile);
    segments = ceil_divide(view.pixels, pixels_per_tile);
  }

  int64_t tiles() const { return blocks * segments; }
  /// Pieces of work: in the contiguous layout each channel of a tile is one.
  int64_t pieces() const { return tiles() * (view.channels_last ? 1 : view.channels); }

  struct Range {
    int64_t first_image, last_image, first_pixel, last_pixel;
    int64_t values() const { return (last_image - first_image) * (last_pixel - first_pixel); }
  };
  Range range(int64_t tile) const {
    const int64_t block = tile / segments;
    const int64_t segment = tile % segments;
    return {block * images_per_tile, std::min(view.images, (block + 1) * images_per_tile),
            segment * pixels_per_tile, std::min(view.pixels, (segment + 1) * pixels_per_tile)};
  }
};

/// Rows of equally many adjacent elements, `lanes`, at distance `stride`, and what is left behind them.
struct Strip {
  int64_t begin;
  int64_t rows;
  int64_t lanes;
  int64_t stride;
  int64_t left;  ///< elements after the last row, fewer than lanes: they belong to the first lanes
};

/// Lanes of a channels_last tile: whole pixels, so many that they fill vector registers.
int64_t lanes_of_pixels(int64_t channels) {
  const int64_t pixels = 32 / std::gcd<int64_t>(channels, 32);
  return pixels * channels <= max_lanes ? pixels * channels : channels;
}

/// Calls `f(strip)` for the strips that make up one piece. Lane l of a strip belongs to channel l % channels
/// in channels_last, else all lanes belong to channel `c`.
template <class F>
void for_strips(const Tiling& tiling, const Tiling::Range& range, int64_t c, int64_t lanes, const F& f) {
  const ChannelView& view = tiling.view;
  if (view.channels_last) {
    const int64_t n = (range.last_pixel - range.first_pixel) * view.channels;
    const int64_t begin = (range.first_image * view.pixels + range.first_pixel) * view.channels;
    f(Strip{begin, n / lanes, lanes, lanes, n % lanes});
    return;
  }
  const int64_t begin = (range.first_image * view.channels + c) * view.pixels + range.first_pixel;
  const int64_t image = view.channels * view.pixels;
  const int64_t images = range.last_image - range.first_image;
  const int64_t n = range.last_pixel - range.first_pixel;
  if (lanes == n) {
    f(Strip{begin, images, n, image, 0});
    return;
  }
  for (int64_t i = 0; i < images; ++i) f(Strip{begin + i * image, n / lanes, lanes, lanes, n % lanes});
}

/// Lanes of the pieces of a tile. A small plane is one row: then the images are the rows.
int64_t lanes_of(const Tiling& tiling, const Tiling::Range& range) {
  if (tiling.view.channels_last) return lanes_of_pixels(tiling.view.channels);
  const int64_t pixels = range.last_pixel - range.first_pixel;
  return pixels <= 256 ? pixels : 64;
}

/// Calls `f.operator()<L>(first)` for blocks of L lanes that together are `lanes`.
template <class F>
void for_lane_blocks(int64_t lanes, const F& f) {
  int64_t at = 0;
  for (; at + 32 <= lanes; at += 32) f.template operator()<32>(at);
  for (; at + 8 <= lanes; at += 8) f.template operator()<8>(at);
  for (; at < lanes; ++at) f.template operator()<1>(at);
}

template <class T, int L>
using Lanes = Eigen::Array<T, L, 1>;
template <int L, class T>
auto load(const T* from) {
  return Eigen::Map<const Lanes<T, L>>(from);
}
template <int L, class T>
auto store(T* to) {
  return Eigen::Map<Lanes<T, L>>(to);
}

/// sums[k][lane] += terms(index of element, lane)[k], over all rows: `terms.operator()<L>(at, lane)` gives K
/// arrays.
template <class T, std::size_t K, class Terms>
void add_rows(const Strip& strip, const std::array<T*, K>& sums, const Terms& terms) {
  for_lane_blocks(strip.lanes, [&]<int L>(int64_t lane) {
    std::array<Lanes<T, L>, K> own;
    for (std::size_t k = 0; k < K; ++k) own[k] = load<L>(sums[k] + lane);
    const auto row_terms = terms.template at_lane<L>(lane);
    for (int64_t r = 0; r < strip.rows; ++r) row_terms(strip.begin + r * strip.stride + lane, own);
    for (std::size_t k = 0; k < K; ++k) store<L>(sums[k] + lane) = own[k];
  });
  if (strip.left == 0) return;
  add_rows<T, K>(Strip{strip.begin + strip.rows * strip.stride, 1, strip.left, 0, 0}, sums, terms);
}

/// Adds up lanes of one channel. Returns the number of channels the lanes belong to.
template <class T>
void fold(T* sums, int64_t lanes, int64_t channels) {
  for (int64_t lane = channels; lane < lanes; lane += channels)
    for (int64_t c = 0; c < channels; ++c) sums[c] += sums[lane + c];
}

/// Repeats the first `channels` numbers over all lanes.
template <class T>
void spread(T* numbers, int64_t lanes, int64_t channels) {
  for (int64_t lane = channels; lane < lanes; ++lane) numbers[lane] = numbers[lane - channels];
}

template <class T>
struct PlainTerms {
  const T* x;
  template <int L>
  auto at_lane(int64_t) const {
    return [x = x](int64_t at, std::array<Lanes<T, L>, 1>& sums) { sums[0] += load<L>(x + at); };
  }
};

template <class T>
struct ShiftedTerms {
  const T* x;
  const T* shift;
  template <int L>
  auto at_lane(int64_t lane) const {
    return [x = x, pivot = Lanes<T, L>(load<L>(shift + lane))](int64_t at, std::array<Lanes<T, L>, 2>& sums) {
      const Lanes<T, L> d = load<L>(x + at) - pivot;
      sums[0] += d;
      sums[1] += d * d;
    };
  }
};

template <class T>
struct GradientTerms {
  const T* dy;
  const T* x;
  const T* shift;
  template <int L>
  auto at_lane(int64_t lane) const {
    return [dy = dy, x = x, pivot = Lanes<T, L>(load<L>(shift + lane))](int64_t at,
                                                                        std::array<Lanes<T, L>, 2>& sums) {
      const Lanes<T, L> g = load<L>(dy + at);
      sums[0] += g;
      sums[1] += g * (load<L>(x + at) - pivot);
    };
  }
};

/// Two numbers for each channel of each tile, [tiles, channels].
struct Partials {
  Partials(int64_t tiles, int64_t channels)
      : first(static_cast<std::size_t>(tiles * channels)),
        second(static_cast<std::size_t>(tiles * channels)) {}
  std::vector<double> first;
  std::vector<double> second;
};

/// Runs `piece(tile, range, c, lanes, channels, scratch)` for all pieces of a tiling; `channels` are those
/// that the lanes belong to, scratch is `buffers` arrays of lanes.
template <class T, class Piece>
void for_pieces(const Tiling& tiling, int64_t buffers, const Piece& piece) {
  const ChannelView& view = tiling.view;
  if (view.numel() == 0) return;
  parallel_for(0, tiling.pieces(), 1, [&](int64_t first, int64_t last) {
    std::vector<T> scratch;
    for (int64_t i = first; i < last; ++i) {
      const int64_t tile = view.channels_last ? i : i / view.channels;
      const int64_t c = view.channels_last ? 0 : i % view.channels;
      const Tiling::Range range = tiling.range(tile);
      const int64_t lanes = lanes_of(tiling, range);
      scratch.assign(static_cast<std::size_t>(buffers * lanes), T(0));
      piece(tile, range, c, lanes, view.channels_last ? view.channels : 1, scratch.data());
    }
  });
}

}  // namespace

template <class T>
Moments channel_moments(const ChannelView& view, bool per_image, const T* x) {
  const Tiling tiling(view, per_image);
  const int64_t channels = view.channels;
  Partials parts(tiling.tiles(), channels);
  for_pieces<T>(
      tiling, 3,
      [&](int64_t tile, const Tiling::Range& range, int64_t c, int64_t lanes, int64_t own, T* scratch) {
        T* pivot = scratch;
        T* sum = scratch + lanes;
        T* square = scratch + 2 * lanes;
        for_strips(tiling, range, c, lanes,
                   [&](const Strip& strip) { add_rows<T, 1>(strip, {pivot}, PlainTerms<T>{x}); });
        fold(pivot, lanes, own);
        const auto n = static_cast<double>(range.values());
        for (int64_t k = 0; k < own; ++k) pivot[k] /= static_cast<T>(n);
        spread(pivot, lanes, own);
        for_strips(tiling, range, c, lanes, [&](const Strip& strip) {
          add_rows<T, 2>(strip, {sum, square}, ShiftedTerms<T>{x, pivot});
        });
        fold(sum, lanes, own);
        fold(square, lanes, own);
        for (int64_t k = 0; k < own; ++k) {
          // The pivot is the mean up to rounding; what is left of it is taken out here.
          const auto at = static_cast<std::size_t>(tile * channels + c + k);
          const double rest = static_cast<double>(sum[k]) / n;
          const double m2 = static_cast<double>(square[k]) - rest * static_cast<double>(sum[k]);
          parts.first[at] = static_cast<double>(pivot[k]) + rest;
          parts.second[at] = m2 < 0 ? 0 : m2;
        }
      });
  const int64_t images = per_image ? view.images : 1;
  const int64_t tiles = images == 0 ? 0 : tiling.tiles() / images;
  Moments moments{std::vector<double>(static_cast<std::size_t>(images * channels)),
                  std::vector<double>(static_cast<std::size_t>(images * channels))};
  if (view.numel() == 0) return moments;
  parallel_for(0, images * channels, 64, [&](int64_t first, int64_t last) {
    for (int64_t group = first; group < last; ++group) {
      const int64_t image = group / channels;
      const int64_t c = group % channels;
      auto& mean = moments.mean[static_cast<std::size_t>(group)];
      auto& m2 = moments.m2[static_cast<std::size_t>(group)];
      double n = 0;
      for (int64_t tile = image * tiles; tile < (image + 1) * tiles; ++tile) {
        const auto at = static_cast<std::size_t>(tile * channels + c);
        const auto own = static_cast<double>(tiling.range(tile).values());
        merge_moments(mean, m2, n, parts.first[at], parts.second[at], own);
        n += own;
      }
    }
  });
  return moments;
}

template <class T>
GradientSums channel_gradient_sums(const ChannelView& view, bool per_image, const T* dy, const T* x,
                                   const std::vector<T>& shift) {
  const Tiling tiling(view, per_image);
  const int64_t channels = view.channels;
  Partials parts(tiling.tiles(), channels);
  for_pieces<T>(
      tiling, 3,
      [&](int64_t tile, const Tiling::Range& range, int64_t c, int64_t lanes, int64_t own, T* scratch) {
        T* pivot = scratch;
        T* sum = scratch + lanes;
        T* product = scratch + 2 * lanes;
        const int64_t group = (per_image ? range.first_image * channels : 0) + c;
        std::copy_n(shift.data() + group, own, pivot);
        spread(pivot, lanes, own);
        for_strips(tiling, range, c, lanes, [&](const Strip& strip) {
          add_rows<T, 2>(strip, {sum, product}, GradientTerms<T>{dy, x, pivot});
        });
        fold(sum, lanes, own);
        fold(product, lanes, own);
        for (int64_t k = 0; k < own; ++k) {
          const auto at = static_cast<std::size_t>(tile * channels + c + k);
          parts.first[at] = static_cast<double>(sum[k]);
          parts.second[at] = static_cast<double>(product[k]);
        }
      });
  const int64_t images = per_image ? view.images : 1;
  const int64_t tiles = images == 0 ? 0 : tiling.tiles() / images;
  GradientSums sums{std::vector<double>(static_cast<std::size_t>(images * channels)),
                    std::vector<double>(static_cast<std::size_t>(images * channels))};
  if (view.numel() == 0) return sums;
  parallel_for(0, images * channels, 64, [&](int64_t first, int64_t last) {
    for (int64_t group = first; group < last; ++group)
      for (int64_t tile = group / channels * tiles; tile < (group / channels + 1) * tiles; ++tile) {
        const auto at = static_cast<std::size_t>(tile * channels + group % channels);
        sums.dy[static_cast<std::size_t>(group)] += parts.first[at];
        sums.dy_x[static_cast<std::size_t>(group)] += parts.second[at];
      }
  });
  return sums;
}

namespace {

/// Spreads the numbers of the groups over the lanes of a piece, then calls `f(begin, n)` for runs of adjacent
/// elements, element i of which belongs to lane i: n is `lanes` or less.
template <class T, std::size_t K, class F>
void for_runs(const ChannelView& view, bool per_image, const std::array<const T*, K>& numbers, const F& f) {
  const Tiling tiling(view, per_image);
  for_pieces<T>(tiling, static_cast<int64_t>(K),
                [&](int64_t, const Tiling::Range& range, int64_t c, int64_t lanes, int64_t own, T* scratch) {
                  const int64_t group = (per_image ? range.first_image * view.channels : 0) + c;
                  std::array<const T*, K> spread_numbers;
                  for (std::size_t k = 0; k < K; ++k) {
                    T* mine = scratch + static_cast<int64_t>(k) * lanes;
                    std::copy_n(numbers[k] + group, own, mine);
                    spread(mine, lanes, own);
                    spread_numbers[k] = mine;
                  }
                  for_strips(tiling, range, c, lanes, [&](const Strip& strip) {
                    for (int64_t r = 0; r < strip.rows; ++r)
                      f(strip.begin + r * strip.stride, strip.lanes, spread_numbers);
                    f(strip.begin + strip.rows * strip.stride, strip.left, spread_numbers);
                  });
                });
}

}  // namespace

template <class T>
void channel_affine(const ChannelView& view, bool per_image, const T* x, const Affine<T>& numbers, T* y) {
  for_runs<T, 3>(view, per_image, {numbers.shift.data(), numbers.scale.data(), numbers.bias.data()},
                 [x, y](int64_t begin, int64_t n, const std::array<const T*, 3>& of) {
                   const T* __restrict from = x + begin;
                   T* __restrict to = y + begin;
                   const T* __restrict shift = of[0];
                   const T* __restrict scale = of[1];
                   const T* __restrict bias = of[2];
                   for (int64_t i = 0; i < n; ++i) to[i] = (from[i] - shift[i]) * scale[i] + bias[i];
                 });
}

template <class T>
void channel_input_gradient(const ChannelView& view, bool per_image, const T* dy, const T* x,
                            const InputGradient<T>& numbers, T* dx) {
  for_runs<T, 4>(view, per_image,
                 {numbers.shift.data(), numbers.scale.data(), numbers.slope.data(), numbers.offset.data()},
                 [dy, x, dx](int64_t begin, int64_t n, const std::array<const T*, 4>& of) {
                   const T* __restrict gradient = dy + begin;
                   const T* __restrict from = x + begin;
                   T* __restrict to = dx + begin;
                   const T* __restrict shift = of[0];
                   const T* __restrict scale = of[1];
                   const T* __restrict slope = of[2];
                   const T* __restrict offset = of[3];
                   for (int64_t i = 0; i < n; ++i)
                     to[i] = gradient[i] * scale[i] - (from[i] - shift[i]) * slope[i] - offset[i];
                 });
}

template Moments channel_moments(const ChannelView&, bool, const float*);
template Moments channel_moments(const ChannelView&, bool, const double*);
template void channel_affine(const ChannelView&, bool, const float*, const Affine<float>&, float*);
template void channel_affine(const ChannelView&, bool, const double*, const Affine<double>&, double*);
template GradientSums channel_gradient_sums(const ChannelView&, bool, const float*, const float*,
                                            const std::vector<float>&);
template GradientSums channel_gradient_sums(const ChannelView&, bool, const double*, const double*,
                                            const std::vector<double>&);
template void channel_input_gradient(const ChannelView&, bool, const float*, const float*,
                                     const InputGradient<float>&, float*);
template void channel_input_gradient(const ChannelView&, bool, const double*, const double*,
                                     const InputGradient<double>&, double*);

}  // namespace pleat::ops
