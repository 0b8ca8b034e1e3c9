// What functions give, in all types and layouts.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/op_cases/all_cases.h"

using namespace pleat;
using namespace pleat::test;

namespace {

Arrays arrays_of(const Tensors& tensors) {
  Arrays arrays;
  for (const Tensor& t : tensors) arrays.push_back(t.defined() ? array_of(t) : Array{});
  return arrays;
}

/// What must come out, in float64.
Arrays wanted_of(const OpCase& c, const Tensors& inputs) {
  if (c.reference) return c.reference(arrays_of(inputs));
  Tensors wide;
  for (const Tensor& x : inputs)
    wide.push_back(
        x.defined()
            ? ops::cast(
                  x, x.dtype() == int64 || (x.dtype() == boolean && !c.types.boolean) ? x.dtype() : float64,
                  MemoryFormat::contiguous)
            : x);
  return arrays_of(c.run(wide));
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool same_numbers(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_number);
}

/// A number as a type holds it.
Numbers held_by(DType dtype, const Numbers& numbers) {
  Numbers held = numbers;
  for (double& n : held) {
    if (dtype == boolean) n = n != 0;
    if (dtype == uint8) n = static_cast<uint8_t>(static_cast<int64_t>(n));
    if (dtype == int32 || dtype == int64) n = std::trunc(n);
  }
  if (!is_floating(dtype)) return held;
  return ops::cast(from_vector(numbers, {static_cast<int64_t>(numbers.size())}, Device()), dtype)
      .to_vector<double>();
}

/// How far results are from what they must be, as a multiple of what is allowed.
double error_of(const OpCase& c, const Tensor& got, const Array& wanted) {
  const Numbers numbers = got.to_vector<double>();
  const Numbers held = held_by(got.dtype(), wanted.elements);
  if (!is_floating(got.dtype())) return same_numbers(numbers, held) ? 0 : infinity;
  const bool half = is_half(got.dtype());
  const bool coarse = c.coarse_in_bfloat16 && got.dtype() == bfloat16;
  const double one = rounding(got.dtype()) + (coarse ? std::ldexp(1, -12) : 0);
  double worst = 0, difference = 0, length = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (same_number(numbers[i], held[i])) {
      if (std::isfinite(held[i])) length += held[i] * held[i];
      continue;
    }
    const double error = std::abs(numbers[i] - wanted.elements[i]);
    if (!std::isfinite(error)) return infinity;
    const double smallest = got.dtype() == float16 ? std::ldexp(1, -24) : 0;
    const double allowed = c.slack * (half ? 1.001 : 8) * one * std::abs(wanted.elements[i]) + smallest;
    worst = std::max(worst, allowed > 0 ? error / allowed : infinity);
    difference += error * error;
    length += wanted.elements[i] * wanted.elements[i];
  }
  if (c.elementwise) return worst;
  const double allowed = c.slack * (half ? 1.05 * one : 16 * one);
  return std::sqrt(difference) / (allowed * (length > 0 ? std::sqrt(length) : 1));
}

void check_elementwise(const OpCase& c, const Tensors& inputs, DType dtype, const Tensors& results) {
  if (is_half(dtype) && c.slack == 1 && !(c.coarse_in_bfloat16 && dtype == bfloat16)) {
    const Tensors wide = c.run(typed(inputs, float32));
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO("half types are computed in float32 and rounded once");
      CHECK(same_numbers(results[i].to_vector<double>(),
                         ops::cast(wide[i], results[i].dtype()).to_vector<double>()));
    }
  }
  Tensors first, none;
  for (const Tensor& x : inputs) {
    first.push_back(x.as_strided({}, {}, x.offset()));
    none.push_back(zeros({0, 3}, {.dtype = x.dtype()}));
  }
  if (inputs.size() == 1 && is_floating(dtype)) {
    const Tensors nan = {full({17}, std::nan(""), {.dtype = dtype})};
    const Tensors got = c.run(nan);
    const Arrays wanted = wanted_of(c, nan);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (is_floating(got[i].dtype()) || got[i].dtype() == boolean)
        CHECK(same_numbers(got[i].to_vector<double>(), held_by(got[i].dtype(), wanted[i].elements)));
  }
  const Tensors ones = c.run(first);
  const Tensors nothing = c.run(none);
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(ones[i].shape() == Shape{});
    CHECK(same_number(ones[i].item<double>(), results[i].to_vector<double>()[0]));
    CHECK(nothing[i].shape() == Shape{0, 3});
    CHECK(nothing[i].dtype() == results[i].dtype());
  }
}

void check_values(const OpCase& c) {
  for (const DType dtype : types_of(c)) {
    const Tensors inputs = typed(c.inputs, dtype);
    Tensors plain;
    for (const std::string& layout : op_layouts()) {
      CAPTURE(name(dtype), layout);
      const Tensors laid = in_layout(inputs, layout);
      const Arrays wanted = wanted_of(c, laid);
      const Tensors got = c.run(laid);
      REQUIRE(got.size() == wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(got[i].dtype() == c.results[std::min(i, c.results.size() - 1)](dtype));
        REQUIRE(got[i].shape() == wanted[i].shape);
        CHECK(error_of(c, got[i], wanted[i]) <= 1);
        if (c.elementwise && layout != "expanded" && !plain.empty())
          CHECK(same_numbers(got[i].to_vector<double>(), plain[i].to_vector<double>()));
        if (c.elementwise && layout == "channels_last" && laid.size() == 1)
          CHECK(got[i].memory_format() == MemoryFormat::channels_last);
      }
      if (plain.empty()) plain = got;
    }
    if (c.elementwise) check_elementwise(c, inputs, dtype, plain);
  }
}

bool takes(const OpCase& c, DType dtype) {
  const std::vector<DType> all = types_of(c);
  return std::find(all.begin(), all.end(), dtype) != all.end();
}

void check_refused_types(const OpCase& c) {
  if (types_of(c) == std::vector<DType>{float64}) return;  // no type to vary
  for (const DType dtype : {float32, float16, bfloat16, uint8, pleat::int32, pleat::int64, boolean}) {
    if (takes(c, dtype)) continue;
    CAPTURE(name(dtype));
    CHECK_THROWS_AS(c.call(typed(c.inputs, dtype)), DTypeError);
  }
}

}  // namespace

// On the double of CUDA these take minutes; devices_test.cpp compares values and gradients there.
PLEAT_TEST_FAMILIES("values", "[op_cases][cpu]", check_values)
PLEAT_TEST_FAMILIES("refused types", "[op_cases]", check_refused_types)
