// Private header: not installed.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "pleat/core/base/simd.h"

/// Winograd's minimal filtering F(m, r): m neighbouring results of a kernel of r = 2 or 3 taps from m + r - 1
/// products in place of r m. It is Toom and Cook's product of polynomials, by values at m + r - 2 points p
/// and at infinity (Lavin, Gray: "Fast algorithms for convolutional neural networks", CVPR 2016; the matrices
/// for any points: Barabasz et al.: "Error analysis and improving the accuracy of Winograd convolution", ACM
/// TOMS 2020):
///   source    t[p] = the coefficients of the product of (x - q) over all points q but p, times d
///   filter    u[p] = (g[0] + p g[1] + p^2 g[2]) / the product of (p - q) over the others
///   result    y[j] = the sum over p of p^j t[p] u[p]
/// and at infinity the coefficients of the product over all points, the last tap, the last result. The
/// gradient of the weight is F(r, m) of the same points: `source` as above, `gradient` e[p] = the sum of
/// p^j dy[j], and `weight_gradient` dw[i] = the sum over p of p^i t[p] e[p] / the product of (p - q).
///
/// The points of 3 taps are 0, 1, -1 for m = 2, and 0, +-1/sqrt(2), +-sqrt(2) for m = 4: pairs share their
/// even and odd parts, squares are exact, and errors are a third of those of the usual 0, +-1, +-2. Those of
/// 2 taps are 1, -1 for m = 2, and +-3/8, +-5/4 for m = 4, which is exact; errors are half of those of
/// 0, 1, -1, 1/2.
/// m = 1 stands for a dimension without a kernel. A transform takes `in` values and gives `out`, of any type
/// with arithmetic: here vectors of channels.

