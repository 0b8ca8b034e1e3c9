// Comparisons and logic.

#include <cmath>

#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/op_case.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"

namespace pleat::test {
namespace {

const Shape image{2, 3, 5, 4};
const Shape channels{3, 1, 4};

/// Whole numbers, of which many are equal.
Tensors whole() {
  return {ops::cast(integers(image, 0, 4), float64), ops::cast(integers(channels, 0, 4, 2), float64)};
}

using Binary = Tensor (*)(const Tensor&, const Tensor&);

OpCase comparison(const char* name, Binary function, bool (*reference)(double, double),
                  Types types = all_types) {
  const Function call = [function](const Tensors& x) { return function(x[0], x[1]); };
  return {.name = name,
          .inputs = whole(),
          .call = call,
          .reference = each(reference),
          .types = types,
          .results = {truth_type},
          .elementwise = true,
          .order = 0,
          .refused = {{{normal({2}), normal({3})}, call, name}}};
}

OpCase with_number(const char* name, const Function& call, bool (*reference)(double),
                   const char* variant = "with a number") {
  return {.name = name,
          .inputs = {whole()[0]},
          .call = call,
          .reference = each(reference),
          .variant = variant,
          .types = all_types,
          .results = {truth_type},
          .elementwise = true,
          .order = 0};
}

/// Finite numbers, infinities and NaN.
Tensor strange() {
  Numbers numbers = normal({2, 3, 4}).to_vector<double>();
  for (std::size_t i = 0; i < numbers.size(); i += 4) {
    numbers[i] = infinity;
    numbers[i + 1] = -infinity;
    numbers[i + 2] = std::nan("");
  }
  return from_vector(numbers, {2, 3, 4}, Device());
}

OpCase question(const char* name, Tensor (*function)(const Tensor&), bool (*reference)(double)) {
  return {.name = name,
          .inputs = {strange()},
          .call = [function](const Tensors& x) { return function(x[0]); },
          .reference = each(reference),
          .types = all_types,
          .results = {truth_type},
          .elementwise = true,
          .order = 0};
}

Tensor truth(bool value, const Tensor& like) {
  return full({}, value, {.dtype = boolean, .device = like.device()});
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases = {
      comparison("equal", equal, [](double a, double b) { return a == b; }),
      comparison("not_equal", not_equal, [](double a, double b) { return a != b; }),
      comparison("less", less, [](double a, double b) { return a < b; }),
      comparison("less_equal", less_equal, [](double a, double b) { return a <= b; }),
      comparison("greater", greater, [](double a, double b) { return a > b; }),
      comparison("greater_equal", greater_equal, [](double a, double b) { return a >= b; }),
      comparison("logical_and", logical_and, [](double a, double b) { return a != 0 && b != 0; }),
      comparison("logical_or", logical_or, [](double a, double b) { return a != 0 || b != 0; }),
      comparison("logical_xor", logical_xor, [](double a, double b) { return (a != 0) != (b != 0); }),
      question("logical_not", logical_not, [](double x) { return x == 0; }),
      with_number(
          "equal", [](const Tensors& x) { return x[0] == 2; }, [](double x) { return x == 2; }),
      with_number(
          "not_equal", [](const Tensors& x) { return 2 != x[0]; }, [](double x) { return x != 2; }),
      with_number(
          "less", [](const Tensors& x) { return x[0] < 1.5; }, [](double x) { return x < 1.5; }),
      recorded_as("greater", with_number(
                                 "less", [](const Tensors& x) { return 2 < x[0]; },
                                 [](double x) { return 2 < x; }, "of a number")),
      with_number(
          "less_equal", [](const Tensors& x) { return x[0] <= 2; }, [](double x) { return x <= 2; }),
      with_number(
          "greater", [](const Tensors& x) { return x[0] > 2; }, [](double x) { return x > 2; }),
      with_number(
          "greater_equal", [](const Tensors& x) { return x[0] >= 1.5; }, [](double x) { return x >= 1.5; }),
      question("isfinite", isfinite, [](double x) { return std::isfinite(x); }),
      question("isinf", isinf, [](double x) { return std::isinf(x); }),
      question("isnan", isnan, [](double x) { return std::isnan(x); }),
      {.name = "array_equal",
       .inputs = {normal(image), normal(image, 2)},
       .call =
           [](const Tensors& x) {
             return Tensors{truth(array_equal(x[0], ops::copy(x[0])), x[0]),
                            truth(array_equal(x[0], x[1]), x[0])};
           },
       .reference =
           [](const Arrays&) {
             return Arrays{{{}, {1}}, {{}, {0}}};
           },
       .types = all_types,
       .results = {truth_type},
       .order = 0,
       .recorded = "-"},
      {.name = "isclose",
       .inputs = whole(),
       .call = [](const Tensors& x) { return isclose(x[0], x[1], {.rtol = 0.375, .atol = 0.25}); },
       .reference = each([](double a, double b) { return std::abs(a - b) <= 0.25 + 0.375 * std::abs(b); }),
       .types = all_types,
       .results = {truth_type},
       .elementwise = true,
       .order = 0,
       .refused = {{{normal({2}), normal({2})},
                    [](const Tensors& x) { return isclose(x[0], x[1], {.rtol = -1}); },
                    "isclose: the tolerances must not be negative"}}},
      {.name = "nan_to_num",
       .inputs = {strange()},
       .call = [](const Tensors& x) { return nan_to_num(x[0], {.nan = 0.5, .posinf = 8, .neginf = -4}); },
       .reference = each([](double x) {
         return std::isnan(x) ? 0.5 : std::isinf(x) ? (x > 0 ? 8.0 : -4.0) : x;
       }),
       .types = all_types,
       .elementwise = true,
       .smooth = {{normal({2, 3})}}},
      {.name = "allclose",
       .inputs = {uniform(image, 1, 2), uniform(image, -9, -3, 2)},
       .call =
           [](const Tensors& x) {
             return Tensors{truth(allclose(x[0], ops::copy(x[0])), x[0]), truth(allclose(x[0], x[1]), x[0])};
           },
       .reference =
           [](const Arrays&) {
             return Arrays{{{}, {1}}, {{}, {0}}};
           },
       .types = all_types,
       .results = {truth_type},
       .order = 0,
       .recorded = "-"},
  };
  return cases;
}

}  // namespace

const std::vector<OpCase>& compare_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
