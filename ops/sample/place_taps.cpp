// Host and device.
#include "pleat/ops/sample/place_taps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"

namespace pleat::ops {
namespace {

template <GridMode mode>
constexpr int taps_of = mode == GridMode::nearest  ? 1
                        : mode == GridMode::linear ? 2
                                                   : 4;

/// A place in pixels, and how it moves with the coordinate.
template <class T>
struct Place {
  T at, slope;
};

template <class T>
PLEAT_HOST_DEVICE Place<T> clamped(Place<T> place, T low, T high) {
  const T above_low = place.at < low ? low : place.at;
  const T at = above_low > high ? high : above_low;
  return {at, at == place.at ? place.slope : T(0)};
}

/// One spatial dimension of an image.
template <class T>
struct PlaceLine {
  T size;
  T scale, shift;   ///< of coordinates, in pixels
  T low, span;      ///< where reflection begins, and how far it is to the other end
  T minus, factor;  ///< then less this, times that

  PlaceLine() = default;
  PlaceLine(int64_t pixels, const PlaceRule& rule) : size(static_cast<T>(pixels)) {
    low = rule.align_corners ? T(0) : T(-0.5);
    span = rule.align_corners ? size - 1 : size;
    const bool edges = !rule.in_pixels && !rule.align_corners;
    minus = edges ? T(1) : T(0);
    factor = edges ? T(0.5) : T(1);
    scale = rule.in_pixels ? T(1) : rule.align_corners ? (size - 1) / 2 : size;
    shift = rule.in_pixels ? T(0) : T(1);
  }

  /// In pixels.
  PLEAT_HOST_DEVICE Place<T> place(T coordinate) const {
    return {((coordinate + shift) * scale - minus) * factor, scale * factor};
  }

