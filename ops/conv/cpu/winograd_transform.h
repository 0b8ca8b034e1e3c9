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

/// The type of a vector's elements.
template <class V>
using Element = std::remove_cvref_t<decltype(V()[0])>;

/// Values as they are: what m = 1 does.
template <int count>
struct Identity {
  static constexpr int in = count, out = count;
  template <class V>
  static void apply(const V* x, V* y) {
    std::copy_n(x, count, y);
  }
};

/// The points of F(m, r) but for infinity: m / 2 pairs +-p with their squares, and 0 or not. Transformed
/// values are in this order: that at 0, those at p, -p, q, -q, that at infinity.
template <class E, int m, int r>
struct Points;
template <class E>
struct Points<E, 2, 3> {
  static constexpr int zero = 1;
  static constexpr E p[1] = {1}, squares[1] = {1};
};
template <class E>
struct Points<E, 4, 3> {
  static constexpr int zero = 1;
  static constexpr E p[2] = {E(0.70710678118654752440L), E(1.41421356237309504880L)}, squares[2] = {0.5, 2};
};
template <class E>
struct Points<E, 2, 2> {
  static constexpr int zero = 0;
  static constexpr E p[1] = {1}, squares[1] = {1};
};
template <class E>
struct Points<E, 4, 2> {
  static constexpr int zero = 0;
  static constexpr E p[2] = {0.375, 1.25}, squares[2] = {0.140625, 1.5625};
};

/// What the transforms of F(m, r) have in common.
template <int m, int r>
struct ByPoints {
  static constexpr int pairs = m / 2, values = m + r - 1;
  template <class E>
  using P = Points<E, m, r>;

  /// 1 / the product of p - q over all other points q, of pair k; that of -p has the other sign where 0 is no
  /// point.
  template <class E>
  static constexpr E scale(int k) {
    E product = 2 * (P<E>::zero ? P<E>::squares[k] : P<E>::p[k]);
    for (int i = 0; i < pairs; ++i)
      if (i != k) product *= P<E>::squares[k] - P<E>::squares[i];
    return 1 / product;
  }
  /// The same of 0.
  template <class E>
  static constexpr E scale_of_zero() {
    E product = 1;
    for (int i = 0; i < pairs; ++i) product *= -P<E>::squares[i];
    return 1 / product;
  }
};

/// The values of the polynomial x[0] + x[1] p + ... of `count` terms at the points, scaled or not.
template <int m, int r, int count, bool scaled>
struct Evaluate : ByPoints<m, r> {
  using Base = ByPoints<m, r>;
  static constexpr int in = count, out = Base::values;
  template <class V>
  [[gnu::always_inline]] static void apply(const V* x, V* y) {
    using E = Element<V>;
    using P = Points<E, m, r>;
    if constexpr (P::zero == 1) {
      constexpr E scale = scaled ? Base::template scale_of_zero<E>() : 1;
      y[0] = scale * x[0];
    }
    simd::for_constants<Base::pairs>([&](auto k) {
      constexpr E scale = scaled ? Base::template scale<E>(k) : 1;
      constexpr E odd_scale = scale * P::p[k], square = P::squares[k];
      V even = x[0], odd = x[1];
      if constexpr (count > 2) even += square * x[2];
      if constexpr (count > 3) odd += square * x[3];
      even = scale * even;
      odd = odd_scale * odd;
      y[P::zero + 2 * k] = even + odd;
      y[P::zero + 2 * k + 1] = scaled && P::zero == 0 ? odd - even : even - odd;
    });
    y[out - 1] = x[count - 1];
  }
};

/// The transposed: y[j] = the sum over the points p of p^j t[p], scaled or not, `count` of them.
template <int m, int r, int count, bool scaled>
struct Interpolate : ByPoints<m, r> {
  using Base = ByPoints<m, r>;
  static constexpr int in = Base::values, out = count;
  template <class V>
  [[gnu::always_inline]] static void apply(const V* t, V* y) {
    using E = Element<V>;
    using P = Points<E, m, r>;
    V sums[count];
    simd::for_constants<Base::pairs>([&](auto k) {
      constexpr E scale = scaled ? Base::template scale<E>(k) : 1;
      constexpr E odd_scale = scale * P::p[k], square = P::squares[k];
      const V& plus = t[P::zero + 2 * k];
      const V& minus = t[P::zero + 2 * k + 1];
      const V sum = plus + minus, difference = plus - minus;
      const V even = scale * (scaled && P::zero == 0 ? difference : sum);
      const V odd = odd_scale * (scaled && P::zero == 0 ? sum : difference);
      simd::for_constants<count>([&](auto j) {
        const V term = (j >= 2 ? square : 1) * (j % 2 == 0 ? even : odd);
        sums[j] = k == 0 ? term : sums[j] + term;
      });
    });
    if constexpr (P::zero == 1) {
      constexpr E scale = scaled ? Base::template scale_of_zero<E>() : 1;
      sums[0] += scale * t[0];
    }
    sums[count - 1] += t[in - 1];
    std::copy_n(sums, count, y);
  }
};

