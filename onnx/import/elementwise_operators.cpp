#include "pleat/onnx/import/operators.h"

/// Numbers one by one.

namespace pleat::onnx::imported {
namespace {

/// An operator of two tensors, of which one may be a number.
template <class F>
Operator binary(F f) {
  return {[f](NodeCall& n) -> NodeResults {
    if (const auto b = n.constant(1, n.value(0).on_host ? -1 : n.rank(0))) return f(n.x(0), Number(*b));
    if (const auto a = n.constant(0, n.value(1).on_host ? -1 : n.rank(1))) return f(Number(*a), n.x(1));
    return f(n.x(0), n.x(1));
  }};
}

/// Of integers towards 0.
Tensor divided(X a, X b) {
  return is_floating(a.dtype()) ? divide(a, b) : floor_divide(subtract(a, fmod(a, b)), b);
}

Operator division() {
  return {[](NodeCall& n) -> NodeResults {
    if (!is_floating(n.value(0).tensor.dtype())) return divided(n.x(0), n.x(1));
    return binary([](const auto& a, const auto& b) { return divide(a, b); }).compute(n);
  }};
}

Tensor power(NodeCall& n) {
  const DType dtype = n.dtype(0);
  if (const auto exponent = n.constant(1, n.rank(0)); exponent && is_floating(dtype))
    return pow(n.x(0), *exponent);
  return pow(n.x(0), n.x(1)).to(dtype);
}

Tensor modulo(NodeCall& n) { return n.flag("fmod") ? fmod(n.x(0), n.x(1)) : remainder(n.x(0), n.x(1)); }

/// Of any number of tensors.
template <class F>
Operator folded(F f) {
  return {[f](NodeCall& n) -> NodeResults {
    Tensor y = n.x(0);
    for (std::size_t i = 1; i < n.inputs(); ++i) y = f(y, n.x(i));
    return y;
  }};
}

Tensor mean_of(NodeCall& n) {
  Tensor y = n.x(0);
  for (std::size_t i = 1; i < n.inputs(); ++i) y = y + n.x(i);
  return y / static_cast<double>(n.inputs());
}

Tensor clip(NodeCall& n) {
  ClampOptions bounds;
  const auto bound = [&](std::size_t i, const char* name) -> std::optional<Number> {
    if (n.opset() < 11) return n.has(name) ? std::optional<Number>(n.number(name, 0)) : std::nullopt;
    if (!n.has(i)) return std::nullopt;
    if (is_floating(n.value(i).tensor.dtype())) return Number(n.number(i));
    return Number(n.integer(i));
  };
  bounds.min = bound(1, "min");
  bounds.max = bound(2, "max");
  if (!bounds.min && !bounds.max) return n.x();
  if (bounds.min && bounds.max && bounds.min->to<double>() > bounds.max->to<double>())
    return minimum(maximum(n.x(), *bounds.min), *bounds.max);
  return clamp(n.x(), bounds);
}

Tensor hard_sigmoid(NodeCall& n) {
  const double alpha = n.number("alpha", 0.2), beta = n.number("beta", 0.5);
  if (beta == 0.5 && std::abs(alpha - 1.0 / 6) < 1e-6) return hardsigmoid(n.x());
  return clamp(n.x() * alpha + beta, 0, 1);
}

Tensor prelu_of(NodeCall& n) {
  const Tensor &x = n.x(0), &slope = n.x(1);
  // One slope a channel, [C, 1, 1...]; any other broadcasts.
  const bool by_channel = x.rank() >= 2 && slope.rank() == x.rank() - 1 && slope.numel() == slope.size(0) &&
                          slope.size(0) == x.size(1);
  if (is_floating(x.dtype()) && (by_channel || (slope.numel() == 1 && slope.rank() <= x.rank())))
    return prelu(x, view(slope.contiguous(), {slope.numel()}));
  return where(x < 0, x * slope, x);
}

Tensor shrink(NodeCall& n) {
  const double bias = n.number("bias", 0), lambd = n.number("lambd", 0.5);
  const Tensor& x = n.x();
  const Tensor zero = zeros_like(x);
  return where(x < -lambd, x + bias, where(x > lambd, x - bias, zero)).to(x.dtype());
}

Tensor is_infinite(NodeCall& n) {
  const bool positive = n.flag("detect_positive", true), negative = n.flag("detect_negative", true);
  const Tensor& x = n.x();
  if (positive && negative) return isinf(x);
  if (!positive && !negative) return logical_and(isinf(x), isnan(x));
  return positive ? logical_and(isinf(x), x > 0) : logical_and(isinf(x), x < 0);
}

Tensor selu_of(NodeCall& n) {
  if (!n.has("alpha") && !n.has("gamma")) return selu(n.x());
  const double alpha = n.number("alpha", 1.67326319217681884765625),
               gamma = n.number("gamma", 1.05070102214813232421875);
  return gamma * where(n.x() > 0, n.x(), alpha * expm1(minimum(n.x(), 0)));
}

Tensor cast(NodeCall& n, DType dtype) {
  const Tensor& x = n.x();
  if (x.dtype() == dtype) return x;
  if (is_floating(x.dtype()) && !is_floating(dtype) && dtype != boolean) return trunc(x).to(dtype);
  return x.to(dtype);
}

/// Integers of fewer bits than Pleat holds them in begin again at their other end.
Tensor wrapped(X x, int64_t type) {
  const IntegerRange range = range_of(type);
  if (range.type != type || type == 2 || type == 6) return x;
  return remainder(x - range.low, range.high - range.low + 1) + range.low;
}

NodeResults cast_to(NodeCall& n, int64_t type, DType dtype) {
  GraphValue y = wrapped(cast(n, dtype), type);
  y.type = type;
  return y;
}

/// Drops where the network trains, whatever the file was exported for.
NodeResults dropout_of(NodeCall& n) {
  const double ratio = n.opset() < 12 ? n.number("ratio", 0.5) : n.has(1) ? n.number(1) : 0.5;
  const Tensor& x = n.x();
  const Tensor y = n.training() ? dropout(x, ratio) : x;
  if (!n.wants(1)) return y;
  const Tensor mask = n.training() ? logical_or(y != 0, x == 0) : ones_like(x) > 0;
  return std::vector{y, mask};
}

Tensor random(NodeCall& n, bool normal, const Shape& shape, DType dtype, Device device) {
  const Tensor y = empty(Sizes(shape), {.dtype = dtype, .device = device});
  if (normal)
    fill_normal_(y, n.number("mean", 0), n.number("scale", 1));
  else
    fill_uniform_(y, n.number("low", 0), n.number("high", 1));
  return y;
}

Operator random_operator(bool normal, bool like) {
  return {.compute = [normal, like](NodeCall& n) -> NodeResults {
            const DType dtype =
                n.has("dtype") || !like ? n.dtype_of_number(n.integer("dtype", 1)) : n.dtype();
            return random(n, normal, like ? n.x().shape() : Shape(n.integers("shape")), dtype,
                          like ? n.x().device() : default_device());
          },
          .depends_on_mode = true};
}

Tensor bernoulli_of(NodeCall& n) {
  const DType dtype = n.has("dtype") ? n.dtype_of_number(n.integer("dtype", 1)) : n.dtype();
  return (rand_like(n.x()) < n.x()).to(dtype);
}

Tensor gelu_of(NodeCall& n) {
  return gelu(n.x(),
              n.text("approximate", "none") == "tanh" ? GeluApproximation::tanh : GeluApproximation::none);
}

/// Of integers; what is shifted out is gone.
Tensor bit_shift(NodeCall& n) {
  const Tensor& x = n.x(0);
  const bool left = n.text("direction", "LEFT") == "LEFT";
  const Tensor places = n.x(1).to(int64), factor = pow(2, clamp(places, 0, 62));
  const Tensor y =
      n.text("direction", "LEFT") == "LEFT" ? x.to(int64) * factor : floor_divide(x.to(int64), factor);
  const int64_t width = 8 * size_of(x.dtype());
  const Tensor beyond = logical_or(places < 0, places >= width);
  const Tensor rest = left ? zeros_like(y) : where(x < 0, full_like(y, -1), zeros_like(y));
  return wrapped(where(beyond, rest, y).to(x.dtype()), n.value(0).type);
}

/// log(1 + e^x) without a threshold.
Tensor softplus_of(X x) { return softplus(x, {.threshold = std::numeric_limits<float>::max()}); }

}  // namespace

Operators elementwise_operators() {
  const auto number = [](const char* name, double otherwise, Tensor (*f)(X, Real)) -> Operator {
    return {[=](NodeCall& n) -> NodeResults { return f(n.x(), n.number(name, otherwise)); }};
  };
  const std::vector<Slot> first{Slot::operand, Slot::option};
  Operators all{
      {"Add/2", binary([](const auto& a, const auto& b) { return add(a, b); })},
      {"Bernoulli/1(dtype seed)", {.compute = bernoulli_of, .depends_on_mode = true}},
      {"BitShift/2(direction)", {bit_shift}},
      {"Cast/1(saturate to)", {[](NodeCall& n) {
         const int64_t type = n.integer("to", 1);
         return cast_to(n, type, n.dtype_of_number(type));
       }}},
      {"CastLike/2(saturate)", {[](NodeCall& n) { return cast_to(n, n.value(1).type, n.dtype(1)); }}},
      {"Celu/1(alpha)", number("alpha", 1, [](X x, Real a) { return celu(x, a); })},
      {"Clip/3(max min)", {clip, first}},
      {"Div/2", division()},
      {"Dropout/3(ratio seed)", {dropout_of, first, true}},
      {"Elu/1(alpha)", number("alpha", 1, [](X x, Real a) { return elu(x, a); })},
      {"Gelu/1(approximate)", {gelu_of}},
      {"HardSigmoid/1(alpha beta)", {hard_sigmoid}},
      {"Identity/1", {[](NodeCall& n) -> NodeResults { return n.value(0); }}},
      {"IsInf/1(detect_negative detect_positive)", {is_infinite}},
      {"LeakyRelu/1(alpha)", number("alpha", 0.01, [](X x, Real a) { return leaky_relu(x, a); })},
      {"Max", folded([](X a, X b) { return maximum(a, b); })},
      {"Mean", {mean_of}},
      {"Min", folded([](X a, X b) { return minimum(a, b); })},
      {"Mod/2(fmod)", {modulo}},
      {"Mul/2", binary([](const auto& a, const auto& b) { return multiply(a, b); })},
      {"PRelu/2", {prelu_of, {Slot::operand, Slot::parameter}}},
      {"Pow/2", {power}},
      {"RandomNormal/0(dtype mean scale seed shape)", random_operator(true, false)},
      {"RandomNormalLike/1(dtype mean scale seed)", random_operator(true, true)},
      {"RandomUniform/0(dtype high low seed shape)", random_operator(false, false)},
      {"RandomUniformLike/1(dtype high low seed)", random_operator(false, true)},
      {"Selu/1(alpha gamma)", {selu_of}},
      {"Shrink/1(bias lambd)", {shrink}},
      {"Softplus/1", plain(softplus_of)},
      {"Sub/2", binary([](const auto& a, const auto& b) { return subtract(a, b); })},
      {"Sum", folded([](X a, X b) { return a + b; })},
      {"Swish/1(alpha)", {[](NodeCall& n) -> NodeResults {
         const double alpha = n.number("alpha", 1);
         return alpha == 1 ? silu(n.x()) : n.x() * sigmoid(alpha * n.x());
       }}},
      {"ThresholdedRelu/1(alpha)", number("alpha", 1, [](X x, Real a) { return threshold(x, a, 0); })},
      {"Where/3", plain([](X c, X a, X b) { return where(c, a, b); })},
      {"com.microsoft.BiasGelu/2", plain([](X x, X bias) { return gelu(x + bias); })},
      {"com.microsoft.FastGelu/2", {[](NodeCall& n) -> NodeResults {
         return gelu(n.has(1) ? n.x(0) + n.x(1) : n.x(0), GeluApproximation::tanh);
       }}},
      {"com.microsoft.Gelu/1", plain([](X x) { return gelu(x); })},
      {"com.microsoft.QuickGelu/1(alpha)",
       {[](NodeCall& n) -> NodeResults { return n.x() * sigmoid(n.number("alpha", 1.702) * n.x()); }}},
  };
  // Those that are one function without options.
  using Unary = std::pair<const char*, Tensor (*)(X)>;
  const std::initializer_list<Unary> unary = {{"Abs/1", abs},           {"Acos/1", acos},
                                              {"Acosh/1", acosh},       {"Asin/1", asin},
                                              {"Asinh/1", asinh},       {"Atan/1", atan},
                                              {"Atanh/1", atanh},       {"Ceil/1", ceil},
                                              {"Cos/1", cos},           {"Cosh/1", cosh},
                                              {"Erf/1", erf},           {"Exp/1", exp},
                                              {"Floor/1", floor},       {"HardSwish/1", hardswish},
                                              {"IsNaN/1", isnan},       {"Log/1", log},
                                              {"Mish/1", mish},         {"Neg/1", negate},
                                              {"Not/1", logical_not},   {"Reciprocal/1", reciprocal},
                                              {"Relu/1", relu},         {"Round/1", round},
                                              {"Sigmoid/1", sigmoid},   {"Sign/1", sign},
                                              {"Sin/1", sin},           {"Sinh/1", sinh},
                                              {"Softsign/1", softsign}, {"Sqrt/1", sqrt},
                                              {"Tan/1", tan},           {"Tanh/1", tanh}};
  for (const auto& [name, f] : unary) all.emplace(name, plain(f));
  using Binary = std::pair<const char*, Tensor (*)(X, X)>;
  const std::initializer_list<Binary> binary = {{"And/2", logical_and}, {"Equal/2", equal},
                                                {"Greater/2", greater}, {"GreaterOrEqual/2", greater_equal},
                                                {"Less/2", less},       {"LessOrEqual/2", less_equal},
                                                {"Or/2", logical_or},   {"Xor/2", logical_xor}};
  for (const auto& [name, f] : binary) all.emplace(name, plain(f));
  return all;
}

}  // namespace pleat::onnx::imported