  /// Within the image but for zeros. Far beyond the image every place is as good as another.
  template <GridPadding padding>
  PLEAT_HOST_DEVICE Place<T> padded(Place<T> place) const {
    const T last = size - 1;
    if constexpr (padding == GridPadding::zeros) return clamped(place, T(-3), last + 3);
    if constexpr (padding == GridPadding::border) return clamped(place, T(0), last);
    if (span == 0) return {place.at * 0, T(0)};
    const T from_low = place.at - low;
    const T distance = std::abs(from_low);
    const T flips = std::floor(distance / span);
    const T rest = distance - flips * span;
    const bool is_even = flips - 2 * std::floor(flips / 2) == 0;
    const T sign = from_low > 0 ? T(1) : from_low < 0 ? T(-1) : T(0);
    return clamped(Place<T>{(is_even ? rest : span - rest) + low, place.slope * (is_even ? sign : -sign)},
                   T(0), last);
  }
};

/// A pixel of one dimension, what it weighs, and how that moves with the coordinate.
template <class T>
struct LineTap {
  T pixel;  ///< a whole number in the image; not yet an integer, which would keep loops from vectors
  T weight, slope;
};

/// Without branches, so that loops become vector instructions. Times 0, NaN stays.
template <class T>
PLEAT_HOST_DEVICE LineTap<T> line_tap(const PlaceLine<T>& line, T pixel, T weight, T slope) {
  const T last = line.size - 1;
  const T inside = pixel < last ? pixel : last;
  const T keep = (pixel >= 0 ? T(1) : T(0)) * (pixel <= last ? T(1) : T(0));
  return {inside > 0 ? inside : T(0), weight * keep, slope * keep};
}

/// Calls `f` with the padding as a constant.
template <class F>
PLEAT_HOST_DEVICE void with_padding(GridPadding padding, const F& f) {
  if (padding == GridPadding::zeros) return f(std::integral_constant<GridPadding, GridPadding::zeros>());
  if (padding == GridPadding::border) return f(std::integral_constant<GridPadding, GridPadding::border>());
  f(std::integral_constant<GridPadding, GridPadding::reflection>());
}

/// Calls `f(k, tap)` for the taps of a coordinate.
template <GridMode mode, GridPadding padding, class T, class F>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline void for_each_tap(const PlaceLine<T>& line, T coordinate,
                                                                  const F& f) {
  const Place<T> anywhere = line.place(coordinate);
  if constexpr (mode == GridMode::nearest) {
    const T place = line.template padded<padding>(anywhere).at;
    f(0, line_tap(line, std::nearbyint(place), place * 0 + 1, T(0)));
  } else if constexpr (mode == GridMode::linear) {
    const Place<T> place = line.template padded<padding>(anywhere);
    const T low = std::floor(place.at);
    f(0, line_tap(line, low, 1 - (place.at - low), -place.slope));
    f(1, line_tap(line, low + 1, place.at - low, place.slope));
  } else {
    const Place<T> place = padding == GridPadding::zeros ? line.template padded<padding>(anywhere) : anywhere;
    const T low = std::floor(place.at);
    const T t = place.at - low;
    constexpr T a = T(-0.75);
    const auto close = [](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [](T d) { return ((d - 5) * d + 8) * d * a - 4 * a; };
    const auto close_slope = [](T d) { return (3 * (a + 2) * d - 2 * (a + 3)) * d; };
    const auto far_slope = [](T d) { return ((3 * d - 10) * d + 8) * a; };
    const auto tap = [&](int k, T weight, T slope) {
      T pixel = low + T(k - 1);
      if constexpr (padding != GridPadding::zeros)
        pixel = line.template padded<padding>(Place<T>{pixel, T(0)}).at;
      f(k, line_tap(line, pixel, weight, slope * place.slope));
    };
    tap(0, far(t + 1), far_slope(t + 1));
    tap(1, close(t), close_slope(t));
    tap(2, close(1 - t), -close_slope(1 - t));
    tap(3, far(2 - t), -far_slope(2 - t));
  }
}

/// What the functors have in common.
template <class T, int dims>
struct Places {
  PlaceLine<T> line[dims];
  int32_t step[dims];  ///< of the image's planes, in pixels
  GridPadding padding;
  FastDivider points;
  const T* places;

  Places(const Tensor& tensor, const PlaceRule& rule)
      : padding(rule.padding), points(tensor.size(1)), places(tensor.data<T>()) {
    int64_t pixels = 1;
    for (int d = dims; d-- > 0;) {
      const int64_t size = rule.sizes[static_cast<std::size_t>(d)];
      line[d] = PlaceLine<T>(size, rule);
      step[d] = static_cast<int32_t>(pixels);
      pixels *= size;
    }
  }
};

/// Taps of one dimension of neighbouring points, on the CPU: plain loops, which become vector instructions.
template <class T, int count>
struct TapLines {
  static constexpr int64_t points = 128;
  T pixel[count][points], weight[count][points], slope[count][points];

  template <GridMode mode, GridPadding padding>
  [[gnu::noinline]] void fill(const PlaceLine<T>& given, const T (&coordinates)[points], int64_t n) {
    const PlaceLine<T> line = given;
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t p = 0; p < n; ++p) {
      for_each_tap<mode, padding>(line, coordinates[p], [&](int k, const LineTap<T>& tap) {
        pixel[k][p] = tap.pixel;
        weight[k][p] = tap.weight;
        slope[k][p] = tap.slope;
      });
    }
  }
};

/// Those of all dimensions.
template <class T, int dims, GridMode mode>
struct TapBlock {
  using Lines = TapLines<T, taps_of<mode>>;
  Lines line[dims];

  void fill(const Places<T, dims>& at, int64_t first, int64_t n) {
    for (int d = 0; d < dims; ++d) {
      const T* const places = at.places + first * dims + dims - 1 - d;
      T coordinates[Lines::points];
      for (int64_t p = 0; p < n; ++p) coordinates[p] = places[p * dims];
      with_padding(at.padding,
                   [&](auto padding) { line[d].template fill<mode, padding()>(at.line[d], coordinates, n); });
    }
  }
};

/// Calls `f(map, point, n)` for the pieces of n neighbouring points that first ... last - 1 have.
template <class F>
void for_each_piece(int64_t points, int64_t longest, int64_t first, int64_t last, const F& f) {
  while (first < last) {
    const int64_t p = first % points;
    const int64_t n = std::min({longest, points - p, last - first});
    f(first / points, p, n);
    first += n;
  }
}

/// The taps of a point, of which each line has `count`.
template <int dims, int count>
inline constexpr int all_taps = dims == 2 ? count* count : count* count* count;

/// The line's tap of dimension d that tap t of all is made of. Without a loop: a GPU has the taps in
/// registers, which only constants can choose.
template <int dims, int count>
PLEAT_HOST_DEVICE int tap_of(int t, int d) {
  const int after = dims - 1 - d;  // dimensions
  return t / (after == 0 ? 1 : after == 1 ? count : count * count) % count;
}

template <class T, int dims, GridMode mode>
struct MakeTaps {
  Places<T, dims> at;
  int32_t* index;
  T* weight;

