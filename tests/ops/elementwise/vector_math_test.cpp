#include "pleat/ops/elementwise/vector_math.h"

#include <algorithm>
#include <vector>

#include "pleat/ops/elementwise/coarse_float.h"
#include "pleat/ops/elementwise/map_arrays.h"
#include "pleat/ops/elementwise/vector_power.h"
#include "pleat/ops/elementwise/vector_trigonometry.h"
#include "pleat/tests/catch.h"

using namespace pleat::ops;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// A function of T, and the C library's of a wider type W.
template <class T, class W>
struct Case {
  const char* name;
  T (*function)(T);
  W (*reference)(W);
  T low, high;
};

template <class T>
constexpr T least = std::numeric_limits<T>::denorm_min();
template <class T>
constexpr T largest = std::numeric_limits<T>::max();

/// sin(x + quarters pi / 2) for |x| <= 1e6.
template <class W>
W sine(W x, int64_t quarters = 0) {
#if defined(_WIN32)
  // mingw-w64's C library knows 66 bits of pi. Of three parts of pi / 2 the first two have exact products.
  const W turns = std::nearbyint(x * W(0.63661977236758134308));
  const W r = turns == 0 ? x
                         : x - turns * W(0x1.921FB544p0) - turns * W(0x42D18469p-64) -
                               turns * W(0x898CC51701B839A2p-128L);
  quarters += static_cast<int64_t>(turns);
  const W y = (quarters & 1) != 0 ? std::cos(r) : std::sin(r);
  return (quarters & 2) != 0 ? -y : y;
#else
  return quarters == 0 ? std::sin(x) : std::cos(x);
#endif
}

template <class T, class W>
std::vector<Case<T, W>> cases() {
  // Where exponentials become infinite, and where sin is near.
  constexpr bool is_double = std::is_same_v<T, double>;
  constexpr T high = is_double ? T(709.7) : T(88.7), low = is_double ? T(-708.3) : T(-87.3);
  constexpr T tame = is_double ? T(700) : T(80), near = is_double ? T(1e6) : T(1e4);
  return {
      {"exp", [](T x) { return vmath::exp(x); }, [](W x) { return std::exp(x); }, low, high},
      {"exp_below_0", [](T x) { return vmath::exp_below_0(x); }, [](W x) { return std::exp(x); },
       is_double ? T(-708) : T(-87), 0},
      {"exp2", [](T x) { return vmath::exp2(x); }, [](W x) { return std::exp2(x); },
       is_double ? T(-1021) : T(-125), is_double ? T(1023.9) : T(127.9)},
      {"expm1", [](T x) { return vmath::expm1(x); }, [](W x) { return std::expm1(x); }, -1000, high},
      {"log", [](T x) { return vmath::log(x); }, [](W x) { return std::log(x); }, least<T>, largest<T>},
      {"log1p", [](T x) { return vmath::log1p(x); }, [](W x) { return std::log1p(x); }, T(-0.99999),
       largest<T>},
      {"log2", [](T x) { return vmath::log2(x); }, [](W x) { return std::log2(x); }, least<T>, largest<T>},
      {"log10", [](T x) { return vmath::log10(x); }, [](W x) { return std::log10(x); }, least<T>, largest<T>},
      {"sin", [](T x) { return vmath::sin(x); }, [](W x) { return sine(x); }, -near, near},
      {"cos", [](T x) { return vmath::cos(x); }, [](W x) { return sine(x, 1); }, -near, near},
      {"tan", [](T x) { return vmath::tan(x); }, [](W x) { return sine(x) / sine(x, 1); }, -near, near},
      {"asin", [](T x) { return vmath::asin(x); }, [](W x) { return std::asin(x); }, -1, 1},
      // Of mingw-w64 acos of long double is wrong near 1.
      {"acos", [](T x) { return vmath::acos(x); },
       [](W x) { return 2 * std::atan2(std::sqrt(1 - x), std::sqrt(1 + x)); }, -1, 1},
      {"atan", [](T x) { return vmath::atan(x); }, [](W x) { return std::atan(x); }, -largest<T>, largest<T>},
      {"sinh", [](T x) { return vmath::sinh(x); }, [](W x) { return std::sinh(x); }, -high, high},
      {"cosh", [](T x) { return vmath::cosh(x); }, [](W x) { return std::cosh(x); }, -high, high},
      {"tanh", [](T x) { return vmath::tanh(x); }, [](W x) { return std::tanh(x); }, -50, 50},
      {"asinh", [](T x) { return vmath::asinh(x); }, [](W x) { return std::asinh(x); }, -largest<T>,
       largest<T>},
      {"acosh", [](T x) { return vmath::acosh(x); }, [](W x) { return std::acosh(x); }, 1, largest<T>},
      {"atanh", [](T x) { return vmath::atanh(x); }, [](W x) { return std::atanh(x); }, -1, 1},
      {"erf", [](T x) { return vmath::erf(x); }, [](W x) { return std::erf(x); }, -50, 50},
      {"sigmoid", [](T x) { return vmath::sigmoid(x); }, [](W x) { return 1 / (1 + std::exp(-x)); }, -tame,
       tame},
      {"softplus", [](T x) { return vmath::softplus(x); }, [](W x) { return std::log1p(std::exp(x)); }, -tame,
       tame},
  };
}

