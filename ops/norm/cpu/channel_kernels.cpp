#include "pleat/ops/norm/cpu/channel_kernels.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <Eigen/Core>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/streaming.h"
#include "pleat/core/parallel/parallel.h"

namespace pleat::ops {
namespace {

/// Elements that a tile has at least (where there are so many): it stays in the first- or second-level cache
/// between two readings, and merging its sums costs little beside making them.
constexpr int64_t tile_elements = 16384;
/// Elements that the prefetchers of a CPU take as one stream: a page.
constexpr int64_t page_elements = 1024;
/// Rows of a tile at least, when a row of many channels is long.
constexpr int64_t tile_rows = 64;
/// Images of a tile at least, when planes are small: adding up the lanes of a channel costs as much as a few
/// pixels.
constexpr int64_t tile_images = 8;
/// Lanes summed side by side at most. More would only make folding them slower.
constexpr int64_t max_lanes = 1024;

/// Planes smaller than this are summed several at a time, `plane_lanes` lanes for each channel.
constexpr int64_t small_plane = 128;
constexpr int64_t plane_lanes = 8;
/// Lanes of a large plane.
constexpr int64_t large_plane_lanes = 64;

/// What belongs to a lane, one of the sums that are made side by side.
enum class LaneOrder : unsigned char {
  pixels,  ///< lane l sums channel l % channels: whole pixels of a channels_last tensor
  plane,   ///< all lanes sum one channel: a large plane
  planes   ///< lane l sums channel l / plane_lanes: small planes of all channels
};

/// A part of a view, and the lanes that it is summed in.
struct Piece {
  int64_t tile;
  int64_t first_image, last_image, first_pixel, last_pixel;
  int64_t first_channel, channels;
  int64_t lanes;
  int64_t values() const {
    return (last_image - first_image) * (last_pixel - first_pixel);
  }  ///< of a channel
};

/// How a view is cut. A tile has all channels of some pixels or images; the planes of a tile of large ones
/// are pieces of their own. Pieces follow each other in memory. With `per_image` a tile stays inside an
/// image.
struct Tiling {
  ChannelView view;
  LaneOrder order;
  int64_t images_per_tile = 1;
  int64_t pixels_per_tile;
  int64_t segments;  ///< tiles along pixels

  Tiling(const ChannelView& of, bool per_image)
      : view(of),
        order(of.channels_last           ? LaneOrder::pixels
              : of.pixels >= small_plane ? LaneOrder::plane
                                         : LaneOrder::planes),
        pixels_per_tile(std::max<int64_t>(of.pixels, 1)) {
    const int64_t channels = std::max<int64_t>(view.channels, 1);
    if (order == LaneOrder::pixels) {
      if (!per_image) {
        // Images are nothing but more pixels here.
        view.pixels *= view.images;
        view.images = 1;
      }
      // Whole rows of lanes in every tile but the last.
      pixels_per_tile = ceil_div(std::max(ceil_div(tile_elements, channels), tile_rows), 64) * 64;
    } else if (order == LaneOrder::plane) {
      pixels_per_tile = tile_elements;
    } else if (!per_image) {
      images_per_tile = std::max(ceil_div(tile_elements, channels * pixels_per_tile), tile_images);
    }
    segments = ceil_div(view.pixels, pixels_per_tile);
  }

  /// Values that a channel has in a tile.
  int64_t values(int64_t tile) const {
    const int64_t image = tile / segments * images_per_tile;
    const int64_t pixel = tile % segments * pixels_per_tile;
    return std::min(images_per_tile, view.images - image) * std::min(pixels_per_tile, view.pixels - pixel);
  }
  int64_t tiles() const { return ceil_div(view.images, images_per_tile) * segments; }
  int64_t pieces() const { return tiles() * (order == LaneOrder::plane ? view.channels : 1); }