namespace pleat::ops::winograd {

template <int m, int r>
constexpr int window = m == 1 ? 1 : m + r - 1;
template <int m, int r>
constexpr int taps = m == 1 ? 1 : r;

/// Constants for vectors of float or double.
template <class V>
using Element = std::remove_cvref_t<decltype(V()[0])>;
template <class V>
constexpr Element<V> half = Element<V>(0.5);
template <class V>
constexpr Element<V> five_halves = Element<V>(2.5);
template <class V>
constexpr Element<V> root_half = Element<V>(0.70710678118654752440L);
template <class V>
constexpr Element<V> root_two = Element<V>(1.41421356237309504880L);

/// Values as they are: what m = 1 does.
template <int count>
struct Identity {
  static constexpr int in = count, out = count;
  template <class V>
  static void apply(const V* x, V* y) {
    std::copy_n(x, count, y);
  }
};
using Same = Identity<1>;

template <int m, int r>
struct Source : Same {};
template <int m, int r>
struct Filter : Same {};
template <int m, int r>
struct Result : Same {};
template <int m, int r>
struct Gradient : Same {};
template <int m, int r>
struct WeightGradient : Same {};

template <>
struct Source<2, 3> {
  static constexpr int in = 4, out = 4;
  template <class V>
  static void apply(const V* d, V* t) {
    t[0] = d[2] - d[0];
    t[1] = d[2] + d[1];
    t[2] = d[2] - d[1];
    t[3] = d[3] - d[1];
  }
};

template <>
struct Filter<2, 3> {
  static constexpr int in = 3, out = 4;
  template <class V>
  static void apply(const V* g, V* u) {
    const V even = half<V> * (g[0] + g[2]), odd = half<V> * g[1];
    u[0] = -g[0];
    u[1] = even + odd;
    u[2] = even - odd;
    u[3] = g[2];
  }
};

template <>
struct Result<2, 3> {
  static constexpr int in = 4, out = 2;
  template <class V>
  static void apply(const V* t, V* y) {
    y[0] = t[0] + (t[1] + t[2]);
    y[1] = t[3] + (t[1] - t[2]);
  }
};

template <>
struct Gradient<2, 3> {
  static constexpr int in = 2, out = 4;
  template <class V>
  static void apply(const V* dy, V* e) {
    e[0] = dy[0];
    e[1] = dy[0] + dy[1];
    e[2] = dy[0] - dy[1];
    e[3] = dy[1];
  }
};

template <>
struct WeightGradient<2, 3> {
  static constexpr int in = 4, out = 3;
  template <class V>
  static void apply(const V* t, V* dw) {
    const V even = half<V> * (t[1] + t[2]);
    dw[0] = even - t[0];
    dw[1] = half<V> * (t[1] - t[2]);
    dw[2] = even + t[3];
  }
};

template <>
struct Source<4, 3> {
  static constexpr int in = 6, out = 6;
  template <class V>
  static void apply(const V* d, V* t) {
    const V even = d[4] - 2 * d[2], odd = root_half<V> * (d[3] - 2 * d[1]);
    const V even2 = d[4] - half<V> * d[2], odd2 = root_two<V> * (d[3] - half<V> * d[1]);
    t[0] = (d[0] + d[4]) - five_halves<V> * d[2];
    t[1] = even + odd;
    t[2] = even - odd;
    t[3] = even2 + odd2;
    t[4] = even2 - odd2;
    t[5] = (d[1] + d[5]) - five_halves<V> * d[3];
  }
};

template <>
struct Filter<4, 3> {
  static constexpr int in = 3, out = 6;
  template <class V>
  static void apply(const V* g, V* u) {
    constexpr auto by1 = -2 / Element<V>(3), by2 = 1 / Element<V>(6);
    const V even = by1 * (g[0] + half<V> * g[2]), odd = by1 * root_half<V> * g[1];
    const V even2 = by2 * (g[0] + 2 * g[2]), odd2 = by2 * root_two<V> * g[1];
    u[0] = g[0];
    u[1] = even + odd;
    u[2] = even - odd;
    u[3] = even2 + odd2;
    u[4] = even2 - odd2;
    u[5] = g[2];
  }
};

template <>
struct Result<4, 3> {
  static constexpr int in = 6, out = 4;
  template <class V>
  static void apply(const V* t, V* y) {
    const V sum = t[1] + t[2], difference = root_half<V> * (t[1] - t[2]);
    const V sum2 = t[3] + t[4], difference2 = root_two<V> * (t[3] - t[4]);
    y[0] = (t[0] + sum) + sum2;
    y[1] = difference + difference2;
    y[2] = half<V> * sum + 2 * sum2;
    y[3] = (t[5] + half<V> * difference) + 2 * difference2;
  }
};

template <>
struct Gradient<4, 3> {
  static constexpr int in = 4, out = 6;
  template <class V>
  static void apply(const V* dy, V* e) {
    const V even = dy[0] + half<V> * dy[2], odd = root_half<V> * (dy[1] + half<V> * dy[3]);
    const V even2 = dy[0] + 2 * dy[2], odd2 = root_two<V> * (dy[1] + 2 * dy[3]);
    e[0] = dy[0];
    e[1] = even + odd;
    e[2] = even - odd;
    e[3] = even2 + odd2;
    e[4] = even2 - odd2;
    e[5] = dy[3];
  }
};

template <>
struct WeightGradient<4, 3> {
  static constexpr int in = 6, out = 3;
  template <class V>
  static void apply(const V* t, V* dw) {
    constexpr auto by1 = -2 / Element<V>(3), by2 = 1 / Element<V>(6);
    const V sum = by1 * (t[1] + t[2]), sum2 = by2 * (t[3] + t[4]);
    dw[0] = t[0] + (sum + sum2);
    dw[1] = by1 * root_half<V> * (t[1] - t[2]) + by2 * root_two<V> * (t[3] - t[4]);
    dw[2] = t[5] + (half<V> * sum + 2 * sum2);
  }
};

template <>
struct Source<2, 2> {
  static constexpr int in = 3, out = 3;
  template <class V>
  static void apply(const V* d, V* t) {
    t[0] = d[1] + d[0];
    t[1] = d[1] - d[0];
    t[2] = d[2] - d[0];
  }
};

template <>
struct Filter<2, 2> {
  static constexpr int in = 2, out = 3;
  template <class V>
  static void apply(const V* g, V* u) {
    const V even = half<V> * g[0], odd = half<V> * g[1];
    u[0] = odd + even;
    u[1] = odd - even;
    u[2] = g[1];
  }
};

template <>
struct Result<2, 2> {
  static constexpr int in = 3, out = 2;
  template <class V>
  static void apply(const V* t, V* y) {
    y[0] = t[0] + t[1];
    y[1] = t[2] + (t[0] - t[1]);
  }
};

template <>
struct Gradient<2, 2> {
  static constexpr int in = 2, out = 3;
  template <class V>
  static void apply(const V* dy, V* e) {
    e[0] = dy[0] + dy[1];
    e[1] = dy[0] - dy[1];
    e[2] = dy[1];
  }
};

template <>
struct WeightGradient<2, 2> {
  static constexpr int in = 3, out = 2;
  template <class V>
  static void apply(const V* t, V* dw) {
    dw[0] = half<V> * (t[0] - t[1]);
    dw[1] = t[2] + half<V> * (t[0] + t[1]);
  }
};

/// The points +-p and +-q of F(4, 2).
template <class E>
struct FourPoints {
  static constexpr E p = E(0.375), q = E(1.25), p2 = p * p, q2 = q * q;
  /// 1 / the products of p - the others, and of q.
  static constexpr E by_p = 1 / (2 * p * (p2 - q2)), by_q = 1 / (2 * q * (q2 - p2));
};

template <>
struct Source<4, 2> {
  static constexpr int in = 5, out = 5;
  template <class V>
  static void apply(const V* d, V* t) {
    using P = FourPoints<Element<V>>;
    const V even = d[3] - P::q2 * d[1], odd = P::p * (d[2] - P::q2 * d[0]);
    const V even2 = d[3] - P::p2 * d[1], odd2 = P::q * (d[2] - P::p2 * d[0]);
    t[0] = even + odd;
    t[1] = even - odd;
    t[2] = even2 + odd2;
    t[3] = even2 - odd2;
    t[4] = d[4] - (P::p2 + P::q2) * d[2] + P::p2 * P::q2 * d[0];
  }
};

template <>
struct Filter<4, 2> {
  static constexpr int in = 2, out = 5;
  template <class V>
  static void apply(const V* g, V* u) {
    using P = FourPoints<Element<V>>;
    const V even = P::by_p * g[0], odd = P::by_p * P::p * g[1];
    const V even2 = P::by_q * g[0], odd2 = P::by_q * P::q * g[1];
    u[0] = odd + even;
    u[1] = odd - even;
    u[2] = odd2 + even2;
    u[3] = odd2 - even2;
    u[4] = g[1];
  }
};

template <>
struct Result<4, 2> {
  static constexpr int in = 5, out = 4;
  template <class V>
  static void apply(const V* t, V* y) {
    using P = FourPoints<Element<V>>;
    const V sum = t[0] + t[1], difference = P::p * (t[0] - t[1]);
    const V sum2 = t[2] + t[3], difference2 = P::q * (t[2] - t[3]);
    y[0] = sum + sum2;
    y[1] = difference + difference2;
    y[2] = P::p2 * sum + P::q2 * sum2;
    y[3] = (t[4] + P::p2 * difference) + P::q2 * difference2;
  }
};

template <>
struct Gradient<4, 2> {
  static constexpr int in = 4, out = 5;
  template <class V>
  static void apply(const V* dy, V* e) {
    using P = FourPoints<Element<V>>;
    const V even = dy[0] + P::p2 * dy[2], odd = P::p * (dy[1] + P::p2 * dy[3]);
    const V even2 = dy[0] + P::q2 * dy[2], odd2 = P::q * (dy[1] + P::q2 * dy[3]);
    e[0] = even + odd;
    e[1] = even - odd;
    e[2] = even2 + odd2;
    e[3] = even2 - odd2;
    e[4] = dy[3];
  }
};

template <>
struct WeightGradient<4, 2> {
  static constexpr int in = 5, out = 2;
  template <class V>
  static void apply(const V* t, V* dw) {
    using P = FourPoints<Element<V>>;
    dw[0] = P::by_p * (t[0] - t[1]) + P::by_q * (t[2] - t[3]);
    dw[1] = (t[4] + P::by_p * P::p * (t[0] + t[1])) + P::by_q * P::q * (t[2] + t[3]);
  }
};

/// The transform A of the first dimension and B of the second, of values load(i, j), to store(i, j, value).
template <class V, class A, class B, class Load, class Store>
[[gnu::always_inline]] inline void transform(const Load& load, const Store& store) {
  V columns[A::out][B::in];
#pragma GCC unroll 8
  for (int j = 0; j < B::in; ++j) {
    V from[A::in], to[A::out];
#pragma GCC unroll 8
    for (int i = 0; i < A::in; ++i) from[i] = load(i, j);
    A::apply(from, to);
#pragma GCC unroll 8
    for (int i = 0; i < A::out; ++i) columns[i][j] = to[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < A::out; ++i) {
    V to[B::out];
    B::apply(columns[i], to);
#pragma GCC unroll 8
    for (int j = 0; j < B::out; ++j) store(i, j, to[j]);
  }
}

/// The bits of |values|, which as integers are in the order of the numbers; NaN comes last.
template <class T>
using Bits = simd::Vector<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
template <class T>
[[gnu::always_inline]] inline Bits<T> bits_of_magnitude(const simd::Vector<T>& values) {
  return reinterpret_cast<Bits<T>>(values) & std::numeric_limits<Element<Bits<T>>>::max();
}
template <class V>
[[gnu::always_inline]] inline V larger(const V& a, const V& b) {
  return a > b ? a : b;
}

/// The elements of a vector in `count` by f(a, b) of vectors: of its halves again and again.
template <std::size_t count, class V, class F>
[[gnu::always_inline]] inline auto fold(const V& vector, const F& f) {
  constexpr std::size_t half_count = sizeof(V) / sizeof(Element<V>) / 2;
  if constexpr (half_count < count) {
    return vector;
  } else {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return fold<count>(f(__builtin_shufflevector(vector, vector, i...),
                           __builtin_shufflevector(vector, vector, (i + half_count)...)),
                         f);
    }
    (std::make_index_sequence<half_count>());
  }
}

/// The largest of |values|; NaN if one is.
template <class T>
class Largest {
 public:
  void add(const simd::Vector<T>& values) { bits_ = larger(bits_, bits_of_magnitude<T>(values)); }
  double value() const {
    return static_cast<double>(
        std::bit_cast<T>(fold<1>(bits_, [](const auto& a, const auto& b) { return larger(a, b); })[0]));
  }
  /// Of sums of squares: no value is larger. Squares below 1e-30 may have been lost.
  double root() const { return std::sqrt(std::max(value(), 1e-30)); }

