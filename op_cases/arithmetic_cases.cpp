// Arithmetic and other functions of two and three tensors that broadcast, and of tensors and numbers.

#include <algorithm>
#include <cmath>

#include "pleat/autograd/copy.h"
#include "pleat/op_cases/op_case.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"

namespace pleat::test {
namespace {

const Shape image{2, 3, 5, 4};
const Shape channels{3, 1, 4};

using Binary = Tensor (*)(const Tensor&, const Tensor&);

/// Of two tensors, the second away from 0.
OpCase binary(const char* name, Binary function, double (*reference)(double, double)) {
  return {.name = name,
          .inputs = {normal(image), uniform(channels, 0.5, 2, 2)},
          .call = [function](const Tensors& x) { return function(x[0], x[1]); },
          .reference = each(reference),
          .types = number_types,
          .elementwise = true,
          .smooth = {{uniform({2, 3}, 0.5, 2), uniform({3}, 0.6, 1.8, 2)}},
          .refused = {{{normal({2}), normal({3})},
                       [function](const Tensors& x) { return function(x[0], x[1]); },
                       std::string(name) + ": "}}};
}

/// Of a tensor and a number that is in the call.
OpCase with_number(const char* name, const char* variant, const Function& call, double (*reference)(double),
                   Range values = {0.5, 2}) {
  return {.name = name,
          .inputs = {uniform(image, values.low, values.high)},
          .call = call,
          .reference = each(reference),
          .variant = variant,
          .types = all_types,
          .results = {number_type},
          .elementwise = true,
          .smooth = {{uniform({2, 3}, values.low, values.high)}}};
}

OpCase in_place(OpCase c, const std::string& name, const Function& call) {
  c.in_place = {name, call};
  return c;
}

OpCase floating_results(OpCase c, Types types = all_types) {
  c.types = types;
  c.results = {floating_type};
  return c;
}

OpCase of_types(OpCase c, Types types) {
  c.types = types;
  return c;
}

OpCase of_inputs(OpCase c, Tensors inputs, std::vector<Tensors> smooth) {
  c.inputs = std::move(inputs);
  c.smooth = std::move(smooth);
  return c;
}

double remainder_of(double a, double b) { return a - std::floor(a / b) * b; }
double mixed(double a, double b, double weight) { return a + weight * (b - a); }

/// Odd multiples of 1/16 by multiples of 1/8: exact in each type, and never on a jump.
Tensors sixteenths() {
  Tensors x{normal(image), normal(channels)};
  for (std::size_t i = 0; i < 2; ++i) {
    const Tensor whole = i == 0 ? integers(image, -20, 20) : integers(channels, 3, 9, 2);
    Numbers numbers = whole.to_vector<double>();
    for (double& n : numbers) n = i == 0 ? (2 * n + 1) / 16 : n / 8;
    x[i] = from_vector(numbers, whole.shape(), Device());
  }
  return x;
}

OpCase lerp_of_tensors() {
  OpCase c{.name = "lerp",
           .inputs = {uniform(image, 0.5, 2), uniform(image, 0.5, 2, 2), uniform({3, 1, 1}, 0, 1, 3)},
           .call = [](const Tensors& x) { return lerp(x[0], x[1], x[2]); },
           .reference = each(mixed),
           .types = all_types,
           .results = {floating_type},
           .elementwise = true,
           .smooth = {{uniform({2, 3}, 0.5, 2), uniform({3}, 0.6, 1.8, 2), uniform({2, 1}, 0, 1, 3)}},
           .in_place = {"lerp_", [](const Tensors& x) { return lerp_(x[0], x[1], x[2]); }},
           .refused = {{{integers({3}, 0, 5)},
                        [](const Tensors& x) { return lerp_(x[0], x[0], 0.5); },
                        "lerp_: needs a floating type, got int64"},
                       {{normal({3}), normal({2, 3})},
                        [](const Tensors& x) { return lerp_(x[0], x[1], 0.5); },
                        "lerp: "}}};
  return c;
}

/// x + 3 f(a, b).
OpCase combined(const char* name, Tensor (*function)(const Tensor&, const Tensor&, const Tensor&, Number),
                double (*f)(double, double), Types types, ResultType result) {
  return {.name = name,
          .inputs = {uniform(image, 1, 2), uniform(channels, 1, 2, 2), uniform({5, 1}, 1, 2, 3)},
          .call = [function](const Tensors& x) { return function(x[0], x[1], x[2], 3); },
          .reference = each([f](double x, double a, double b) { return x + 3 * f(a, b); }),
          .types = types,
          .results = {result},
          .smooth = {{uniform({2, 3}, 1, 2), uniform({3}, 1, 2, 2), uniform({2, 1}, 1, 2, 3)}},
          .slack = 4,  // half types are rounded three times
          .refused = {{{normal({2}), normal({3}), normal({2})},
                       [function](const Tensors& x) { return function(x[0], x[1], x[2], 3); },
                       "broadcast"}}};
}

/// Chosen by a mask.
OpCase chosen(const char* name, const char* variant, Tensors inputs, const Function& call,
              const Reference& reference) {
  return {.name = name,
          .inputs = std::move(inputs),
          .call = call,
          .reference = reference,
          .variant = variant,
          .types = all_types,
          .elementwise = true};
}

std::vector<OpCase> make_arithmetic() {
  return {
      in_place(binary("add", add, [](double a, double b) { return a + b; }), "add_",
               [](const Tensors& x) { return add_(x[0], x[1]); }),
      in_place(
          with_number(
              "add", "a number", [](const Tensors& x) { return 3 + x[0]; }, [](double x) { return x + 3; }),
          "add_", [](const Tensors& x) { return add_(x[0], 3); }),
      in_place(binary("subtract", subtract, [](double a, double b) { return a - b; }), "subtract_",
               [](const Tensors& x) { return subtract_(x[0], x[1]); }),
      in_place(with_number(
                   "subtract", "a number", [](const Tensors& x) { return x[0] - 1; },
                   [](double x) { return x - 1; }, {1.5, 4}),
               "subtract_", [](const Tensors& x) { return subtract_(x[0], 1); }),
      with_number(
          "subtract", "from a number", [](const Tensors& x) { return 9 - x[0]; },
          [](double x) { return 9 - x; }),
      in_place(binary("multiply", multiply, [](double a, double b) { return a * b; }), "multiply_",
               [](const Tensors& x) { return multiply_(x[0], x[1]); }),
      in_place(with_number(
                   "multiply", "a number", [](const Tensors& x) { return 6 * x[0]; },
                   [](double x) { return 6 * x; }),
               "multiply_", [](const Tensors& x) { return multiply_(x[0], 6); }),
      in_place(floating_results(binary("divide", divide, [](double a, double b) { return a / b; })),
               "divide_", [](const Tensors& x) { return divide_(x[0], x[1]); }),
      in_place(floating_results(with_number(
                   "divide", "by a number", [](const Tensors& x) { return x[0] / 3; },
                   [](double x) { return x / 3; })),
               "divide_", [](const Tensors& x) { return divide_(x[0], 3); }),
      floating_results(with_number(
          "divide", "a number", [](const Tensors& x) { return 3 / x[0]; }, [](double x) { return 3 / x; })),
      of_types(with_number(
                   "negate", "", [](const Tensors& x) { return negate(x[0]); }, [](double x) { return -x; }),
               number_types),
      {.name = "fill_",
       .inputs = {normal(image)},
       .call = [](const Tensors& x) { return fill_(clone(x[0]), 1); },
       .reference = each([](double) { return 1.0; }),
       .types = all_types,
       .elementwise = true,
       .order = 0,
       .recorded = "-"},
  };
}

std::vector<OpCase> make_math() {
  return {
      of_inputs(binary("pow", pow, [](double a, double b) { return std::pow(a, b); }),
                {uniform(image, 0.3, 2), uniform(channels, 0.1, 2, 2)},
                {{uniform({2, 3}, 0.5, 2), uniform({3}, -1.8, 1.8, 2)}}),
      with_number(
          "pow", "of a number", [](const Tensors& x) { return pow(2, x[0]); },
          [](double x) { return std::pow(2, x); }, {-2, 2}),
      of_inputs(floating_results(binary("atan2", atan2, [](double a, double b) { return std::atan2(a, b); })),
                {normal(image), normal(channels, 2)}, {{uniform({2, 3}, 0.5, 2), uniform({3}, 0.6, 1.8, 2)}}),
      of_inputs(binary("remainder", remainder, remainder_of), sixteenths(),
                {{uniform({2, 3}, 5, 20), uniform({3}, 0.6, 1.8, 2)}}),
      of_inputs(with_number(
                    "remainder", "by a number", [](const Tensors& x) { return remainder(x[0], 3); },
                    [](double x) { return remainder_of(x, 3); }),
                {sixteenths()[0]}, {{uniform({2, 3}, 0.1, 2.9)}}),
      with_number(
          "remainder", "of a number", [](const Tensors& x) { return remainder(7, x[0]); },
          [](double x) { return remainder_of(7, x); }, {2.5, 3.25}),
      of_inputs(binary("fmod", fmod, [](double a, double b) { return std::fmod(a, b); }), sixteenths(),
                {{uniform({2, 3}, 5, 20), uniform({3}, 0.6, 1.8, 2)}}),
      of_inputs(with_number(
                    "fmod", "by a number", [](const Tensors& x) { return fmod(x[0], 3); },
                    [](double x) { return std::fmod(x, 3); }),
                {sixteenths()[0]}, {{uniform({2, 3}, 0.1, 2.9)}}),
      with_number(
          "fmod", "of a number", [](const Tensors& x) { return fmod(7, x[0]); },
          [](double x) { return std::fmod(7, x); }, {2.5, 3.25}),
      of_inputs(binary("floor_divide", floor_divide, [](double a, double b) { return std::floor(a / b); }),
                sixteenths(), {{uniform({2, 3}, 2.1, 2.9), uniform({3}, 0.95, 1.04, 2)}}),
      of_inputs(with_number(
                    "floor_divide", "by a number", [](const Tensors& x) { return floor_divide(x[0], 3); },
                    [](double x) { return std::floor(x / 3); }),
                {sixteenths()[0]}, {{uniform({2, 3}, 0.1, 2.9)}}),
      with_number(
          "floor_divide", "of a number", [](const Tensors& x) { return floor_divide(7, x[0]); },
          [](double x) { return std::floor(7 / x); }, {2.5, 2.75}),
      of_inputs(
          floating_results(binary("logaddexp", logaddexp,
                                  [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); })),
          {normal(image), uniform(channels, 2, 5, 2)},
          {{uniform({2, 3}, 0.5, 2), uniform({3}, -1.8, 0.3, 2)}}),
      of_inputs(floating_results(binary("hypot", hypot, [](double a, double b) { return std::hypot(a, b); })),
                {normal(image), normal(channels, 2)}, {{uniform({2, 3}, 0.5, 2), uniform({3}, 0.6, 1.8, 2)}}),
      of_inputs(floating_results(binary("xlogy", xlogy, [](double a, double b) { return a * std::log(b); })),
                {normal(image), uniform(channels, 0.5, 3, 2)},
                {{uniform({2, 3}, 0.5, 2), uniform({3}, 0.6, 1.8, 2)}}),
      combined(
          "addcmul", addcmul, [](double a, double b) { return a * b; }, number_types, same_type),
      combined(
          "addcdiv", addcdiv, [](double a, double b) { return a / b; }, all_types, floating_type),
      of_types(binary("maximum", maximum, [](double a, double b) { return std::max(a, b); }), all_types),
      of_types(binary("minimum", minimum, [](double a, double b) { return std::min(a, b); }), all_types),
      of_inputs(with_number(
                    "maximum", "a number", [](const Tensors& x) { return maximum(x[0], 1); },
                    [](double x) { return std::max(x, 1.0); }),
                {normal(image)}, {{uniform({2, 3}, 1.1, 2)}, {uniform({2, 3}, -2, 0.9)}}),
      of_inputs(with_number(
                    "minimum", "a number", [](const Tensors& x) { return minimum(1, x[0]); },
                    [](double x) { return std::min(x, 1.0); }),
                {normal(image)}, {{uniform({2, 3}, 1.1, 2)}, {uniform({2, 3}, -2, 0.9)}}),
      in_place(
          of_inputs(with_number(
                        "clamp", "", [](const Tensors& x) { return clamp(x[0], {.min = 1, .max = 2}); },
                        [](double x) { return std::clamp(x, 1.0, 2.0); }),
                    {uniform(image, -4, 4)},
                    {{uniform({2, 3}, 1.1, 1.9)}, {uniform({2, 3}, 2.1, 3)}, {uniform({2, 3}, -2, 0.9)}}),
          "clamp_", [](const Tensors& x) { return clamp_(x[0], {.min = 1, .max = 2}); }),
      lerp_of_tensors(),
      in_place({.name = "lerp",
                .inputs = {uniform(image, 0.5, 2), uniform(image, 0.5, 2, 2)},
                .call = [](const Tensors& x) { return lerp(x[0], x[1], 0.25); },
                .reference = each([](double a, double b) { return mixed(a, b, 0.25); }),
                .variant = "by a number",
                .types = all_types,
                .results = {floating_type},
                .elementwise = true,
                .smooth = {{normal({2, 3}), normal({2, 3}, 2)}}},
               "lerp_", [](const Tensors& x) { return lerp_(x[0], x[1], 0.25); }),
  };
}

/// tril keeps the elements with `below` * (column - row - diagonal) <= 0.
OpCase triangle(const char* name, Tensor (*function)(const Tensor&, Integer), int below, int64_t diagonal) {
  return {.name = name,
          .inputs = {normal({2, 3, 4, 5})},
          .call = [=](const Tensors& x) { return function(x[0], diagonal); },
          .reference =
              [=](const Arrays& x) {
                return Arrays{computed(x[0].shape, [&](const Index& at) {
                  return below * (at[3] - at[2] - diagonal) <= 0 ? x[0](at) : 0;
                })};
              },
          .variant = "diagonal " + std::to_string(diagonal),
          .types = all_types,
          .smooth = {{normal({2, 3})}},
          .large = {normal({300, 257})},
          .refused = {{{normal({3})},
                       [=](const Tensors& x) { return function(x[0], 0); },
                       std::string(name) + ": needs matrices [..., N, M], got [3]"}}};
}

std::vector<OpCase> make_select() {
  const Tensors three{coins(image), normal(image), normal(channels, 2)};
  const Tensors small{coins({2, 3}), normal({2, 3}), normal({3}, 2)};
  std::vector<OpCase> cases = {
      chosen(
          "where", "", three, [](const Tensors& x) { return where(x[0], x[1], x[2]); },
          each([](double c, double a, double b) { return c != 0 ? a : b; })),
      chosen(
          "where", "a number below", three, [](const Tensors& x) { return where(x[0], x[1], 3); },
          each([](double c, double a) { return c != 0 ? a : 3; })),
      chosen(
          "where", "a number above", {coins(image), normal(image)},
          [](const Tensors& x) { return where(x[0], 3, x[1]); },
          each([](double c, double a) { return c != 0 ? 3 : a; })),
      chosen(
          "masked_fill", "", {normal(image), coins({5, 4})},
          [](const Tensors& x) { return masked_fill(x[0], x[1], 1); },
          each([](double a, double c) { return c != 0 ? 1 : a; })),
  };
  for (OpCase& c : cases) c.smooth = {{small[0], small[1], small[2]}};
  cases.back().smooth = {{normal({2, 3}), coins({3})}};
  cases.back().in_place = {"masked_fill_", [](const Tensors& x) { return masked_fill_(x[0], x[1], 1); }};
  cases[1].results = cases[2].results = {number_type};
  cases.back().types = number_types;
  cases.front().refused = {
      {{integers({2}, 0, 2)},
       [](const Tensors& x) { return where(x[0], 1, 0); },
       "where: the condition must be bool, got [2] int64"},
      {{coins({3}), normal({2})}, [](const Tensors& x) { return where(x[0], x[1], 0); }, "where: "}};
  cases.back().refused = {{{integers({2}, 0, 9), normal({2})},
                           [](const Tensors& x) { return masked_fill(x[0], x[1], 0); },
                           "masked_fill: the mask must be bool"},
                          {{integers({2}, 0, 9), coins({1})},
                           [](const Tensors& x) { return masked_fill(x[0], x[1], 0.5); },
                           "a tensor of int64 cannot hold 0.5"},
                          {{normal({2}), coins({3})},
                           [](const Tensors& x) { return masked_fill_(x[0], x[1], 0); },
                           "masked_fill"},
                          {{normal({2}), coins({2, 2})},
                           [](const Tensors& x) { return masked_fill_(x[0], x[1], 0); },
                           "masked_fill"}};
  for (const int64_t diagonal : {0, 2, -1, 9, -9}) {
    cases.push_back(triangle("tril", tril, 1, diagonal));
    cases.push_back(triangle("triu", triu, -1, diagonal));
  }
  return cases;
}

}  // namespace

const std::vector<OpCase>& arithmetic_ops() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all = make_arithmetic();
    for (const auto& part : {make_math(), make_select()}) all.insert(all.end(), part.begin(), part.end());
    all.front().large = {normal({300, 257}), normal({257}, 2)};
    return all;
  }();
  return cases;
}

}  // namespace pleat::test
