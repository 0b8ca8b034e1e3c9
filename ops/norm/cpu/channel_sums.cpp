#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>

#include <Eigen/Core>

#include "pleat/core/memory/allocate_array.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/bfloat16_vector.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/norm/cpu/channel_kernels.h"
#include "pleat/ops/norm/cpu/channel_tiling.h"

/// The sums of channel_kernels.h.

namespace pleat::ops {
namespace {

using namespace channels;

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
template <int L>
Lanes<float, L> load(const BFloat16* from) {
  constexpr int bytes = std::min<int>(64, L * sizeof(float)), step = bytes / sizeof(float);
  Lanes<float, L> lanes;
  for (int i = 0; i < L; i += step) simd::store<bytes>(lanes.data() + i, simd::load_floats<bytes>(from + i));
  return lanes;
}
template <int L, class T>
auto store(T* to) {
  return Eigen::Map<Lanes<T, L>>(to);
}

/// Fetches the cache lines of L elements.
template <int L, class T>
[[gnu::always_inline]] inline void fetch(const T* from) {
  for (int i = 0; i < L; i += 64 / static_cast<int>(sizeof(T))) __builtin_prefetch(from + i);
}

/// Terms of the sums: `at_lane<L>(lane)` gives a function that adds those of L elements from index `at` on to
/// `sums`.
template <class S, class T = Computed<S>>
struct PlainTerms {
  const S* x;
  template <int L>
  void fetch_lanes(int64_t at) const {
    fetch<L>(x + at);
  }
  template <int L>
  auto at_lane(int64_t) const {
    return [x = x](int64_t at, std::array<Lanes<T, L>, 1>& sums) { sums[0] += load<L>(x + at); };
  }
};

template <class S, class T = Computed<S>>
struct ShiftedTerms {
  const S* x;
  const T* shift;  ///< of each lane
  template <int L>
  void fetch_lanes(int64_t) const {}  // PlainTerms have read them
  template <int L>
  auto at_lane(int64_t lane) const {
    return [x = x, pivot = Lanes<T, L>(load<L>(shift + lane))](int64_t at, std::array<Lanes<T, L>, 2>& sums) {
      const Lanes<T, L> d = load<L>(x + at) - pivot;
      sums[0] += d;
      sums[1] += d * d;
    };
  }
};

template <class S, class T = Computed<S>>
struct GradientTerms {
  const S* dy;
  const S* x;
  const T* shift;  ///< of each lane
  template <int L>
  void fetch_lanes(int64_t at) const {
    fetch<L>(dy + at), fetch<L>(x + at);
  }
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
template <class S, class T = Computed<S>>
struct OpenGradientTerms {
  Limit<T> limit;
  const S* dy;
  const S* x;
  const T* shift;  ///< of each lane, as are scale and bias
  const T* scale;
  const T* bias;
  template <int L>
  void fetch_lanes(int64_t at) const {
    fetch<L>(dy + at), fetch<L>(x + at);
  }
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
      for (int64_t r = first; r < last; ++r) {
        const int64_t at = begin + r * lanes + lane;
        terms.template fetch_lanes<L>(at + together * lanes);
        add(at, own);
      }
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

  Elements(int64_t first, int64_t n) : begin(first), count(n) {}
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

/// A piece of an array as terms read it, from its first element on.
template <class S>
class Own {
 public:
  Own(const S* from, const Elements& of) {
    if constexpr (std::is_same_v<S, Read<S>>) {
      data_ = from + of.begin;
    } else {
      copy_ = allocate_array<Read<S>>(of.count);
      convert_array(copy_.get(), from + of.begin, of.count);
      data_ = copy_.get();
    }
  }
  const Read<S>* data() const { return data_; }

