#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"

// Values and gradients at kinks, ties and poles, and of what is no finite number, as PyTorch has them:
// tests/fixtures/torch_fixtures/edges.py lists the cases.

using namespace pleat;
using test::Json;

namespace {

using Tensors = std::map<std::string, Tensor>;
/// The result, and indices where there are any.
using Function = std::function<ValuesIndices(const Tensors&, const Json& options)>;

Function of_x(Tensor (*f)(const Tensor&)) {
  return [f](const Tensors& in, const Json&) { return ValuesIndices{f(in.at("x")), {}}; };
}
Function of_x(std::function<Tensor(const Tensor&, const Json&)> f) {
  return [f](const Tensors& in, const Json& options) { return ValuesIndices{f(in.at("x"), options), {}}; };
}
Function of_ab(Tensor (*f)(const Tensor&, const Tensor&)) {
  return [f](const Tensors& in, const Json&) { return ValuesIndices{f(in.at("a"), in.at("b")), {}}; };
}
Function loss(std::function<Tensor(const Tensor&, const Tensor&, const Json&)> f) {
  return [f](const Tensors& in, const Json& options) {
    return ValuesIndices{f(in.at("input"), in.at("target"), options), {}};
  };
}

double number(const Json& options, const char* key) {
  const Json& value = options.at(key);
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}
std::optional<Number> bound(const Json& options, const char* key) {
  if (!options.contains(key)) return {};
  return Number(number(options, key));
}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table = {
      {"exp", of_x(exp)},
      {"expm1", of_x(expm1)},
      {"log", of_x(log)},
      {"log1p", of_x(log1p)},
      {"log2", of_x(log2)},
      {"log10", of_x(log10)},
      {"sqrt", of_x(sqrt)},
      {"rsqrt", of_x(rsqrt)},
      {"reciprocal", of_x(reciprocal)},
      {"sin", of_x(sin)},
      {"cos", of_x(cos)},
      {"tan", of_x(tan)},
      {"asin", of_x(asin)},
      {"acos", of_x(acos)},
      {"atan", of_x(atan)},
      {"asinh", of_x(asinh)},
      {"acosh", of_x(acosh)},
      {"atanh", of_x(atanh)},
      {"exp2", of_x(exp2)},
      {"erfc", of_x(erfc)},
      {"sinh", of_x(sinh)},
      {"cosh", of_x(cosh)},
      {"tanh", of_x(tanh)},
      {"erf", of_x(erf)},
      {"square", of_x(square)},
      {"abs", of_x(abs)},
      {"sign", of_x(sign)},
      {"floor", of_x(floor)},
      {"ceil", of_x(ceil)},
      {"round", of_x(round)},
      {"trunc", of_x(trunc)},
      {"sigmoid", of_x(sigmoid)},
      {"relu", of_x(relu)},
      {"leaky_relu", of_x([](const Tensor& x, const Json& o) {
         return leaky_relu(x, o.contains("negative_slope") ? number(o, "negative_slope") : 0.01);
       })},
      {"elu", of_x([](const Tensor& x, const Json&) { return elu(x); })},
      {"logsigmoid", of_x(log_sigmoid)},
      {"softplus", of_x([](const Tensor& x, const Json&) { return softplus(x); })},
      {"gelu", of_x([](const Tensor& x, const Json&) { return gelu(x); })},
      {"gelu_tanh", of_x([](const Tensor& x, const Json&) { return gelu(x, GeluApproximation::tanh); })},
      {"silu", of_x(silu)},
      {"mish", of_x(mish)},
      {"hardswish", of_x(hardswish)},
      {"hardsigmoid", of_x(hardsigmoid)},
      {"hardtanh", of_x([](const Tensor& x, const Json&) { return hardtanh(x); })},
      {"relu6", of_x(relu6)},
      {"selu", of_x(selu)},
      {"celu", of_x([](const Tensor& x, const Json&) { return celu(x); })},
      {"softsign", of_x(softsign)},
      {"hardshrink", of_x([](const Tensor& x, const Json&) { return hardshrink(x); })},
      {"softshrink", of_x([](const Tensor& x, const Json&) { return softshrink(x); })},
      {"tanhshrink", of_x(tanhshrink)},
      {"threshold", of_x([](const Tensor& x, const Json&) { return threshold(x, 0.5, 2); })},
      {"pow_number", of_x([](const Tensor& x, const Json& o) { return pow(x, number(o, "exponent")); })},
      {"number_pow", of_x([](const Tensor& x, const Json& o) { return pow(number(o, "base"), x); })},
      {"clamp", of_x([](const Tensor& x, const Json& o) {
         return clamp(x, {.min = bound(o, "min"), .max = bound(o, "max")});
       })},
      {"maximum_number",
       of_x([](const Tensor& x, const Json& o) { return maximum(x, number(o, "number")); })},
      {"minimum_number",
       of_x([](const Tensor& x, const Json& o) { return minimum(x, number(o, "number")); })},
      {"add", of_ab(add)},
      {"sub", of_ab(subtract)},
      {"mul", of_ab(multiply)},
      {"div", of_ab(divide)},
      {"pow", of_ab(pow)},
      {"maximum", of_ab(maximum)},
      {"minimum", of_ab(minimum)},
      {"atan2", of_ab(atan2)},
      {"remainder", of_ab(remainder)},
      {"fmod", of_ab(fmod)},
      {"floor_divide", of_ab(floor_divide)},
      {"hypot", of_ab(hypot)},
      {"logaddexp", of_ab(logaddexp)},
      {"where",
       [](const Tensors& in, const Json&) {
         return ValuesIndices{where(in.at("condition") != 0, in.at("a"), in.at("b")), {}};
       }},
      {"masked_fill",
       [](const Tensors& in, const Json&) {
         return ValuesIndices{masked_fill(in.at("x"), in.at("mask") != 0, std::nan("")), {}};
       }},
      {"lerp",
       [](const Tensors& in, const Json&) {
         return ValuesIndices{lerp(in.at("a"), in.at("b"), in.at("weight")), {}};
       }},
      {"l1_loss",
       loss([](const Tensor& x, const Tensor& t, const Json&) { return l1_loss(x, t, {Reduction::none}); })},
      {"mse_loss",
       loss([](const Tensor& x, const Tensor& t, const Json&) { return mse_loss(x, t, {Reduction::none}); })},
      {"smooth_l1_loss", loss([](const Tensor& x, const Tensor& t, const Json& o) {
         return smooth_l1_loss(x, t, {o.value("beta", 1.0), Reduction::none});
       })},
      {"huber_loss", loss([](const Tensor& x, const Tensor& t, const Json& o) {
         return huber_loss(x, t, {o.value("delta", 1.0), Reduction::none});
       })},
      {"bce_with_logits", loss([](const Tensor& x, const Tensor& t, const Json&) {
         return bce_with_logits(x, t, {.reduction = Reduction::none});
       })},
      {"kl_div", loss([](const Tensor& x, const Tensor& t, const Json&) {
         return kl_div(x, t, {.reduction = Reduction::none});
       })},
      {"cross_entropy", loss([](const Tensor& x, const Tensor& t, const Json& o) {
         return cross_entropy(x, t,
                              {.reduction = o.at("reduction") == "none" ? Reduction::none : Reduction::mean});
       })},
      {"sum", of_x([](const Tensor& x, const Json&) { return sum(x, 1); })},
      {"mean", of_x([](const Tensor& x, const Json&) { return mean(x, 1); })},
      {"prod", of_x([](const Tensor& x, const Json&) { return prod(x, 1); })},
      {"logsumexp", of_x([](const Tensor& x, const Json&) { return logsumexp(x, 1); })},
      {"softmax", of_x([](const Tensor& x, const Json&) { return softmax(x, 1); })},
      {"log_softmax", of_x([](const Tensor& x, const Json&) { return log_softmax(x, 1); })},
      {"cumsum", of_x([](const Tensor& x, const Json&) { return cumsum(x, 1); })},
      {"cumprod", of_x([](const Tensor& x, const Json&) { return cumprod(x, 1); })},
      {"amax", of_x([](const Tensor& x, const Json&) { return max(x, 1); })},
      {"amin", of_x([](const Tensor& x, const Json&) { return min(x, 1); })},
      {"max", [](const Tensors& in, const Json&) { return max_with_indices(in.at("x"), 1); }},
      {"min", [](const Tensors& in, const Json&) { return min_with_indices(in.at("x"), 1); }},
      {"sort",
       [](const Tensors& in,
          const Json&
              o) { return sort(in.at("x"), {.dim = 1, .descending = o.value("descending", false)}); }},
      {"topk", [](const Tensors& in, const Json&) { return topk(in.at("x"), 2, {.dim = 1}); }},
      {"var", of_x([](const Tensor& x, const Json& o) {
         return var(x, 1, {.correction = number(o, "correction")});
       })},
      {"std", of_x([](const Tensor& x, const Json& o) {
         return stddev(x, 1, {.correction = number(o, "correction")});
       })},
      {"norm", of_x([](const Tensor& x, const Json& o) { return norm(x, 1, {.p = number(o, "p")}); })},
      {"max_pool1d", of_x([](const Tensor& x, const Json& o) {
         return o.empty() ? max_pool1d(x, {.kernel_size = 2})
                          : max_pool1d(x, {.kernel_size = 3, .stride = 1, .padding = 1});
       })},
      {"sum_0", of_x([](const Tensor& x, const Json&) { return sum(x, 0); })},
      {"mean_0", of_x([](const Tensor& x, const Json&) { return mean(x, 0); })},
      {"prod_0", of_x([](const Tensor& x, const Json&) { return prod(x, 0); })},
      {"logsumexp_0", of_x([](const Tensor& x, const Json&) { return logsumexp(x, 0); })},
      {"cumsum_0", of_x([](const Tensor& x, const Json&) { return cumsum(x, 0); })},
      {"cumprod_0", of_x([](const Tensor& x, const Json&) { return cumprod(x, 0); })},
      {"softmax_0", of_x([](const Tensor& x, const Json&) { return softmax(x, 0); })},
      {"log_softmax_0", of_x([](const Tensor& x, const Json&) { return log_softmax(x, 0); })},
  };
  return table;
}