  /// Point p of map m.
  PLEAT_HOST_DEVICE void point(int64_t m, int64_t p) const {
    constexpr int count = taps_of<mode>;
    constexpr int all = all_taps<dims, count>;
    const int64_t points = at.points.divisor();
    const T* const place = at.places + (m * points + p) * dims;
    LineTap<T> taps[dims][count];
    PLEAT_UNROLL
    for (int d = 0; d < dims; ++d)
      with_padding(at.padding, [&](auto padding) {
        for_each_tap<mode, padding()>(at.line[d], place[dims - 1 - d],
                                      [&](int k, const LineTap<T>& tap) { taps[d][k] = tap; });
      });
    int32_t* const to = index + m * all * points + p;
    T* const w = weight + m * all * points + p;
    PLEAT_UNROLL
    for (int t = 0; t < all; ++t) {
      int32_t pixel = 0;
      T product = 1;
      PLEAT_UNROLL
      for (int d = 0; d < dims; ++d) {
        const int k = tap_of<dims, count>(t, d);
        pixel += static_cast<int32_t>(taps[d][k].pixel) * at.step[d];
        product *= taps[d][k].weight;
      }
      to[t * points] = pixel;
      w[t * points] = product;
    }
  }
  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t p = i;
    const int64_t m = at.points.divide(p);
    point(m, p);
  }
  void run(int64_t first, int64_t last) const {
    constexpr int count = taps_of<mode>;
    constexpr int all = all_taps<dims, count>;
    const int64_t points = at.points.divisor();
    TapBlock<T, dims, mode> block;
    for_each_piece(points, block.line[0].points, first, last, [&](int64_t m, int64_t p, int64_t n) {
      block.fill(at, m * points + p, n);
      for (int t = 0; t < all; ++t) {
        int32_t* const to = index + (m * all + t) * points + p;
        T* const w = weight + (m * all + t) * points + p;
        const int outer = tap_of<dims, count>(t, 0);
        PLEAT_INDEPENDENT_ITERATIONS
        for (int64_t i = 0; i < n; ++i) {
          to[i] = static_cast<int32_t>(block.line[0].pixel[outer][i]) * at.step[0];
          w[i] = block.line[0].weight[outer][i];
        }
        for (int d = 1; d < dims; ++d) {
          const int k = tap_of<dims, count>(t, d);
          PLEAT_INDEPENDENT_ITERATIONS
          for (int64_t i = 0; i < n; ++i) {
            to[i] += static_cast<int32_t>(block.line[d].pixel[k][i]) * at.step[d];
            w[i] *= block.line[d].weight[k][i];
          }
        }
      }
    });
  }
};

template <class T, int dims, GridMode mode>
struct TapsBackward {
  Places<T, dims> at;
  const T* dweight;
  T* dplaces;