 private:
  std::shared_ptr<Read<S>> copy_;
  const Read<S>* data_;
};

/// Adds the terms of all elements of a piece, counted from its first, to sums[k][lane].
template <class T, std::size_t K, class Terms>
void add_piece(const Tiling& tiling, const Piece& piece, const std::array<T*, K>& sums, const Terms& terms) {
  const ChannelView& view = tiling.view;
  if (tiling.order == LaneOrder::planes) {
    int64_t at = 0;
    for (int64_t n = piece.first_image; n < piece.last_image; ++n)
      for (int64_t c = 0; c < view.channels; ++c, at += view.pixels)
        add_plane<T, K>(at, view.pixels, c * plane_lanes, sums, terms);
    return;
  }
  const int64_t n = Elements(tiling, piece).count;
  const int64_t rows = n / piece.lanes;
  add_rows<T, K>(0, rows, piece.lanes, sums, terms);
  // What is left belongs to the first lanes.
  add_rows<T, K>(rows * piece.lanes, 1, n - rows * piece.lanes, sums, terms);
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

template <class S>
Moments channel_moments(const ChannelView& view, bool per_image, const S* x) {
  using T = Computed<S>;
  const Tiling tiling(view, per_image);
  Partials parts(tiling.tiles(), view.channels);
  for_pieces<T>(tiling, 3, [&](const Piece& piece, T* scratch) {
    T* pivot = scratch;
    T* sum = scratch + piece.lanes;
    T* square = scratch + 2 * piece.lanes;
    const Own<S> own(x, Elements(tiling, piece));
    add_piece<T, 1>(tiling, piece, {pivot}, PlainTerms<Read<S>>{own.data()});
    fold(tiling, piece, pivot);
    const auto n = static_cast<double>(piece.values());
    for (int64_t c = 0; c < piece.channels; ++c) pivot[c] /= static_cast<T>(n);
    spread(tiling, piece, pivot);
    add_piece<T, 2>(tiling, piece, {sum, square}, ShiftedTerms<Read<S>>{own.data(), pivot});
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

template <class S>
void write_open(const Elements& of, const S* dy, const Opening<S>& opening) {
  using T = Computed<S>;
  const Limit<T> limit = opening.limit;
  const S* more = opening.more_dy;
  for (int64_t first = 0; first < of.count; first += page_elements) {
    const Elements part{of.begin + first, std::min(page_elements, of.count - first)};
    const Own<S> gradients(dy, part), results(opening.y, part), others(more != nullptr ? more : dy, part);
    const auto* __restrict gradient = gradients.data();
    const auto* __restrict y = results.data();
    const auto* __restrict other = others.data();
    const auto open = [&]<class To>(To* __restrict to) {
      const auto opened = [&](int64_t i, T g) { return convert<To>(limit.open(convert<T>(y[i]), g)); };
      if (more == nullptr)
        for (int64_t i = 0; i < part.count; ++i) to[i] = opened(i, convert<T>(gradient[i]));
      else
        for (int64_t i = 0; i < part.count; ++i)
          to[i] = opened(i, convert<T>(gradient[i]) + convert<T>(other[i]));
    };
    if constexpr (std::is_same_v<S, Read<S>>) {
      open(opening.open + part.begin);
    } else {
      T buffer[page_elements];
      open(buffer);
      convert_array(opening.open + part.begin, buffer, part.count);
    }
  }
}

}  // namespace

template <class S>
GradientSums channel_gradient_sums(const ChannelView& view, bool per_image, const S* dy, const S* x,
                                   const std::vector<Computed<S>>& shift,
                                   const LimitedAffine<Computed<S>>* limited, const Opening<S>* opening) {
  using T = Computed<S>;
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
    const Elements elements(tiling, piece);
    if (opening != nullptr) write_open(elements, dy, *opening);
    const Own<S> gradient(opening != nullptr ? opening->open : dy, elements), input(x, elements);
    if (limited != nullptr) {
      T* scale = scratch + 3 * piece.lanes;
      T* bias = scratch + 4 * piece.lanes;
      give(limited->numbers.scale, scale);
      give(limited->numbers.bias, bias);
      add_piece<T, 2>(
          tiling, piece, {sum, product},
          OpenGradientTerms<Read<S>>{limited->limit, gradient.data(), input.data(), pivot, scale, bias});
    } else {
      add_piece<T, 2>(tiling, piece, {sum, product},
                      GradientTerms<Read<S>>{gradient.data(), input.data(), pivot});
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

#define PLEAT_CHANNEL_SUMS(S)                                                               \
  template Moments channel_moments(const ChannelView&, bool, const S*);                     \
  template GradientSums channel_gradient_sums(const ChannelView&, bool, const S*, const S*, \
                                              const std::vector<Computed<S>>&,              \
                                              const LimitedAffine<Computed<S>>*, const Opening<S>*);
PLEAT_CHANNEL_SUMS(float)
PLEAT_CHANNEL_SUMS(double)
PLEAT_CHANNEL_SUMS(Half)
PLEAT_CHANNEL_SUMS(BFloat16)

}  // namespace pleat::ops
