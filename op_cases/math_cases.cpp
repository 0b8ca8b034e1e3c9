// Mathematical functions of one tensor.

#include <algorithm>
#include <cmath>

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/elementwise/math.h"

namespace pleat::test {
namespace {

/// A function that keeps integers, and takes no truth values.
OpCase keeps_integers(OpCase c) {
  c.types = number_types;
  c.results = {same_type};
  return c;
}

/// With a variant's name, and a type of results where it is another.
OpCase also(OpCase c, const std::string& variant) {
  c.variant = variant;
  return c;
}

/// The derivative of order n of digamma, by its series, cut where an integral and half a term stand for the
/// rest.
double polygamma_of(int n, double x) {
  double sum = 0;
  const double sign = n % 2 == 1 ? 1 : -1;
  const auto term = [n, x](double k) { return std::pow(x + k, -n - 1); };
  const int count = 20000;
  if (n == 0) {
    for (int k = count - 1; k >= 0; --k) sum += term(k);
    const double z = x + count;
    return std::log(z) - 1 / (2 * z) - 1 / (12 * z * z) - sum;
  }
  for (int k = count - 1; k >= 0; --k) sum += term(k);
  const double z = x + count;
  sum += std::pow(z, -n) / n + term(count) / 2 + (n + 1) * std::pow(z, -n - 2) / 12;
  return sign * std::tgamma(n + 1) * sum;
}

/// A sum of terms that may be ten times larger than it.
OpCase summed(OpCase c) {
  c.slack = 64;
  return c;
}

double sign_of(double x) {
  return std::isnan(x) ? x : static_cast<double>(x > 0) - static_cast<double>(x < 0);
}

/// Near a half without the rounding of a quotient.
double logit_of(double x) { return x < 0.25 ? std::log(x / (1 - x)) : 2 * std::atanh(2 * x - 1); }

/// Constant between jumps, where its gradient is 0.
OpCase steps(const char* name, Tensor (*function)(const Tensor&), double (*reference)(double), Range smooth) {
  return keeps_integers(unary(name, function, reference, {-5, 5}, {smooth}));
}

OpCase power(double exponent, Range smooth) {
  const auto f = [exponent](const Tensors& x) { return pow(x[0], exponent); };
  return {.name = "pow",
          .inputs = {uniform({3, 5, 7, 9}, 0.1, 3)},
          .call = f,
          .reference = each([exponent](double x) { return std::pow(x, exponent); }),
          .variant = "exponent " + std::to_string(exponent),
          .types = all_types,
          .results = {floating_type},
          .elementwise = true,
          .smooth = {{uniform({2, 3}, smooth.low, smooth.high)}}};
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases = {
      unary("exp", exp, [](double x) { return std::exp(x); }, {-20, 20}, {{-2, 2}}),
      unary("exp2", exp2, [](double x) { return std::exp2(x); }, {-20, 20}, {{-2, 2}}),
      unary("expm1", expm1, [](double x) { return std::expm1(x); }, {-20, 20}, {{-2, 2}}),
      also(unary("expm1", expm1, [](double x) { return std::expm1(x); }, {-1e-3, 1e-3}, {{-1, 1}}), "small"),
      unary("log", log, [](double x) { return std::log(x); }, {1e-3, 100}, {{0.5, 3}}),
      also(unary("log", log, [](double x) { return std::log(x); }, {1e-38, 1e-37}, {{0.5, 3}}), "tiny"),
      unary("log1p", log1p, [](double x) { return std::log1p(x); }, {-0.9, 10}, {{-0.5, 3}}),
      also(unary("log1p", log1p, [](double x) { return std::log1p(x); }, {-1e-3, 1e-3}, {{-0.5, 1}}),
           "small"),
      unary("logit", [](const Tensor& x) { return logit(x); }, logit_of, {0.01, 0.99}, {{0.2, 0.8}}),
      also(refusing(
               unary(
                   "logit", [](const Tensor& x) { return logit(x, {.eps = 0.25}); },
                   [](double x) { return logit_of(std::clamp(x, 0.25, 0.75)); }, {-1, 2},
                   {{0.3, 0.7}, {0.8, 1.5}}),
               {{{normal({3})}, [](const Tensors& x) { return logit(x[0], {.eps = 0.6}); }, "logit: eps"}}),
           "eps"),
      unary("log2", log2, [](double x) { return std::log2(x); }, {1e-3, 100}, {{0.5, 3}}),
      unary("log10", log10, [](double x) { return std::log10(x); }, {1e-3, 100}, {{0.5, 3}}),
      unary("sqrt", sqrt, [](double x) { return std::sqrt(x); }, {0, 100}, {{0.5, 3}}),
      unary("rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, {0.01, 100}, {{0.5, 3}}),
      unary("reciprocal", reciprocal, [](double x) { return 1 / x; }, {-10, 10}, {{0.5, 3}}),
      unary("sin", sin, [](double x) { return std::sin(x); }, {-10, 10}, {{-3, 3}}),
      unary("cos", cos, [](double x) { return std::cos(x); }, {-10, 10}, {{-3, 3}}),
      unary("tan", tan, [](double x) { return std::tan(x); }, {-1.5, 1.5}, {{-1, 1}}),
      unary("asin", asin, [](double x) { return std::asin(x); }, {-1, 1}, {{-0.8, 0.8}}),
      unary("acos", acos, [](double x) { return std::acos(x); }, {-1, 1}, {{-0.8, 0.8}}),
      unary("atan", atan, [](double x) { return std::atan(x); }, {-10, 10}, {{-3, 3}}),
      unary("sinh", sinh, [](double x) { return std::sinh(x); }, {-10, 10}, {{-2, 2}}),
      unary("cosh", cosh, [](double x) { return std::cosh(x); }, {-10, 10}, {{-2, 2}}),
      unary("tanh", tanh, [](double x) { return std::tanh(x); }, {-12, 12}, {{-2, 2}}),
      also(unary("tanh", tanh, [](double x) { return std::tanh(x); }, {-1e-3, 1e-3}, {{-1, 1}}), "small"),
      unary("asinh", asinh, [](double x) { return std::asinh(x); }, {-50, 50}, {{-2, 2}}),
      also(unary("asinh", asinh, [](double x) { return std::asinh(x); }, {-1e-3, 1e-3}, {{-1, 1}}), "small"),
      unary("acosh", acosh, [](double x) { return std::acosh(x); }, {1, 50}, {{1.5, 3}}),
      unary("atanh", atanh, [](double x) { return std::atanh(x); }, {-1, 1}, {{-0.8, 0.8}}),
      unary("erf", erf, [](double x) { return std::erf(x); }, {-5, 5}, {{-2, 2}}),
      also(unary("erf", erf, [](double x) { return std::erf(x); }, {-1e-3, 1e-3}, {{-1, 1}}), "small"),
      unary("erfc", erfc, [](double x) { return std::erfc(x); }, {-3, 9}, {{-2, 2}}),
      summed(unary("lgamma", lgamma, [](double x) { return std::lgamma(x); }, {4, 20}, {{0.5, 4}, {7.5, 9}})),
      also(summed(unary("lgamma", lgamma, [](double x) { return std::lgamma(x); }, {0.01, 0.3}, {{0.1, 1}})),
           "small"),
      summed(unary("digamma", digamma, [](double x) { return polygamma_of(0, x); }, {2.5, 20}, {{0.5, 4}})),
      also(summed(
               unary("digamma", digamma, [](double x) { return polygamma_of(0, x); }, {0.01, 1}, {{0.1, 1}})),
           "small"),
      refusing(
          summed(unary(
              "polygamma", [](const Tensor& x) { return polygamma(1, x); },
              [](double x) { return polygamma_of(1, x); }, {0.1, 20}, {{0.5, 4}})),
          {{{normal({3})}, [](const Tensors& x) { return polygamma(21, x[0]); }, "polygamma: n must be"}}),
      also(summed(unary(
               "polygamma", [](const Tensor& x) { return polygamma(4, x); },
               [](double x) { return polygamma_of(4, x); }, {0.5, 20}, {{0.8, 4}})),
           "n 4"),
      keeps_integers(unary("square", square, [](double x) { return x * x; }, {-5, 5}, {{-2, 2}})),
      keeps_integers(
          unary("abs", abs, [](double x) { return std::abs(x); }, {-5, 5}, {{0.1, 2}, {-2, -0.1}})),
      steps("sign", sign, sign_of, {0.1, 2}),
      steps("floor", floor, [](double x) { return std::floor(x); }, {0.1, 0.9}),
      steps("ceil", ceil, [](double x) { return std::ceil(x); }, {0.1, 0.9}),
      steps("round", round, [](double x) { return std::nearbyint(x); }, {0.6, 1.4}),
      steps("trunc", trunc, [](double x) { return std::trunc(x); }, {0.1, 0.9}),
  };
  for (const double exponent : {0.0, 1.0, 2.0, 3.0}) cases.push_back(power(exponent, {-2, 2}));
  for (const double exponent : {0.5, -0.5, -1.0, -2.0, 2.7, -1.3}) cases.push_back(power(exponent, {0.5, 2}));
  cases.front().large = {uniform({70001}, -5, 5)};
  return cases;
}

}  // namespace

const std::vector<OpCase>& math_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
