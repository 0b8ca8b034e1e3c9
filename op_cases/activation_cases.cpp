// Activation functions.

#include <algorithm>
#include <cmath>

#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/op_case.h"
#include "pleat/ops/elementwise/activation.h"

namespace pleat::test {
namespace {

/// A call with options.
OpCase with(OpCase c, const std::string& variant, const Function& call) {
  c.variant = variant;
  c.call = call;
  return c;
}

OpCase make_relu() {
  OpCase c = unary("relu", relu, [](double x) { return x > 0 || std::isnan(x) ? x : 0; }, {-5, 5},
                   {{0.1, 2}, {-2, -0.1}});
  c.types = number_types;
  c.results = {same_type};
  c.in_place = {"relu_", [](const Tensors& x) { return relu_(x[0]); }};
  c.large = {uniform({70001}, -5, 5)};
  return c;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double softplus_of(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double softshrink_of(double x, double lambd) {
  return std::abs(x) <= lambd ? 0 : x - std::copysign(lambd, x);
}
double gelu_of(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double gelu_by_tanh(double x) {
  return x * 0.5 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

Tensor default_leaky_relu(const Tensor& x) { return leaky_relu(x); }
Tensor default_elu(const Tensor& x) { return elu(x); }
Tensor default_softplus(const Tensor& x) { return softplus(x); }
Tensor default_gelu(const Tensor& x) { return gelu(x); }
Tensor default_hardtanh(const Tensor& x) { return hardtanh(x); }
Tensor default_softshrink(const Tensor& x) { return softshrink(x); }
Tensor default_hardshrink(const Tensor& x) { return hardshrink(x); }
Tensor default_celu(const Tensor& x) { return celu(x); }
Tensor threshold_at_1(const Tensor& x) { return threshold(x, 1, -2.5); }

/// Of three functions, each of which rounds half types.
OpCase make_hardsigmoid() {
  OpCase c = unary("hardsigmoid", hardsigmoid,
                   [](double x) { return std::min(std::max(x * (1.0 / 6) + 0.5, 0.0), 1.0); }, {-2, 5},
                   {{-2.9, 2.9}, {3.1, 9}, {-9, -3.1}});
  c.slack = 4;
  c.recorded = "-";
  return c;
}

OpCase coarse(OpCase c) {
  c.coarse_in_bfloat16 = true;
  return c;
}

OpCase make_glu(int64_t dim) {
  return {.name = "glu",
          .inputs = {normal({4, 6, 2, 8})},
          .call = [dim](const Tensors& x) { return glu(x[0], dim); },
          .reference =
              [dim](const Arrays& x) {
                const std::size_t d = dimension(x[0], dim);
                Shape half = x[0].shape;
                half[d] /= 2;
                return Arrays{computed(half, [&](Index at) {
                  const double a = x[0](at);
                  at[d] += half[d];
                  return a * sigmoid_of(x[0](at));
                })};
              },
          .variant = "dim " + std::to_string(dim),
          .types = all_types,
          .results = {floating_type},
          .smooth = {{normal({2, 2, 2, 4})}},
          .large = {normal({50, 40, 4, 10})},
          .refused = {{{normal({2, 3})},
                       [](const Tensors& x) { return glu(x[0]); },
                       "glu: the size of dimension -1 must be even, got"},
                      {{normal({2, 2})},
                       [](const Tensors& x) { return glu(x[0], 2); },
                       "dimension 2 is outside"}}};
}

/// `weight` is [1] or [C]; half types are rounded once.
OpCase make_prelu(const std::string& variant, const Tensor& weight) {
  return {.name = "prelu",
          .inputs = {normal({2, 3, 4, 5}), weight},
          .call = [](const Tensors& x) { return prelu(x[0], x[1]); },
          .reference =
              [](const Arrays& x) {
                return Arrays{computed(x[0].shape, [&](const Index& at) {
                  const double slope = x[1].elements[x[1].elements.size() == 1 ? 0 : at[1]];
                  return x[0](at) > 0 ? x[0](at) : slope * x[0](at);
                })};
              },
          .variant = variant,
          .types = all_types,
          .results = {floating_type},
          .smooth = {{normal({2, 3, 2}), weight}},
          .refused = {{{normal({2, 4}), normal({3})},
                       [](const Tensors& x) { return prelu(x[0], x[1]); },
                       "prelu: weight must have one element, or one for each channel of [N, C, ...]"}}};
}

std::vector<OpCase> make() {
  return {
      make_relu(),
      make_prelu("one slope", tensor({0.25}, float64)),
      make_prelu("a slope for each channel", tensor({0.25, -0.5, 2.0}, float64)),
      unary("leaky_relu", default_leaky_relu, [](double x) { return x > 0 ? x : 0.01 * x; }, {-5, 5},
            {{0.1, 2}, {-2, -0.1}}),
      with(unary("leaky_relu", default_leaky_relu, [](double x) { return x > 0 ? x : 0.125 * x; }, {-5, 5},
                 {{0.1, 2}, {-2, -0.1}}),
           "slope 1/8", [](const Tensors& x) { return leaky_relu(x[0], 0.125); }),
      unary("elu", default_elu, [](double x) { return x > 0 ? x : std::expm1(x); }, {-20, 5},
            {{0.1, 2}, {-2, -0.1}}),
      with(unary("elu", default_elu, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }, {-20, 5},
                 {{0.1, 2}, {-2, -0.1}}),
           "alpha 1.5", [](const Tensors& x) { return elu(x[0], 1.5); }),
      unary("selu", selu,
            [](double x) {
              return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * std::expm1(x));
            },
            {-20, 5}, {{0.1, 2}, {-2, -0.1}}),
      refusing(unary("celu", default_celu, [](double x) { return x > 0 ? x : std::expm1(x); }, {-20, 5},
                     {{0.1, 2}, {-2, -0.1}}),
               {{{normal({2})},
                 [](const Tensors& x) { return celu(x[0], 0); },
                 "celu: alpha must be finite and not 0, got 0"}}),
      with(unary("celu", default_celu, [](double x) { return x > 0 ? x : 0.5 * std::expm1(x / 0.5); },
                 {-20, 5}, {{0.1, 2}, {-2, -0.1}}),
           "alpha 1/2", [](const Tensors& x) { return celu(x[0], 0.5); }),
      unary("softsign", softsign, [](double x) { return x / (1 + std::abs(x)); }, {-9, 9},
            {{0.1, 3}, {-3, -0.1}}),
      unary("tanhshrink", tanhshrink, [](double x) { return x - std::tanh(x); }, {2, 9},
            {{0.1, 3}, {-3, -0.1}}),
      make_glu(-1),
      make_glu(1),
      coarse(unary("sigmoid", sigmoid, sigmoid_of, {-40, 40}, {{-3, 3}})),
      unary("log_sigmoid", log_sigmoid,
            [](double x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); },
            {-40, 40}, {{-3, 3}}),
      refusing(unary("softplus", default_softplus, softplus_of, {-40, 40}, {{-3, 3}}),
               {{{normal({2})},
                 [](const Tensors& x) { return softplus(x[0], {.beta = 0}); },
                 "softplus: beta must be above 0 and finite, got 0"},
                {{normal({2})},
                 [](const Tensors& x) { return softplus(x[0], {.beta = -1}); },
                 "softplus: beta must be above 0 and finite, got -1"}}),
      with(unary("softplus", default_softplus,
                 [](double x) { return x > 1.5 ? x : std::log1p(std::exp(2 * x)) / 2; }, {-15, 15},
                 {{-3, 1.4}, {2, 3}}),
           "beta 2, threshold 3",
           [](const Tensors& x) { return softplus(x[0], {.beta = 2, .threshold = 3}); }),
      coarse(unary("gelu", default_gelu, gelu_of, {-0.5, 6}, {{-3, 3}})),
      with(coarse(unary("gelu", default_gelu, gelu_by_tanh, {-0.5, 6}, {{-3, 3}})), "by tanh",
           [](const Tensors& x) { return gelu(x[0], GeluApproximation::tanh); }),
      coarse(unary("silu", silu, [](double x) { return x * sigmoid_of(x); }, {-20, 20}, {{-3, 3}})),
      unary("mish", mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, {-20, 20},
            {{-3, 3}}),
      unary("hardswish", hardswish, [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; },
            {-2.9, 5}, {{-2.9, 2.9}, {3.1, 9}, {-9, -3.1}}),
      make_hardsigmoid(),
      recorded_as("hardtanh", refusing(unary("hardtanh", default_hardtanh,
                                             [](double x) { return std::clamp(x, -1.0, 1.0); }, {-5, 5},
                                             {{-0.9, 0.9}, {1.1, 3}, {-3, -1.1}}),
                                       {{{normal({2})},
                                         [](const Tensors& x) { return hardtanh(x[0], 1, -1); },
                                         "hardtanh: needs min <= max, got 1 and -1"}})),
      recorded_as("hardtanh",
                  with(unary("hardtanh", default_hardtanh, [](double x) { return std::clamp(x, -1.0, 3.0); },
                             {-5, 5}, {{-0.9, 2.9}, {3.1, 5}}),
                       "-1 to 3", [](const Tensors& x) { return hardtanh(x[0], -1, 3); })),
      recorded_as("hardtanh", unary("relu6", relu6, [](double x) { return std::clamp(x, 0.0, 6.0); }, {-5, 9},
                                    {{0.1, 5.9}, {6.1, 9}, {-3, -0.1}})),
      refusing(unary("softshrink", default_softshrink, [](double x) { return softshrink_of(x, 0.5); },
                     {-3, 3}, {{-0.4, 0.4}, {0.6, 3}, {-3, -0.6}}),
               {{{normal({2})},
                 [](const Tensors& x) { return softshrink(x[0], -1); },
                 "softshrink: lambd must be at least 0, got -1"}}),
      with(unary("softshrink", default_softshrink, [](double x) { return softshrink_of(x, 2); }, {-5, 5},
                 {{-1.9, 1.9}, {2.1, 5}, {-5, -2.1}}),
           "lambd 2", [](const Tensors& x) { return softshrink(x[0], 2); }),
      refusing(unary("hardshrink", default_hardshrink, [](double x) { return std::abs(x) <= 0.5 ? 0 : x; },
                     {-3, 3}, {{-0.4, 0.4}, {0.6, 3}, {-3, -0.6}}),
               {{{normal({2})},
                 [](const Tensors& x) { return hardshrink(x[0], -1); },
                 "hardshrink: lambd must be at least 0, got -1"}}),
      refusing(unary("threshold", threshold_at_1, [](double x) { return x <= 1 ? -2.5 : x; }, {-3, 3},
                     {{1.1, 3}, {-3, 0.9}}),
               {{{normal({2})},
                 [](const Tensors& x) { return threshold(x[0], std::nan(""), 0); },
                 "threshold: the threshold must be a number, got nan"}}),
  };
}

}  // namespace

const std::vector<OpCase>& activation_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