/// Errors in units of T's epsilon, relative to the value.
template <class T, class W>
double error_of(T got, W wanted) {
  if (got == static_cast<T>(wanted)) return 0;
  const W scale = std::max(std::abs(wanted), static_cast<W>(std::numeric_limits<T>::min()));
  return static_cast<double>(std::abs(static_cast<W>(got) - wanted) / scale /
                             static_cast<W>(std::numeric_limits<T>::epsilon()));
}

template <class T>
using Bits = vmath::approximations::Bits<T>;

/// Calls f of every `step`th positive number, as their bits count, and of its negative.
template <class T, class F>
void for_every(Bits<T> step, const F& f) {
  const auto end = std::bit_cast<Bits<T>>(std::numeric_limits<T>::infinity());
  for (Bits<T> bits = 0; bits < end; bits += step)
    for (const T x : {std::bit_cast<T>(bits), -std::bit_cast<T>(bits)}) f(x);
}

/// The largest error of a function among `step`th numbers, and of doubles among many of common size.
template <class T, class W>
double worst_error(const Case<T, W>& c, Bits<T> step) {
  double worst = 0;
  const auto probe = [&](T x) {
    if (!(x >= c.low && x <= c.high)) return;
    const double error = error_of(c.function(x), c.reference(static_cast<W>(x)));
    if (!(error <= worst)) worst = error;
  };
  for_every<T>(step, probe);
  if constexpr (std::is_same_v<T, double>)
    for (int i = -40000; i < 40000; ++i)
      for (const double unit : {3.1e-5, 7.7e-4, 0.0171, 12.7}) probe(i * unit);
  return worst;
}

/// Numbers of all sizes and signs, and those that powers and remainders treat apart.
template <class T>
std::vector<T> probes(Bits<T> step) {
  constexpr T epsilon = std::numeric_limits<T>::epsilon();
  std::vector<T> values;
  for (const T x : {T(0),
                    least<T>,
                    T(1e-38),
                    T(0.3),
                    T(0.5),
                    1 - epsilon / 2,
                    T(1),
                    1 + epsilon,
                    T(1.5),
                    T(2),
                    T(3),
                    T(7),
                    T(100.5),
                    1 / epsilon + 1,
                    2 / epsilon + 1,
                    T(3e9),
                    T(1e20),
                    largest<T>,
                    std::numeric_limits<T>::infinity(),
                    std::numeric_limits<T>::quiet_NaN()})
    for (const T sign : {T(1), T(-1)}) values.push_back(sign * x);
  for_every<T>(step, [&](T x) { values.push_back(x); });
  return values;
}

template <class T>
bool same_bits(T a, T b) {
  return std::bit_cast<Bits<T>>(a) == std::bit_cast<Bits<T>>(b) || (std::isnan(a) && std::isnan(b));
}