/// Where Pleat differs from PyTorch on purpose: "case/result" or "case/x", the input whose gradient it is.
const std::map<std::string, std::string>& on_purpose() {
  static const std::map<std::string, std::string> table = {
      {"sign/result", "a NaN stays one"},
      {"abs/x", "a NaN stays one"},
      {"clamp_min_nan/result", "PyTorch ignores a bound of NaN when it is the only one"},
      {"hardswish/x", "0 at -3, as PyTorch itself has since 2.7"},
      {"mish/x", "1 at infinity"},
      {"gelu_tanh/x", "0 and 1 at infinities"},
      {"softsign/x", "0 at infinities"},
      {"hardshrink/x", "a NaN passes the gradient on, as it does in softshrink"},
      {"softshrink/result", "a NaN stays one"},
      {"softshrink/x", "a NaN passes the gradient on"},
      {"remainder/b", "NaN where the result is"},
      {"fmod/b", "NaN where the result is"},
      {"logaddexp/a", "half where both are infinite"},
      {"logaddexp/b", "half where both are infinite"},
      {"smooth_l1_loss_0/input", "0 at 0, as l1_loss"},
      {"smooth_l1_loss_0/target", "0 at 0, as l1_loss"},
      {"kl_div/target", "0 log 0 is constant"},
      // With an infinite logit PyTorch has NaN for its finite neighbours, too.
      {"softmax/result", "0 beside infinity"},
      {"log_softmax/result", "-inf beside infinity"},
      {"log_softmax/x", "that of a softmax of 0 beside infinity"},
      {"cross_entropy_none_0/result", "inf beside infinity"},
      {"cross_entropy_none_0/input", "that of a softmax of 0 beside infinity"},
      {"cross_entropy_mean_0/input", "that of a softmax of 0 beside infinity"},
      {"cross_entropy_none_-100/input", "what is ignored has no gradient, whatever its logits"},
      {"cross_entropy_mean_-100/input", "what is ignored has no gradient, whatever its logits"},
      {"logsumexp/x", "0 where all are -inf"},
      {"amax/x", "it goes to the NaN that is the result"},
      {"amin/x", "it goes to the NaN that is the result"},
      {"cumprod/x", "products of the other factors, without division"},
      {"norm_1/x", "a NaN stays one"},
      {"norm_inf/x", "a NaN stays one"},
      {"norm_-inf/x", "a NaN stays one"},
      {"max_pool1d_overlapping/x", "of NaNs the first, as max_with_indices has it"},
  };
  return table;
}