/// The coefficients of the product of (x - q) over all points q but p, times d; at infinity over all points.
template <int m, int r>
struct SourceByPoints : ByPoints<m, r> {
  using Base = ByPoints<m, r>;
  static constexpr int in = Base::values, out = Base::values;
  template <class V>
  [[gnu::always_inline]] static void apply(const V* d, V* t) {
    using E = Element<V>;
    using P = Points<E, m, r>;
    // The product of (x^2 - q^2) over all pairs, times d from an element on.
    const auto all_pairs = [&](const V* from) {
      if constexpr (Base::pairs == 1)
        return from[2] - P::squares[0] * from[0];
      else {
        constexpr E sum = P::squares[0] + P::squares[Base::pairs - 1];
        constexpr E product = P::squares[0] * P::squares[Base::pairs - 1];
        return (from[4] + product * from[0]) - sum * from[2];
      }
    };
    if constexpr (P::zero == 1) t[0] = all_pairs(d);
    constexpr int last = 2 * Base::pairs + P::zero - 1;  // the degree of the products
    simd::for_constants<Base::pairs>([&](auto k) {
      constexpr E p = P::p[k], other = P::squares[Base::pairs - 1 - k];
      V even = d[last], odd = d[last - 1];
      if constexpr (Base::pairs == 2) {
        even -= other * d[last - 2];
        odd -= other * d[last - 3];
      }
      odd = p * odd;
      t[P::zero + 2 * k] = even + odd;
      t[P::zero + 2 * k + 1] = even - odd;
    });
    t[out - 1] = all_pairs(d + P::zero);
  }
};

template <int m, class Transform>
using UnlessOne = std::conditional_t<m == 1, Identity<1>, Transform>;
template <int m, int r>
using Source = UnlessOne<m, SourceByPoints<m, r>>;
template <int m, int r>
using Filter = UnlessOne<m, Evaluate<m, r, r, true>>;
template <int m, int r>
using Result = UnlessOne<m, Interpolate<m, r, m, false>>;
template <int m, int r>
using Gradient = UnlessOne<m, Evaluate<m, r, m, false>>;
template <int m, int r>
using WeightGradient = UnlessOne<m, Interpolate<m, r, r, true>>;

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
template <class V>
[[gnu::always_inline]] inline V smaller(const V& a, const V& b) {
  return a < b ? a : b;
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

/// Adds the sum of the squares of what tells_size of a transformed tile, lane by lane, each value times its
/// channel's scale: a few numbers that have just been written, where those read would cost more.
template <class A, class B, class T>
void add_squares(const T* tile, int64_t channels, int64_t point, const T* scales,
                 Largest<T>& squares_of_tiles) {
  simd::Vector<T> squares{};
  for (int64_t i = 0; i < channels; i += simd::lanes<T>) {
    const int64_t c = std::min(i, channels - simd::lanes<T>);
    const auto scale = simd::load(scales + c);
    for (int a = 0; a < A::out; ++a)
      for (int b = 0; b < B::out; ++b)
        if (tells_size<A>(a) && tells_size<B>(b)) {
          const auto value = scale * simd::load(tile + (a * B::out + b) * point + c);
          squares += value * value;
        }
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
  const auto least = [](const auto& a, const auto& b) { return smaller(a, b); };
  // a[0], b[0], a[1], b[1] ... of half of the lanes, and of the other half.
  V ab, ab_upper, cd, cd_upper;
  simd::interleave<T>(vectors[0], vectors[1], ab, ab_upper);
  simd::interleave<T>(vectors[2], vectors[3], cd, cd_upper);
  if constexpr (simd::lanes<T> < 4)
    return 2 * fold<1>(smaller(smaller(ab, ab_upper), smaller(cd, cd_upper)), least)[0];
  else  // sums of a, b, a, b
    return 2 * fold<1>(smaller(fold<4>(ab + ab_upper, sum), fold<4>(cd + cd_upper, sum)), least)[0];
}

}  // namespace pleat::ops::winograd