  Piece piece(int64_t index) const {
    const int64_t segment = index % segments;
    int64_t block = index / segments;
    Piece piece{};
    piece.channels = view.channels;
    if (order == LaneOrder::plane) {
      piece.first_channel = block % view.channels;
      piece.channels = 1;
      block /= view.channels;
    }
    piece.tile = block * segments + segment;
    piece.first_image = block * images_per_tile;
    piece.last_image = std::min(view.images, piece.first_image + images_per_tile);
    piece.first_pixel = segment * pixels_per_tile;
    piece.last_pixel = std::min(view.pixels, piece.first_pixel + pixels_per_tile);
    if (order == LaneOrder::plane) {
      piece.lanes = large_plane_lanes;
    } else if (order == LaneOrder::planes) {
      piece.lanes = plane_lanes * view.channels;
    } else {
      // So many pixels that they fill vector registers.
      const int64_t pixels = 32 / std::gcd<int64_t>(view.channels, 32);
      piece.lanes = pixels * view.channels <= max_lanes ? pixels * view.channels : view.channels;
    }
    return piece;
  }
};

/// Calls `f.operator()<L>(first)` for blocks of L lanes that together are `lanes`.
template <class F>
void for_lane_blocks(int64_t lanes, const F& f) {
  int64_t at = 0;
  for (; at + 64 <= lanes; at += 64) f.template operator()<64>(at);
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

/// Terms of the sums: `at_lane<L>(lane)` gives a function that adds those of L elements from index `at` on to
/// `sums`.
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
  const T* shift;  ///< of each lane
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
  const T* shift;  ///< of each lane
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

/// GradientTerms where `scale` (x - shift) + `bias` is open.
template <class T>
struct OpenGradientTerms {
  Limit<T> limit;
  const T* dy;
  const T* x;
  const T* shift;  ///< of each lane, as are scale and bias
  const T* scale;
  const T* bias;
  template <int L>
  auto at_lane(int64_t lane) const {
    return [limit = limit, dy = dy, x = x, pivot = Lanes<T, L>(load<L>(shift + lane)),
            factor = Lanes<T, L>(load<L>(scale + lane)),
            offset = Lanes<T, L>(load<L>(bias + lane))](int64_t at, std::array<Lanes<T, L>, 2>& sums) {
      const Lanes<T, L> d = load<L>(x + at) - pivot;
      const Lanes<T, L> y = d * factor + offset;
      const Lanes<T, L> g = (y <= limit.min || y >= limit.max).select(Lanes<T, L>::Zero(), load<L>(dy + at));
      sums[0] += g;
      sums[1] += g * d;
    };
  }
};

/// Adds the terms of `rows` rows of adjacent elements, `lanes` each, to sums[k][lane].
template <class T, std::size_t K, class Terms>
void add_rows(int64_t begin, int64_t rows, int64_t lanes, const std::array<T*, K>& sums, const Terms& terms) {
  // A few rows at a time, so that memory is read in the order in which it lies.
  const int64_t together = std::max<int64_t>(8, page_elements / std::max<int64_t>(lanes, 1));
  for (int64_t first = 0; first < rows; first += together) {
    const int64_t last = std::min(rows, first + together);
    for_lane_blocks(lanes, [&]<int L>(int64_t lane) {
      std::array<Lanes<T, L>, K> own;
      for (std::size_t k = 0; k < K; ++k) own[k] = load<L>(sums[k] + lane);
      const auto add = terms.template at_lane<L>(lane);
      for (int64_t r = first; r < last; ++r) add(begin + r * lanes + lane, own);
      for (std::size_t k = 0; k < K; ++k) store<L>(sums[k] + lane) = own[k];
    });
  }
}

/// The same for one small plane, whose lanes are the first plane_lanes of `sums`.
template <class T, std::size_t K, class Terms>
void add_plane(int64_t begin, int64_t pixels, int64_t lane, const std::array<T*, K>& sums,
               const Terms& terms) {
  constexpr int L = plane_lanes;
  std::array<Lanes<T, L>, K> own;
  for (std::size_t k = 0; k < K; ++k) own[k] = load<L>(sums[k] + lane);
  const auto add = terms.template at_lane<L>(lane);
  int64_t p = 0;
  for (; p + L <= pixels; p += L) add(begin + p, own);
  for (std::size_t k = 0; k < K; ++k) store<L>(sums[k] + lane) = own[k];
  for (int64_t rest = 0; p < pixels; ++p, ++rest) {
    std::array<Lanes<T, 1>, K> one;
    for (std::size_t k = 0; k < K; ++k) one[k] = load<1>(sums[k] + lane + rest);
    terms.template at_lane<1>(lane + rest)(begin + p, one);
    for (std::size_t k = 0; k < K; ++k) sums[k][lane + rest] = one[k].value();
  }
}

/// The elements of a piece: neighbours in memory.
struct Elements {
  int64_t begin, count;

  Elements(const Tiling& tiling, const Piece& piece) {
    const ChannelView& view = tiling.view;
    const int64_t pixels = piece.last_pixel - piece.first_pixel;
    if (tiling.order == LaneOrder::pixels) {
      begin = (piece.first_image * view.pixels + piece.first_pixel) * view.channels;
      count = pixels * view.channels;
    } else {
      begin = (piece.first_image * view.channels + piece.first_channel) * view.pixels + piece.first_pixel;
      count = (piece.last_image - piece.first_image) * piece.channels * pixels;
    }
  }
};

/// Adds the terms of all elements of a piece to sums[k][lane].
template <class T, std::size_t K, class Terms>
void add_piece(const Tiling& tiling, const Piece& piece, const std::array<T*, K>& sums, const Terms& terms) {
  const ChannelView& view = tiling.view;
  if (tiling.order == LaneOrder::planes) {
    int64_t at = piece.first_image * view.channels * view.pixels;
    for (int64_t n = piece.first_image; n < piece.last_image; ++n)
      for (int64_t c = 0; c < view.channels; ++c, at += view.pixels)
        add_plane<T, K>(at, view.pixels, c * plane_lanes, sums, terms);
    return;
  }
  const auto [begin, n] = Elements(tiling, piece);
  const int64_t rows = n / piece.lanes;
  add_rows<T, K>(begin, rows, piece.lanes, sums, terms);
  // What is left belongs to the first lanes.
  add_rows<T, K>(begin + rows * piece.lanes, 1, n - rows * piece.lanes, sums, terms);
}

/// Adds up the lanes of each channel of a piece, into the first of `sums`.
template <class T>
void fold(const Tiling& tiling, const Piece& piece, T* sums) {
  if (tiling.order == LaneOrder::planes) {
    for (int64_t c = 0; c < piece.channels; ++c) sums[c] = load<plane_lanes>(sums + c * plane_lanes).sum();
    return;
  }
  if (tiling.order == LaneOrder::plane) {
    sums[0] = load<large_plane_lanes>(sums).sum();
    return;
  }
  for (int64_t groups = piece.lanes / piece.channels; groups > 1;) {
    const int64_t upper = groups / 2 * piece.channels;
    const int64_t kept = (groups - groups / 2) * piece.channels;
    for (int64_t i = 0; i < upper; ++i) sums[i] += sums[kept + i];
    groups -= groups / 2;
  }
}

/// Gives each lane the number of its channel.
template <class T>
void spread(const Tiling& tiling, const Piece& piece, T* numbers) {
  if (tiling.order == LaneOrder::planes) {
    for (int64_t c = piece.channels; c-- > 0;)
      std::fill_n(numbers + c * plane_lanes, plane_lanes, T(numbers[c]));
    return;
  }
  if (tiling.order == LaneOrder::plane) {
    std::fill_n(numbers, piece.lanes, T(numbers[0]));
    return;
  }
  for (int64_t lane = piece.channels; lane < piece.lanes; ++lane)
    numbers[lane] = numbers[lane - piece.channels];
}

/// Runs `body(piece, scratch)` for all pieces of a tiling; scratch is `arrays` arrays of lanes, zeros.
template <class T, class Body>
void for_pieces(const Tiling& tiling, int64_t arrays, const Body& body) {
  if (tiling.view.numel() == 0) return;
  parallel_for(0, tiling.pieces(), 1, [&](int64_t first, int64_t last) {
    std::vector<T> scratch;
    for (int64_t i = first; i < last; ++i) {
      const Piece piece = tiling.piece(i);
      scratch.assign(static_cast<std::size_t>(arrays * piece.lanes), T(0));
      body(piece, scratch.data());
    }
  });
}

/// Two numbers for each channel of each tile, [tiles, channels].
struct Partials {
  Partials(int64_t tiles, int64_t channels)
      : first(static_cast<std::size_t>(tiles * channels)),
        second(static_cast<std::size_t>(tiles * channels)) {}
  std::vector<double> first;
  std::vector<double> second;
};

/// Groups [first, last), whose numbers of one tile start at `at` in Partials: `values` each, after `before`
/// that are merged already.
struct Merge {
  int64_t first, last;
  int64_t at;
  double before, values;
};

/// Calls `merge(Merge)` for all tiles of all groups, those of a group in order.
template <class F>
void merge_tiles(const Tiling& tiling, int64_t groups, const F& merge) {
  if (tiling.view.numel() == 0) return;
  const int64_t channels = tiling.view.channels;
  const int64_t tiles = tiling.tiles() * channels / groups;
  parallel_for(0, groups, 64, [&](int64_t first, int64_t last) {
    for (int64_t image = first / channels; image <= (last - 1) / channels; ++image) {
      const int64_t begin = std::max(first, image * channels);
      const int64_t end = std::min(last, (image + 1) * channels);
      double before = 0;
      for (int64_t tile = image * tiles; tile < (image + 1) * tiles; ++tile) {
        const auto values = static_cast<double>(tiling.values(tile));
        merge(Merge{begin, end, tile * channels + begin - image * channels, before, values});
        before += values;
      }
    }
  });
}

}  // namespace

template <class T>
Moments channel_moments(const ChannelView& view, bool per_image, const T* x) {
  const Tiling tiling(view, per_image);
  Partials parts(tiling.tiles(), view.channels);
  for_pieces<T>(tiling, 3, [&](const Piece& piece, T* scratch) {
    T* pivot = scratch;
    T* sum = scratch + piece.lanes;
    T* square = scratch + 2 * piece.lanes;
    add_piece<T, 1>(tiling, piece, {pivot}, PlainTerms<T>{x});
    fold(tiling, piece, pivot);
    const auto n = static_cast<double>(piece.values());
    for (int64_t c = 0; c < piece.channels; ++c) pivot[c] /= static_cast<T>(n);
    spread(tiling, piece, pivot);
    add_piece<T, 2>(tiling, piece, {sum, square}, ShiftedTerms<T>{x, pivot});
    fold(tiling, piece, sum);
    fold(tiling, piece, square);
    const int64_t lanes_apart = tiling.order == LaneOrder::planes ? plane_lanes : 1;
    for (int64_t c = 0; c < piece.channels; ++c) {
      // The pivot is the mean up to rounding; what is left of it is taken out here.
      const auto at = static_cast<std::size_t>(piece.tile * view.channels + piece.first_channel + c);
      const double rest = static_cast<double>(sum[c]) / n;
      const double m2 = static_cast<double>(square[c]) - rest * static_cast<double>(sum[c]);
      parts.first[at] = static_cast<double>(pivot[c * lanes_apart]) + rest;
      parts.second[at] = m2 < 0 ? 0 : m2;
    }
  });
  const int64_t groups = (per_image ? view.images : 1) * view.channels;
  Moments moments{std::vector<double>(static_cast<std::size_t>(groups)),
                  std::vector<double>(static_cast<std::size_t>(groups))};
  merge_tiles(tiling, groups, [&](const Merge& of) {
    double* mean = moments.mean.data();
    double* m2 = moments.m2.data();
    const double* more_mean = parts.first.data() + of.at - of.first;
    const double* more_m2 = parts.second.data() + of.at - of.first;
    for (int64_t group = of.first; group < of.last; ++group)
      merge_moments(mean[group], m2[group], of.before, more_mean[group], more_m2[group], of.values);
  });
  return moments;
}

namespace {

template <class T>
void write_open(const Elements& of, const T* dy, const Opening<T>& opening) {
  const T* __restrict gradient = dy + of.begin;
  const T* __restrict y = opening.y + of.begin;
  T* __restrict open = opening.open + of.begin;
  const Limit<T> limit = opening.limit;
  if (opening.more_dy == nullptr) {
    for (int64_t i = 0; i < of.count; ++i) open[i] = limit.open(y[i], gradient[i]);
  } else {
    const T* __restrict more = opening.more_dy + of.begin;
    for (int64_t i = 0; i < of.count; ++i) open[i] = limit.open(y[i], gradient[i] + more[i]);
  }
}

}  // namespace

template <class T>
GradientSums channel_gradient_sums(const ChannelView& view, bool per_image, const T* dy, const T* x,
                                   const std::vector<T>& shift, const LimitedAffine<T>* limited,
                                   const Opening<T>* opening) {
  const Tiling tiling(view, per_image);
  Partials parts(tiling.tiles(), view.channels);
  for_pieces<T>(tiling, limited != nullptr ? 5 : 3, [&](const Piece& piece, T* scratch) {
    T* pivot = scratch;
    T* sum = scratch + piece.lanes;
    T* product = scratch + 2 * piece.lanes;
    const int64_t group = (per_image ? piece.first_image * view.channels : 0) + piece.first_channel;
    const auto give = [&](const std::vector<T>& numbers, T* to) {
      std::copy_n(numbers.data() + group, piece.channels, to);
      spread(tiling, piece, to);
    };
    give(shift, pivot);
    if (limited != nullptr) {
      T* scale = scratch + 3 * piece.lanes;
      T* bias = scratch + 4 * piece.lanes;
      give(limited->numbers.scale, scale);
      give(limited->numbers.bias, bias);
      add_piece<T, 2>(tiling, piece, {sum, product},
                      OpenGradientTerms<T>{limited->limit, dy, x, pivot, scale, bias});
    } else {
      if (opening != nullptr) write_open(Elements(tiling, piece), dy, *opening);
      add_piece<T, 2>(tiling, piece, {sum, product},
                      GradientTerms<T>{opening != nullptr ? opening->open : dy, x, pivot});
    }
    fold(tiling, piece, sum);
    fold(tiling, piece, product);
    const auto at = static_cast<std::ptrdiff_t>(piece.tile * view.channels + piece.first_channel);
    std::copy_n(sum, piece.channels, parts.first.begin() + at);
    std::copy_n(product, piece.channels, parts.second.begin() + at);
  });
  const auto groups = static_cast<std::size_t>((per_image ? view.images : 1) * view.channels);
  GradientSums sums{std::vector<double>(groups), std::vector<double>(groups)};
  merge_tiles(tiling, static_cast<int64_t>(groups), [&](const Merge& of) {
    double* dy_sum = sums.dy.data();
    double* product_sum = sums.dy_x.data();
    const double* more_dy = parts.first.data() + of.at - of.first;
    const double* more_product = parts.second.data() + of.at - of.first;
    for (int64_t group = of.first; group < of.last; ++group) {
      dy_sum[group] += more_dy[group];
      product_sum[group] += more_product[group];
    }
  });
  return sums;
}

namespace {

/// Elements of a run at least: numbers are repeated so often that their loop is long enough to be fast.
constexpr int64_t run_elements = 512;

/// Numbers of channels, `first` of each kind on, repeated to runs of whole pixels.
template <class T, std::size_t K>
class Repeated {
 public:
  Repeated(int64_t channels, const std::array<const T*, K>& numbers, int64_t first)
      : length_(channels * std::max<int64_t>(1, run_elements / channels)),
        values_(static_cast<std::size_t>(length_) * K) {
    for (std::size_t k = 0; k < K; ++k) {
      T* mine = values_.data() + static_cast<int64_t>(k) * length_;
      for (int64_t at = 0; at < length_; at += channels) std::copy_n(numbers[k] + first, channels, mine + at);
      pointers_[k] = mine;
    }
  }
  int64_t length() const { return length_; }
  const std::array<const T*, K>& pointers() const { return pointers_; }

