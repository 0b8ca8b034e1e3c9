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
#include "pleat/ops/loss/loss.h"
#include "pleat/ops/loss/loss_formulas.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/op_cases/all_cases.h"

using namespace pleat;
using namespace pleat::test;

namespace {

/// The largest number, and the smallest one that is not flushed to 0.
struct Limits {
  double largest, smallest;
};
Limits limits_of(DType dtype) {
  if (dtype == float16) return {65504, 0x1p-24};
  if (dtype == bfloat16) return {0x1.FEp127, 0x1p-126};
  return {std::numeric_limits<float>::max(), 0x1p-126};  // denormals are flushed
}

/// Numbers of a type, rising: all of a half type, of float32 some of each size. Those that are flushed to 0
/// are left out.
Numbers numbers_of(DType dtype) {
  const Tensor bits = empty({0x10000}, {.dtype = is_half(dtype) ? dtype : bfloat16});
  for (std::size_t i = 0; i < 0x10000; ++i)
    reinterpret_cast<uint16_t*>(bits.raw())[i] = static_cast<uint16_t>(i);
  const Numbers all = bits.to_vector<double>();
  Numbers numbers;
  for (std::size_t i = 0; i < all.size(); i += dtype == float32 ? 13 : 1) {
    // Those of float32 lie between two of bfloat16.
    const double between = dtype == float32 ? static_cast<double>(i * 40503 % 0x10000) * 0x1p-24 : 0;
    const double x = dtype == float32 ? static_cast<float>(all[i] * (1 + between)) : all[i];
    if (std::isfinite(x) && (x == 0 || std::abs(x) >= limits_of(dtype).smallest)) numbers.push_back(x);
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// For one input all numbers; for several all combinations of some, which are not among the smallest.
Tensors samples(DType dtype, std::size_t inputs) {
  Numbers numbers = numbers_of(dtype);
  if (inputs > 1) {
    std::erase_if(numbers, [](double x) { return std::abs(x) < 1e-18; });
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
    result.push_back(reshape(ops::copy(expand(from_vector(numbers, shape), whole)), {-1}));
  }
  return result;
}

/// Values, by the name "", and derivatives: "0" by the first input, "01" of that by the second.
using Derivatives = std::map<std::string, Numbers>;

Derivatives derivatives(const OpCase& c, const Tensors& inputs, DType dtype, bool recorded) {
  Tensors x;
  for (const Tensor& t : inputs) x.push_back(ops::cast(t, dtype).set_requires_grad());
  Derivatives result;
  const std::size_t orders = !recorded ? 1 : x.size() == 1 ? 3 : 2;
  const auto differentiate = [&](const auto& self, const std::string& name, const Tensor& y) -> void {
    result[name] = y.to_vector<double>();
    if (name.size() == orders || !y.requires_grad()) return;
    const Tensors found = grad({y}, x, {ones(y.shape(), {.dtype = y.dtype(), .device = y.device()})},
                               {.retain_graph = true, .create_graph = recorded, .allow_unused = true});
    for (std::size_t i = 0; i < x.size(); ++i)
      if (found[i].defined()) self(self, name + static_cast<char>('0' + i), found[i]);
  };
  differentiate(differentiate, "", c.run(x)[0]);
  return result;
}

/// What a derivative may be off for another reason than its own rounding. A third one has zeros of its own.
double cancels(const OpCase& c, DType dtype, std::size_t order) {
  // From a result that is rounded, which comes near 1.
  static const std::vector<std::string> from_result{"sigmoid", "tanh"};
  // From terms near 1 that cancel, in float32.
  static const std::vector<std::string> terms{
      "softplus",         "log_sigmoid",       "silu",      "mish",  "gelu",   "elu",
      "hardswish",        "tanhshrink",        "logaddexp", "logit", "lgamma", "bce_with_logits",
      "soft_margin_loss", "sigmoid_focal_loss"};
  const auto is_one = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, c.name) != names.end();
  };
  if (is_one(from_result)) return 8 * rounding(dtype);
  if (is_one(terms)) return 1024 * rounding(float32);
  return order == 3 ? 4 * rounding(float32) : 0;
}

/// The largest of the derivatives of one order, which are sums of the same terms.
double scale_at(const Derivatives& all, std::size_t order, std::size_t i) {
  double most = 0;
  for (const auto& [name, numbers] : all)
    if (name.size() == order) most = std::max(most, std::isnan(numbers[i]) ? infinity : std::abs(numbers[i]));
  return most;
}

/// Whether derivatives of an order can be told at a point: not where the function has left its domain or the
/// type, nor where derivatives up to that order do.
bool is_within(const Derivatives& want, const Derivatives& got, std::size_t order, std::size_t i,
               DType dtype) {
  if (!std::isfinite(got.at("")[i])) return false;
  for (std::size_t k = 0; k <= order; ++k)
    if (!(scale_at(want, k, i) < limits_of(dtype).largest / 8)) return false;
  return true;
}

void check_range(const OpCase& c) {
  const bool floating =
      std::ranges::all_of(c.inputs, [](const Tensor& x) { return x.defined() && is_floating(x.dtype()); });
  if (!c.elementwise || !floating || c.order < 2 || c.inputs.size() > 3) return;
  // The exponent of a derivative is rounded, too; erf has an exponential of large numbers.
  const double slack = c.name == "pow" || c.name.starts_with("erf") ? 10 * c.slack : c.slack;
  for (const DType dtype : {float16, bfloat16, float32}) {
    const Tensors x = samples(dtype, c.inputs.size());
    const Derivatives want = derivatives(c, x, float64, true);
    const double smallest = dtype == float16 ? 0x1p-23 : 1e-30;
    for (const bool recorded : {false, true}) {
      const Derivatives got = derivatives(c, x, dtype, recorded);
      for (const auto& [name, numbers] : got) {
        if (name.empty()) continue;
        std::string wrong;
        std::size_t count = 0;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          if (!is_within(want, got, name.size(), i, dtype)) continue;
          const double tolerance = 8 * static_cast<double>(name.size()) * slack * rounding(dtype) *
                                       scale_at(want, name.size(), i) +
                                   cancels(c, dtype, name.size()) + smallest;
          if (std::abs(numbers[i] - want.at(name)[i]) <= tolerance || count++ > 0) continue;
          for (const Tensor& t : x) wrong += Catch::Detail::stringify(t.to_vector<double>()[i]) + " ";
          wrong += ": " + Catch::Detail::stringify(numbers[i]) + " for " +
                   Catch::Detail::stringify(want.at(name)[i]);
        }
        CAPTURE(pleat::name(dtype), recorded, name, numbers.size(), wrong);
        CHECK(count == 0);
      }
    }
  }
}

}  // namespace