/// "[3]: 1, expected nan" for each element that differs.
std::vector<std::string> differences(const Tensor& found, const Tensor& expected, double tolerance) {
  if (!found.defined()) return {"no tensor"};
  if (found.shape() != expected.shape()) return {"shape " + to_string(found.shape())};
  std::vector<std::string> result;
  const auto a = found.to_vector<double>(), b = expected.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                      std::abs(a[i] - b[i]) <= tolerance * std::max(1.0, std::abs(b[i]));
    if (!same)
      result.push_back("[" + std::to_string(i) + "]: " + std::to_string(a[i]) + ", expected " +
                       std::to_string(b[i]));
  }
  return result;
}

void compare_all(DType dtype, double tolerance) {
  for (const Json& c : test::fixture("edges").at("cases")) {
    const std::string name = c.at("name"), op = c.at("op");
    CAPTURE(name, pleat::name(dtype));
    const auto function = functions().find(op);
    REQUIRE(function != functions().end());
    Tensors inputs = test::tensors_from(c.at("inputs"));
    for (auto& [key, input] : inputs)
      if (is_floating(input.dtype())) {
        CAPTURE(key);
        input = input.to(dtype).set_requires_grad();
      }
    const auto [y, indices] = function->second(inputs, c.at("options"));
    const auto same = [&](const std::string& what, const Tensor& found, const Json& expected) {
      // PyTorch has 1/6 in float32 there.
      const auto lines = differences(found, test::tensor_from(expected),
                                     op == "hardsigmoid" ? std::max(tolerance, 1e-7) : tolerance);
      if (on_purpose().contains(name + "/" + what)) {
        CAPTURE(what);
        CHECK_FALSE(lines.empty());
        return;
      }
      for (const std::string& line : lines) FAIL_CHECK(what << " " << line);
      if (lines.empty()) SUCCEED();
    };
    same("result", y, c.at("outputs").at("y"));
    if (indices.defined()) same("indices", indices, c.at("outputs").at("indices"));
    // On a GPU a variance that is NaN has a gradient of NaN, elsewhere PyTorch's, which may be infinite.
    if (op == "var" && default_device().is_cuda()) continue;
    const Tensor dy = test::tensor_from(c.at("grad_output")).to(dtype);
    std::vector<Tensor> leaves;
    for (const auto& [key, gradient] : c.at("grads").items()) leaves.push_back(inputs.at(key));
    if (!leaves.empty()) {
      // A graph of gradients is made of other functions, which must say the same.
      const Grads recorded = grad({y}, leaves, {dy}, {.retain_graph = true, .create_graph = true});
      const Grads plain = grad({y}, leaves, {dy}, {.retain_graph = true});
      for (std::size_t i = 0; i < leaves.size(); ++i)
        for (const std::string& line : differences(recorded[i], plain[i], tolerance))
          FAIL_CHECK("recorded gradient " << i << " " << line << " unrecorded");
    }
    y.backward(dy);
    for (const auto& [key, grad] : c.at("grads").items()) same(key, inputs.at(key).grad(), grad);
  }
}

}  // namespace

TEST_CASE("special values, and gradients at kinks and ties, are PyTorch's", "[edges]") {
  SECTION("in float64") { compare_all(float64, 1e-12); }
  SECTION("in float32") { compare_all(float32, 1e-5); }
}
