// Host and device.
#include <limits>
#include <type_traits>

#include "pleat/core/base/format.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/pointwise.h"

/// The gamma function's logarithm and its derivatives, for x > 0: recurrence to an argument of at least 8,
/// for float of at least 4, where eight terms of Stirling's series (Abramowitz and
/// Stegun 6.1.41, 6.3.18, 6.4.11), for float four, are exact to the last digit.

namespace pleat {
namespace {

using ops::vmath::approximations::polynomial;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
template <class T>
constexpr int shift = std::is_same_v<T, float> ? 4 : 8;  // also terms of the series

/// The sum of a series in w.
template <class T, class... C>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T series_of(T w, T first, T second, T third, T fourth,
                                                            C... others) {
  if constexpr (std::is_same_v<T, float>)
    return polynomial(w, first, second, third, fourth);
  else
    return polynomial(w, first, second, third, fourth, others...);
}

/// x (x + 1) ... of n factors.
template <int n, class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T product_from(T x) {
  if constexpr (n == 1)
    return x;
  else
    return product_from<n - 1>(x) * (x + (n - 1));
}

/// 1 / x + 1 / (x + 1) + ... of n terms, two at once.
template <int n, class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T inverses_from(T x) {
  if constexpr (n == 0)
    return 0;
  else
    return inverses_from<n - 2>(x) + (2 * x + (2 * n - 3)) / ((x + (n - 2)) * (x + (n - 1)));
}

/// The derivative of order n + 1 of the logarithm of the gamma function, n >= 1.
template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T polygamma_of(int n, T x) {
  // By the Bernoulli numbers: B_2k / (2k)!.
  const double terms[] = {1 / 12.0,       -1 / 720.0,          1 / 30240.0,       -1 / 1209600.0,
                          1 / 47900160.0, -691 / 1307674368e3, 1 / 74724249600.0, -3617 / 10670622842880e3};
  T factorial = n % 2 == 1 ? 1 : -1;  // (n - 1)!, with the sign
  for (int i = 2; i < n; ++i) factorial *= static_cast<T>(i);
  const auto power = [n](T base) {
    T y = base;
    for (int i = 1; i < n; ++i) y *= base;
    return y;
  };
  T sum = 0;
  for (int k = 0; k < shift<T> + n; ++k) {
    const T inverse = 1 / (x + static_cast<T>(k));
    sum += power(inverse) * inverse;
  }
  const T inverse = 1 / (x + static_cast<T>(shift<T> + n));
  T series = 1 + static_cast<T>(n) * inverse / 2, rising = 1;
  PLEAT_UNROLL
  for (int k = 0; k < shift<T>; ++k) {
    rising *= static_cast<T>(n + 2 * k) * static_cast<T>(n + 2 * k + 1) * inverse * inverse;
    series += static_cast<T>(terms[k]) * rising;
  }
  return where(x >= 0, factorial * (static_cast<T>(n) * sum + power(inverse) * series), static_cast<T>(nan));
}
Tensor polygamma_of(int n, const Tensor& x) { return polygamma(n, x); }

/// N is int, or an integral_constant: of a known order this is vector instructions.
template <class N>
struct Polygamma {
  N n;
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return polygamma_of(n, x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * polygamma_of(n + 1, x);
  }
};

template <std::floating_point T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T digamma_of(T x) {
  const bool is_near = x < shift<T>;  // in the sum large ones would overflow
  const T z = where(is_near, x + shift<T>, x), inverse = 1 / z, w = inverse * inverse;
  const T series = series_of(w, T(1 / 12.0), T(-1 / 120.0), T(1 / 252.0), T(-1 / 240.0), T(1 / 132.0),
                             T(-691 / 32760.0), T(1 / 12.0));
  const T y = log(z) - inverse / 2 - w * series;
  const T sum = where(is_near, inverses_from<shift<T>>(x), 0);
  return where(x >= 0, y - sum, static_cast<T>(nan));
}
Tensor digamma_of(const Tensor& x) { return digamma(x); }

struct Digamma {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return digamma_of(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * polygamma_of(1, x);
  }
};

struct Lgamma {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    const bool is_near = x < shift<T>;  // the product of large ones would overflow
    const T z = where(is_near, x + shift<T>, x), inverse = 1 / z;
    const T series = series_of(inverse * inverse, T(1 / 12.0), T(-1 / 360.0), T(1 / 1260.0), T(-1 / 1680.0),
                               T(1 / 1188.0), T(-691 / 360360.0), T(1 / 156.0));
    // (log(2 pi) - 1) / 2
    const T y = (z - T(0.5)) * (log(z) - 1) + T(0.41893853320467274178) + series * inverse;
    const T excess = where(is_near, log(product_from<shift<T>>(x)), 0);
    const T size = where((x - 1) * (x - 2) == 0, 0, y - excess);  // which rounding would miss
    return where(x >= 0, size, static_cast<T>(nan));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * digamma_of(x);
  }
};

}  // namespace

Tensor lgamma(const Tensor& x) { return pointwise("lgamma", x, Lgamma{}); }
Tensor digamma(const Tensor& x) { return pointwise("digamma", x, Digamma{}); }

Tensor polygamma(Integer n, const Tensor& x) {
  check<ValueError>(n >= 0 && n <= 20, "polygamma: n must be in [0, 20], got {}", int64_t{n});
  if (n == 0) return digamma(x);
  const auto with = [&](auto order) {
    return pointwise("polygamma", x, Polygamma<decltype(order)>{order}, {{"n", int64_t{n}}});
  };
  return n == 1 ? with(std::integral_constant<int, 1>{}) : with(static_cast<int>(n));
}

}  // namespace pleat