 private:
  Bits<T> bits_{};
};

/// The same of a tile's pixels, channel by channel: point i to `to` + i `point`. Channels are a vector at
/// least, of which the last may overlap the one before. `read(pixel, c, value)` reads those from c on.
template <class A, class B, class T, class Read>
void transform_pixels(const T* const (&pixels)[A::in][B::in], int64_t channels, T* to, int64_t point,
                      const Read& read) {
  using V = simd::Vector<T>;
  for (int64_t i = 0; i < channels; i += simd::lanes<T>) {
    const int64_t c = std::min(i, channels - simd::lanes<T>);
    transform<V, A, B>(
        [&](int a, int b) {
          V value;
          read(pixels[a][b], c, value);
          return value;
        },
        [&](int a, int b, const V& value) { simd::store(to + (a * B::out + b) * point + c, value); });
  }
}

/// Whether point i of a transform A is among those that tell how large its values are: together they are 0,
/// or small beside the values, only where these are.
template <class A>
constexpr bool tells_size(int i) {
  return A::out <= 4 || i <= 1 || i == A::out - 1;
}

/// Adds the sum of the squares of what tells_size of a transformed tile, lane by lane, times `scale(c)` of
/// the channels from c on: a few numbers that have just been written, where those read would cost more.
template <class A, class B, class T, class Scale>
void add_squares(const T* tile, int64_t channels, int64_t point, const Scale& scale,
                 Largest<T>& squares_of_tiles) {
  simd::Vector<T> squares{};
  for (int64_t i = 0; i < channels; i += simd::lanes<T>) {
    const int64_t c = std::min(i, channels - simd::lanes<T>);
    simd::Vector<T> of_channels{};
    for (int a = 0; a < A::out; ++a)
      for (int b = 0; b < B::out; ++b)
        if (tells_size<A>(a) && tells_size<B>(b)) {
          const auto value = simd::load(tile + (a * B::out + b) * point + c);
          of_channels += value * value;
        }
    squares += of_channels * scale(c);
  }
  squares_of_tiles.add(squares);
}

/// The sum of |x| of some pixels, from one on, of the channels from c on.
template <int height, int width, class T, int rows, int columns, class Read>
[[gnu::always_inline]] inline simd::Vector<T> magnitudes(const T* const (&pixels)[rows][columns], int64_t row,
                                                         int64_t column, int64_t c, const Read& read) {
  simd::Vector<T> sum{};
  for (int i = 0; i < height; ++i)
    for (int j = 0; j < width; ++j) {
      simd::Vector<T> value;
      read(pixels[row + i][column + j], c, value);
      sum += reinterpret_cast<simd::Vector<T>>(bits_of_magnitude<T>(value));
    }
  return sum;
}

template <class V>
[[gnu::always_inline]] inline Element<V> sum_of_lanes(const V& vector) {
  return fold<1>(vector, [](const auto& a, const auto& b) { return a + b; })[0];
}

/// Twice the least sum of half of the lanes of a vector, of four: at most the sum of one, which a single
/// channel that is larger than all others does not make large.
template <class V>
[[gnu::always_inline]] inline Element<V> least_of_halves(const V (&vectors)[4]) {
  using T = Element<V>;
  const auto sum = [](const auto& a, const auto& b) { return a + b; };
  const auto smaller = [](const auto& a, const auto& b) { return a < b ? a : b; };
  // a[0], b[0], a[1], b[1] ... of half of the lanes, and of the other half.
  V ab, ab_upper, cd, cd_upper;
  simd::interleave<T>(vectors[0], vectors[1], ab, ab_upper);
  simd::interleave<T>(vectors[2], vectors[3], cd, cd_upper);
  if constexpr (simd::lanes<T> < 4)
    return 2 * fold<1>(smaller(smaller(ab, ab_upper), smaller(cd, cd_upper)), smaller)[0];
  else  // sums of a, b, a, b
    return 2 * fold<1>(smaller(fold<4>(ab + ab_upper, sum), fold<4>(cd + cd_upper, sum)), smaller)[0];
}

}  // namespace pleat::ops::winograd