/// Compares functions of two T with those of W.
template <class T, class W>
void check_pairs(const std::vector<T>& values, double power_error) {
  for (const T a : values)
    for (const T b : values) {
      CAPTURE(a, b);
      const auto x = static_cast<W>(a);
      const auto y = static_cast<W>(b);
      const auto power = static_cast<T>(std::pow(x, y));
      if (std::isfinite(power) && power != 0)
        REQUIRE(error_of(vmath::pow(a, b), std::pow(x, y)) <= power_error);
      else
        REQUIRE(same_bits(vmath::pow(a, b), power));
      if (vmath::remainder_is_near(a, b)) REQUIRE(same_bits(vmath::fmod(a, b), std::fmod(a, b)));
      const auto length = static_cast<T>(std::hypot(x, y));
      if (std::isfinite(length) && length != 0)
        REQUIRE(error_of(vmath::hypot(a, b), std::hypot(x, y)) <= 1);
      else
        REQUIRE(same_bits(vmath::hypot(a, b), length));
      const auto angle = static_cast<T>(std::atan2(x, y));
      if (angle == 0 || std::isnan(angle))
        REQUIRE(same_bits(vmath::atan2(a, b), angle));
      else
        REQUIRE(error_of(vmath::atan2(a, b), std::atan2(x, y)) <= 1.7);
    }
}

struct Sine {
  template <class T>
  T operator()(T x) const {
    return vmath::sin(x);
  }
  template <class T>
  static bool is_near(T x) {
    return vmath::sin_is_near(x);
  }
};

}  // namespace