  PLEAT_HOST_DEVICE void point(int64_t m, int64_t p) const {
    constexpr int count = taps_of<mode>;
    constexpr int all = all_taps<dims, count>;
    const int64_t points = at.points.divisor();
    const int64_t start = (m * points + p) * dims;
    LineTap<T> taps[dims][count];
    PLEAT_UNROLL
    for (int d = 0; d < dims; ++d)
      with_padding(at.padding, [&](auto padding) {
        for_each_tap<mode, padding()>(at.line[d], at.places[start + dims - 1 - d],
                                      [&](int k, const LineTap<T>& tap) { taps[d][k] = tap; });
      });
    const T* const from = dweight + m * all * points + p;
    T sum[dims] = {};
    PLEAT_UNROLL
    for (int t = 0; t < all; ++t) PLEAT_UNROLL
    for (int e = 0; e < dims; ++e) {
      T product = from[t * points];
      PLEAT_UNROLL
      for (int d = 0; d < dims; ++d) {
        const int k = tap_of<dims, count>(t, d);
        product *= d == e ? taps[d][k].slope : taps[d][k].weight;
      }
      sum[e] += product;
    }
    PLEAT_UNROLL
    for (int d = 0; d < dims; ++d) dplaces[start + dims - 1 - d] = sum[d];
  }
  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t p = i;
    const int64_t m = at.points.divide(p);
    point(m, p);
  }
  void run(int64_t first, int64_t last) const {
    constexpr int count = taps_of<mode>;
    constexpr int all = all_taps<dims, count>;
    const int64_t points = at.points.divisor();
    TapBlock<T, dims, mode> block;
    for_each_piece(points, block.line[0].points, first, last, [&](int64_t m, int64_t p, int64_t n) {
      block.fill(at, m * points + p, n);
      const T* const from = dweight + m * all * points + p;
      for (int e = 0; e < dims; ++e) {
        T sum[block.line[0].points] = {};
        for (int t = 0; t < all; ++t) {
          const T* line[dims];
          for (int d = 0; d < dims; ++d) {
            const int k = tap_of<dims, count>(t, d);
            line[d] = d == e ? block.line[d].slope[k] : block.line[d].weight[k];
          }
          const T* const tap = from + t * points;
          PLEAT_INDEPENDENT_ITERATIONS
          for (int64_t i = 0; i < n; ++i) {
            T product = tap[i] * line[0][i] * line[1][i];
            if constexpr (dims == 3) product *= line[2][i];
            sum[i] += product;
          }
        }
        T* const to = dplaces + (m * points + p) * dims + dims - 1 - e;
        for (int64_t i = 0; i < n; ++i) to[i * dims] = sum[i];
      }
    });
  }
};

/// Calls `f` with constants for dims and mode.
template <class F>
void dispatch_rule(const PlaceRule& rule, const F& f) {
  const bool flat = rule.sizes.size() == 2;
  switch (rule.mode) {
    case GridMode::nearest:
      return flat ? f.template operator()<2, GridMode::nearest>()
                  : f.template operator()<3, GridMode::nearest>();
    case GridMode::linear:
      return flat ? f.template operator()<2, GridMode::linear>()
                  : f.template operator()<3, GridMode::linear>();
    case GridMode::cubic:
      return f.template operator()<2, GridMode::cubic>();
  }
}

int64_t number_of_taps(const PlaceRule& rule) {
  const int64_t line = rule.mode == GridMode::nearest ? 1 : rule.mode == GridMode::linear ? 2 : 4;
  return rule.sizes.size() == 2 ? line * line : line * line * line;
}

}  // namespace

PlaceTaps place_taps(const char* op, const Tensor& places, const PlaceRule& rule) {
  const RecordOp range("place_taps", places);
  const Shape shape{places.size(0), number_of_taps(rule), places.size(1)};
  const PlaceTaps taps{empty(shape, {.dtype = int32, .device = places.device()}),
                       empty(shape, {.dtype = places.dtype(), .device = places.device()})};
  if (places.numel() == 0) return taps;
  Floating::dispatch(places.dtype(), [&]<class T>(Type<T>) {
    dispatch_rule(rule, [&]<int dims, GridMode mode>() {
      for_each_index(op, places.device(), shape[0] * shape[2],
                     MakeTaps<T, dims, mode>{Places<T, dims>(places, rule), taps.index.data<int32_t>(),
                                             taps.weight.data<T>()});
    });
  });
  return taps;
}

Tensor place_taps_backward(const char* op, const Tensor& dweight, const Tensor& places,
                           const PlaceRule& rule) {
  const RecordOp range("place_taps", "_backward", dweight, places);
  const Tensor result = empty(places.shape(), {.dtype = places.dtype(), .device = places.device()});
  if (places.numel() == 0) return result;
  const Tensor from = to_format(dweight, MemoryFormat::contiguous);
  Floating::dispatch(places.dtype(), [&]<class T>(Type<T>) {
    dispatch_rule(rule, [&]<int dims, GridMode mode>() {
      for_each_index(
          op, places.device(), places.size(0) * places.size(1),
          TapsBackward<T, dims, mode>{Places<T, dims>(places, rule), from.data<T>(), result.data<T>()});
    });
  });
  return result;
}

}  // namespace pleat::ops