 private:
  int64_t length_;
  std::vector<T> values_;
  std::array<const T*, K> pointers_;
};

/// Calls `f.operator()<each>(begin, n, numbers)` for runs of adjacent elements, with the numbers of their
/// groups: one for each element when `each`, else one for all. Runs may be written past the caches.
template <class T, std::size_t K, class F>
void for_runs(const ChannelView& view, bool per_image, const std::array<const T*, K>& numbers, const F& f) {
  if (view.numel() == 0) return;
  const Tiling tiling(view, per_image);
  const int64_t channels = view.channels;
  const Repeated<T, K> common(channels, numbers, 0);
  const auto write = [&](const Piece& piece) {
    if (tiling.order == LaneOrder::pixels) {
      const int64_t begin = (piece.first_image * tiling.view.pixels + piece.first_pixel) * channels;
      const int64_t end = begin + (piece.last_pixel - piece.first_pixel) * channels;
      const auto run = [&](const Repeated<T, K>& own) {
        for (int64_t at = begin; at < end; at += own.length())
          f.template operator()<true>(at, std::min(own.length(), end - at), own.pointers());
      };
      if (per_image)
        run(Repeated<T, K>(channels, numbers, piece.first_image * channels));
      else
        run(common);
      return;
    }
    for (int64_t n = piece.first_image; n < piece.last_image; ++n)
      for (int64_t c = piece.first_channel; c < piece.first_channel + piece.channels; ++c) {
        std::array<const T*, K> own;
        for (std::size_t k = 0; k < K; ++k) own[k] = numbers[k] + (per_image ? n * channels : 0) + c;
        f.template operator()<false>((n * channels + c) * view.pixels + piece.first_pixel,
                                     piece.last_pixel - piece.first_pixel, own);
      }
  };
  const int64_t pieces = tiling.pieces();
  // Pieces may be planes of a few hundred pixels: a stretch of some is written forwards, so that the next is
  // fetched in time.
  const int64_t stretch = std::max<int64_t>(1, tile_elements / ceil_div(view.numel(), pieces));
  const int64_t stretches = ceil_div(pieces, stretch);
  parallel_for(0, stretches, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      // The sums have just been made: what they read last is still in the cache.
      const int64_t begin = (stretches - 1 - i) * stretch;
      for (int64_t k = begin; k < std::min(begin + stretch, pieces); ++k) write(tiling.piece(k));
    }
    end_streaming();
  });
}

}  // namespace