TEST_CASE("the normal distribution in float is exact to the rounding of its exponent") {
  double worst = 0;
  for (float x = -12.9f; x < 13; x += 1.7e-4f) {
    const double error =
        error_of(vmath::normal_cdf(x), 0.5 * std::erfc(static_cast<double>(x) * -0.70710678118654752440));
    const double square = x < 0 ? static_cast<double>(x) * static_cast<double>(x) : 0;
    worst = std::max(worst, error / (3.5 + square / 4));
  }
  CHECK(worst <= 1);
  CHECK(vmath::exp_below_0(-infinity) == 0);
  CHECK(vmath::exp_below_0(-3.4e38f) == 0);
  CHECK(vmath::exp_below_0(-8.7e6f) == 0);
  CHECK(std::isnan(vmath::exp_below_0(std::numeric_limits<float>::quiet_NaN())));
  CHECK(vmath::normal_cdf(-infinity) == 0);
  CHECK(vmath::normal_cdf(infinity) == 1);
  CHECK(std::isnan(vmath::normal_cdf(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("coarse functions are within 2^-12, denormal results and all") {
  using vmath::CoarseFloat;
  double worst = 0;
  const auto compare = [&](CoarseFloat got, double wanted) {
    const double rounding = std::ldexp(1, -133) / 2;  // of bfloat16's denormal numbers
    worst = std::max(worst, (std::abs(static_cast<double>(got.value) - wanted) - rounding) / wanted);
  };
  for (float x = -110; x < 110; x += 1.3e-3f) {
    const auto wide = static_cast<double>(x);
    compare(sigmoid(CoarseFloat(x)), 1 / (1 + std::exp(-wide)));
    if (std::abs(x) > 14.5f) continue;
    compare(normal_cdf(CoarseFloat(x)), 0.5 * std::erfc(wide * -0.70710678118654752440));
    compare(normal_pdf(CoarseFloat(x)), std::exp(-wide * wide / 2) * 0.39894228040143267794);
  }
  CHECK(worst <= std::ldexp(1, -12));
  for (const float x : {1000.0f, 3.4e38f, infinity}) {
    CHECK(sigmoid(CoarseFloat(-x)).value == 0);
    CHECK(normal_cdf(CoarseFloat(-x)).value == 0);
    CHECK(normal_pdf(CoarseFloat(x)).value == 0);
    CHECK(sigmoid(CoarseFloat(x)).value == 1);
    CHECK(normal_cdf(CoarseFloat(x)).value == 1);
  }
  const CoarseFloat nan = std::numeric_limits<float>::quiet_NaN();
  for (const CoarseFloat y : {sigmoid(nan), normal_cdf(nan), normal_pdf(nan)}) CHECK(std::isnan(y.value));
}

TEST_CASE("erfc of float keeps its digits where it is small") {
  double worst = 0;
  for (float x = -5; x < 9.19f; x += 1.3e-5f)
    worst = std::max(worst, error_of(vmath::erfc(x), std::erfc(static_cast<double>(x))));
  CHECK(worst <= 4);
  CHECK(vmath::erfc(-infinity) == 2);
  CHECK(vmath::erfc(0.0f) == 1);
  for (const float x : {11.0f, 3.4e38f, infinity}) CHECK(vmath::erfc(x) == 0);
  CHECK(vmath::erfc(9.8f) == Approx(std::erfc(9.8)).margin(3e-45));  // a denormal
  CHECK(std::isnan(vmath::erfc(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("vector functions are within 1.7 epsilon over the whole range of float") {
  for (const auto& c : cases<float, double>()) {
    CAPTURE(c.name);
    CHECK(worst_error(c, 10007) <= 1.7);  // 1.47 for erf without fused multiply-adds
  }
}

TEST_CASE("vector functions are within 1.7 epsilon over the whole range of double") {
  if (std::numeric_limits<long double>::digits <= std::numeric_limits<double>::digits)
    return;  // no reference
  for (const auto& c : cases<double, long double>()) {
    CAPTURE(c.name);
    CHECK(worst_error(c, (uint64_t{1} << 44) + 9999991) <= 1.7);  // 1.6 for tanh
  }
}

TEMPLATE_TEST_CASE("vector functions keep the C library's values at the ends of their ranges", "", float,
                   double) {
  using T = TestType;
  constexpr T end = std::numeric_limits<T>::infinity();
  for (const auto& c : cases<T, long double>())
    for (const T x :
         {T(0), T(-0.0), end, -end, T(1), T(-1), T(1.5), T(-1.5), T(1e-40), T(-1e-40), T(800), T(-800)}) {
      if (std::string(c.name).find_first_of("sct") == 0 && c.high < 2e6 && c.high > 900 &&
          !(std::abs(x) <= c.high))
        continue;  // far
      if (std::string(c.name) == "exp_below_0" && x > 0) continue;
      CAPTURE(c.name, x);
      const T wanted = static_cast<T>(c.reference(static_cast<long double>(x)));
      if (std::isfinite(wanted) && wanted != 0)
        CHECK((error_of(c.function(x), static_cast<long double>(wanted)) <= 2 &&
               std::signbit(c.function(x)) == std::signbit(wanted)));
      else if (std::string(c.name) != "softplus" || x < 0)  // the reference becomes infinite
        CHECK(same_bits(c.function(x), wanted));
    }
}

TEST_CASE("vector functions at the ends of their ranges") {
  for (const auto& c : cases<float, double>())
    CHECK(std::isnan(c.function(std::numeric_limits<float>::quiet_NaN())));
  for (const auto& c : cases<double, long double>())
    CHECK(std::isnan(c.function(std::numeric_limits<double>::quiet_NaN())));
  CHECK(vmath::exp(0.0f) == 1);
  CHECK(vmath::exp(-infinity) == 0);
  CHECK(vmath::exp(-1e30f) == 0);
  CHECK(vmath::exp(-104.0f) == 0);
  CHECK(vmath::exp(infinity) == infinity);
  CHECK(vmath::exp(88.8f) == infinity);
  CHECK(std::isfinite(vmath::exp(88.7f)));
  CHECK(vmath::expm1(-infinity) == -1);
  CHECK(vmath::expm1(infinity) == infinity);
  CHECK(vmath::expm1(1e-30f) == 1e-30f);
  CHECK(vmath::log(0.0f) == -infinity);
  CHECK(vmath::log(infinity) == infinity);
  CHECK(vmath::log(1.0f) == 0);
  CHECK(std::isnan(vmath::log(-1.0f)));
  CHECK(vmath::log1p(-1.0f) == -infinity);
  CHECK(vmath::log1p(infinity) == infinity);
  CHECK(vmath::log1p(1e-30f) == 1e-30f);
  CHECK(std::isnan(vmath::log1p(-1.5f)));
  CHECK(vmath::tanh(infinity) == 1);
  CHECK(vmath::tanh(-infinity) == -1);
  CHECK(std::signbit(vmath::tanh(-0.0f)));
  CHECK(vmath::erf(infinity) == 1);
  CHECK(vmath::erf(-infinity) == -1);
  CHECK(vmath::sigmoid(-infinity) == 0);
  CHECK(vmath::sigmoid(infinity) == 1);
  CHECK(vmath::sigmoid(0.0f) == 0.5f);
  CHECK(vmath::softplus(-infinity) == 0);
  CHECK(vmath::softplus(infinity) == infinity);
  CHECK(vmath::log2(8.0f) == 3);
  CHECK(vmath::log2(0.0f) == -infinity);
  CHECK(vmath::log10(infinity) == infinity);
  CHECK(std::isnan(vmath::log10(-1.0f)));
  CHECK(std::signbit(vmath::sin(-0.0f)));
  CHECK(std::signbit(vmath::tan(-0.0f)));
  CHECK(vmath::cos(0.0f) == 1);
  CHECK(std::signbit(vmath::asin(-0.0f)));
  CHECK(std::isnan(vmath::asin(1.1f)));
  CHECK(std::isnan(vmath::acos(-1.1f)));
  CHECK(vmath::acos(1.0f) == 0);
  CHECK(vmath::acos(-1.0f) == 3.1415927f);
  CHECK(vmath::atan(infinity) == 1.5707964f);
  CHECK(vmath::atan(-infinity) == -1.5707964f);
  CHECK(std::signbit(vmath::atan(-0.0f)));
  CHECK(vmath::sinh(-infinity) == -infinity);
  CHECK(std::signbit(vmath::sinh(-0.0f)));
  CHECK(vmath::cosh(-infinity) == infinity);
}

TEST_CASE("sin, cos and tan of large numbers are right to the last digit") {
  using vmath::Wide;
  const auto sine = [](double x) { return static_cast<double>(vmath::sin(Wide{x})); };
  const auto cosine = [](double x) { return static_cast<double>(vmath::cos(Wide{x})); };
  // From 1,200 bits of pi; the second is nearest of all doubles to a multiple of pi / 2.
  CHECK(sine(1e22) == -0.8522008497671888);
  CHECK(cosine(6381956970095103 * 0x1p797) == Approx(-4.6871659242546276e-19).epsilon(1e-15));
  CHECK(sine(3e300) == -0.2652200567209199);
  CHECK(sine(-1e16) == -0.7796880066069788);
  CHECK(cosine(largest<double>) == Approx(-0.9999876894265600).epsilon(1e-15));
  CHECK(std::isnan(sine(infinity)));
  CHECK(std::isnan(cosine(std::numeric_limits<double>::quiet_NaN())));
#if !defined(_WIN32)
  // Of mingw-w64 the C library knows 66 bits of pi.
  if (std::numeric_limits<long double>::digits <= std::numeric_limits<double>::digits) return;
  double worst = 0;
  for_every<double>((uint64_t{1} << 41) + 9999991, [&](double x) {
    if (vmath::sin_is_near(x)) return;
    worst = std::max({worst, error_of(sine(x), std::sin(Wide{x})), error_of(cosine(x), std::cos(Wide{x})),
                      error_of(static_cast<double>(vmath::tan(Wide{x})), std::tan(Wide{x}))});
  });
  CHECK(worst <= 1.7);
#endif
}

TEST_CASE("vector functions of two numbers agree with the C library, special values included") {
  check_pairs<float, double>(probes<float>(9999991), 0.6);
  check_pairs<double, long double>(probes<double>(0x00a2345678912345), 0.8);
}

TEMPLATE_TEST_CASE("an element's result does not depend on its neighbours, though they are far", "", float,
                   double) {
  using T = TestType;
  constexpr T large = std::is_same_v<T, double> ? T(3e300) : T(3e38);
  std::vector<T> x(1000), near(x.size()), mixed(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i) * T(1.37) - 700;
  const auto n = static_cast<int64_t>(x.size());
  map_inputs(near.data(), n, Sine{}, x.data());
  for (const std::size_t far : {3u, 600u}) x[far] = large;
  map_inputs(mixed.data(), n, Sine{}, x.data());
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(mixed[i] ==
          (i == 3 || i == 600 ? T(std::is_same_v<T, double> ? -0.2652200567209199 : 0.87490489f) : near[i]));
}
