// Derivatives of functions of elements over the whole range of each type: what is computed on the way must
// not overflow or cancel where the derivative itself does not.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "pleat/autograd/backward.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/shape/view.h"
#include "pleat/tests/op_cases/all_cases.h"

using namespace pleat;
using namespace pleat::test;

namespace {

/// The largest number, and the smallest one that arithmetic gives.
struct Limits {
  double largest, smallest;
};
Limits limits_of(DType dtype) {
  if (dtype == float16) return {65504, 0x1p-24};
  if (dtype == bfloat16) return {0x1.FEp127, 0x1p-126};
  return {std::numeric_limits<float>::max(), 0x1p-126};  // denormals are flushed
}

/// Numbers of a type: all of a half type, of float32 as many. Denormals that arithmetic flushes are left out.
Numbers numbers_of(DType dtype) {
  const Tensor bits = empty({0x10000}, {.dtype = is_half(dtype) ? dtype : bfloat16});
  for (uint32_t i = 0; i < 0x10000; ++i)
    reinterpret_cast<uint16_t*>(bits.raw())[i] = static_cast<uint16_t>(i);
  Numbers numbers = bits.to_vector<double>();
  if (dtype == float32)  // between those of bfloat16
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(numbers[i] * (1 + static_cast<double>(i * 40503 % 0x10000) * 0x1p-24));
  std::erase_if(numbers, [least = limits_of(dtype).smallest](double x) {
    return !std::isfinite(x) || (x != 0 && std::abs(x) < least);
  });
  std::ranges::sort(numbers);
  return numbers;
}

/// For one input all numbers, for several all combinations of some.
Tensors samples(DType dtype, std::size_t inputs) {
  Numbers numbers = numbers_of(dtype);
  if (inputs > 1) {
    const std::size_t wanted = inputs == 2 ? 97 : 25;
    Numbers some{0, 1, -1, 0.5};
    for (std::size_t i = 0; i < wanted; ++i)
      some.push_back(numbers[(2 * i + 1) * numbers.size() / (2 * wanted)]);
    numbers = some;
  }
  Tensors result;
  const auto n = static_cast<int64_t>(numbers.size());
  for (std::size_t i = 0; i < inputs; ++i) {
    Shape shape(inputs, 1), whole(inputs, n);
    shape[i] = n;
    result.push_back(ops::reshape(ops::copy(ops::expand(from_vector(numbers, shape), whole)), {-1}));
  }
  return result;
}

/// Derivatives by name: "0" by the first input, "01" of that by the second.
std::map<std::string, Numbers> derivatives(const OpCase& c, const Tensors& inputs, DType dtype,
                                           bool recorded) {
  Tensors x;
  for (const Tensor& t : inputs) x.push_back(ops::cast(t, dtype).set_requires_grad());
  std::map<std::string, Numbers> result;
  const auto differentiate = [&](const auto& self, const std::string& name, const Tensor& y,
                                 int order) -> void {
    if (!y.requires_grad()) return;
    const bool again = order < (x.size() == 1 ? 3 : 2) && recorded && order < c.order;
    const Tensors found = grad({y}, x, {ones(y.shape(), {.dtype = y.dtype(), .device = y.device()})},
                               {.retain_graph = true, .create_graph = recorded, .allow_unused = true});
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!found[i].defined()) continue;
      const std::string to = name + static_cast<char>('0' + i);
      result[to] = found[i].to_vector<double>();
      if (again) self(self, to, found[i], order + 1);
    }
  };
  differentiate(differentiate, "", c.run(x)[0], 1);
  return result;
}

/// Whether a derivative is that of float64: to a few roundings of its own, and `cancels` of 1 where it is
/// computed from a rounded result.
bool is_close(double got, double want, DType dtype, double slack, double cancels) {
  const Limits limits = limits_of(dtype);
  const double unit = rounding(dtype);
  if (!std::isfinite(want)) return true;  // a pole, or beyond where the function is
  const double tolerance = 8 * slack * unit * std::abs(want) + 2 * limits.smallest + cancels * unit;
  if (std::abs(want) + tolerance >= limits.largest && std::isinf(got)) return (got > 0) == (want > 0);
  return std::abs(got - want) <= tolerance;
}

void check_range(const OpCase& c) {
  const bool floating =
      std::ranges::all_of(c.inputs, [](const Tensor& x) { return x.defined() && is_floating(x.dtype()); });
  if (!c.elementwise || !floating || c.order == 0 || c.inputs.size() > 3) return;
  static const std::vector<std::string> from_result{"sigmoid", "tanh", "expm1"};
  const double cancels = std::ranges::find(from_result, c.name) != from_result.end() ? 8 : 0;
  for (const DType dtype : {float16, bfloat16, float32}) {
    const Tensors x = samples(dtype, c.inputs.size());
    const auto wanted = derivatives(c, x, float64, true);
    for (const bool recorded : {false, true})
      for (const auto& [name, got] : derivatives(c, x, dtype, recorded)) {
        const Numbers& want = wanted.at(name);
        std::size_t wrong = 0, first = 0;
        for (std::size_t i = 0; i < got.size(); ++i)
          if (!is_close(got[i], want[i], dtype, c.slack, cancels) && wrong++ == 0) first = i;
        std::string at;
        for (const Tensor& t : x) at += " " + std::to_string(t.to_vector<double>()[first]);
        CAPTURE(pleat::name(dtype), recorded, name, got.size(), at, got[first], want[first]);
        CHECK(wrong == 0);
      }
  }
}

}  // namespace

PLEAT_TEST_FAMILIES("derivatives over the range of a type", "[op_cases][cpu]", check_range)