template <class T>
void channel_affine(const ChannelView& view, bool per_image, const T* x, const Affine<T>& numbers,
                    const Bounds& bounds, T* y, const T* residual) {
  const Limit<T> limit(bounds);
  const bool streamed = x != y && is_streamed(view.numel() * static_cast<int64_t>(sizeof(T)));
  const auto run = [&]<bool limits, bool adds>(std::bool_constant<limits>, std::bool_constant<adds>) {
    for_runs<T, 3>(view, per_image, {numbers.shift.data(), numbers.scale.data(), numbers.bias.data()},
                   [x, y, residual, limit, streamed]<bool each>(int64_t begin, int64_t n,
                                                                const std::array<const T*, 3>& of) {
                     const T* from = x + begin;
                     const T* more = adds ? residual + begin : from;
                     const auto write = [&](T* __restrict to, int64_t first, int64_t count) {
                       const T* __restrict own = from + first;
                       const T* __restrict other = more + first;
                       const int64_t number = each ? first : 0;
                       const T* __restrict shift = of[0] + number;
                       const T* __restrict scale = of[1] + number;
                       const T* __restrict bias = of[2] + number;
                       for (int64_t i = 0; i < count; ++i) {
                         const int64_t k = each ? i : 0;
                         T value = (own[i] - shift[k]) * scale[k] + bias[k];
                         if constexpr (adds) value += other[i];
                         if constexpr (limits) value = limit.limited(value);
                         to[i] = value;
                       }
                     };
                     write_run(y + begin, n, streamed, write, from, more);
                   });
  };
  const auto run_with = [&](auto limits) {
    if (residual != nullptr)
      run(limits, std::true_type{});
    else
      run(limits, std::false_type{});
  };
  if (bounds.any())
    run_with(std::true_type{});
  else
    run_with(std::false_type{});
}