TEST_CASE("derivatives over the range of a type: losses of elements", "[op_cases][cpu]") {
  using Loss = Tensor (*)(const Tensor& x, const Tensor& target);
  const std::vector<std::pair<std::string, Loss>> losses{
      {"bce_with_logits", [](const Tensor& x, const Tensor& t) { return binary_cross_entropies(x, t, {}); }},
      {"soft_margin_loss",
       [](const Tensor& x, const Tensor& t) { return soft_margin_losses(x, t, Reduction::none); }},
      {"hinge_embedding_loss",
       [](const Tensor& x, const Tensor& t) { return hinge_embedding_losses(x, t, 1, Reduction::none); }},
      {"sigmoid_focal_loss",
       [](const Tensor& x, const Tensor& t) { return focal_losses(x, t, 0.25, 2, Reduction::none); }}};
  for (const auto& [name, loss] : losses)
    for (const double target : {-1.0, 0.0, 0.25, 1.0}) DYNAMIC_SECTION(name << ", target " << target) {
        const Function call = [f = loss, target](const Tensors& x) {
          return f(x[0], full_like(x[0], target));
        };
        check_range({.name = name, .inputs = {normal({2})}, .call = call, .elementwise = true});
      }
}

PLEAT_TEST_FAMILIES("derivatives over the range of a type", "[op_cases][cpu]", check_range)