template <class T>
void channel_input_gradient(const ChannelView& view, bool per_image, const T* dy, const T* x,
                            const InputGradient<T>& numbers, T* dx, const LimitedAffine<T>* limited) {
  const bool streamed = dy != dx && is_streamed(view.numel() * static_cast<int64_t>(sizeof(T)));
  const auto run = [&](auto with_limit) {
    constexpr bool limits = decltype(with_limit)::value;
    constexpr std::size_t count = limits ? 6 : 4;
    Limit<T> limit;
    std::array<const T*, count> all{numbers.shift.data(), numbers.scale.data(), numbers.slope.data(),
                                    numbers.offset.data()};
    if constexpr (limits) {
      all[4] = limited->numbers.scale.data();
      all[5] = limited->numbers.bias.data();
      limit = limited->limit;
    }
    for_runs<T, count>(view, per_image, all,
                       [dy, x, dx, limit, streamed]<bool each>(int64_t begin, int64_t n,
                                                               const std::array<const T*, count>& of) {
                         const auto write = [&](T* __restrict to, int64_t first, int64_t some) {
                           const T* __restrict gradient = dy + begin + first;
                           const T* __restrict from = x + begin + first;
                           const int64_t number = each ? first : 0;
                           const T* __restrict shift = of[0] + number;
                           const T* __restrict scale = of[1] + number;
                           const T* __restrict slope = of[2] + number;
                           const T* __restrict offset = of[3] + number;
                           const T* __restrict own_scale = of[limits ? 4 : 0] + number;
                           const T* __restrict own_bias = of[limits ? 5 : 0] + number;
                           for (int64_t i = 0; i < some; ++i) {
                             const int64_t k = each ? i : 0;
                             const T d = from[i] - shift[k];
                             T g = gradient[i];
                             if constexpr (limits) g = limit.open(d * own_scale[k] + own_bias[k], g);
                             to[i] = g * scale[k] - d * slope[k] - offset[k];
                           }
                         };
                         write_run(dx + begin, n, streamed, write, dy + begin, x + begin);
                       });
  };
  if (limited != nullptr)
    run(std::true_type{});
  else
    run(std::false_type{});
}

template Moments channel_moments(const ChannelView&, bool, const float*);
template Moments channel_moments(const ChannelView&, bool, const double*);
template void channel_affine(const ChannelView&, bool, const float*, const Affine<float>&, const Bounds&,
                             float*, const float*);
template void channel_affine(const ChannelView&, bool, const double*, const Affine<double>&, const Bounds&,
                             double*, const double*);
template GradientSums channel_gradient_sums(const ChannelView&, bool, const float*, const float*,
                                            const std::vector<float>&, const LimitedAffine<float>*,
                                            const Opening<float>*);
template GradientSums channel_gradient_sums(const ChannelView&, bool, const double*, const double*,
                                            const std::vector<double>&, const LimitedAffine<double>*,
                                            const Opening<double>*);
template void channel_input_gradient(const ChannelView&, bool, const float*, const float*,
                                     const InputGradient<float>&, float*, const LimitedAffine<float>*);
template void channel_input_gradient(const ChannelView&, bool, const double*, const double*,
                                     const InputGradient<double>&, double*, const LimitedAffine<double>*);

}  // namespace pleat::ops
