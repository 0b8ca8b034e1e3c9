// Elementwise functions on the other device.

#include "pleat/autograd/functions/activation.h"
#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/compare.h"
#include "pleat/autograd/functions/copy.h"
#include "pleat/autograd/functions/dropout.h"
#include "pleat/autograd/functions/math.h"
#include "pleat/autograd/functions/select.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"

using namespace pleat;
using namespace pleat::test;

namespace {

const Shape image{2, 3, 5, 4};

/// A function of one tensor, on numbers between two bounds.
void agrees_between(double low, double high, const std::function<Tensor(const Tensor&)>& f) {
  agrees({uniform(image, low, high)}, [&](const Tensors& x) { return f(x[0]); });
}

void agrees_in_value_between(double low, double high, const std::function<Tensor(const Tensor&)>& f) {
  agrees_in_value({uniform(image, low, high)}, [&](const Tensors& x) { return f(x[0]); });
}

/// Two operands that broadcast, the second away from 0.
Tensors operands() { return {normal(image), uniform({3, 1, 4}, 0.5, 2, 2)}; }

}  // namespace

TEST_CASE("device: exp", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return exp(x); });
}
TEST_CASE("device: expm1", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return expm1(x); });
}
TEST_CASE("device: log", "[device]") {
  agrees_between(0.1, 9, [](const Tensor& x) { return log(x); });
}
TEST_CASE("device: log1p", "[device]") {
  agrees_between(-0.8, 9, [](const Tensor& x) { return log1p(x); });
}
TEST_CASE("device: log2", "[device]") {
  agrees_between(0.1, 9, [](const Tensor& x) { return log2(x); });
}
TEST_CASE("device: log10", "[device]") {
  agrees_between(0.1, 9, [](const Tensor& x) { return log10(x); });
}
TEST_CASE("device: sqrt", "[device]") {
  agrees_between(0.1, 9, [](const Tensor& x) { return sqrt(x); });
}
TEST_CASE("device: rsqrt", "[device]") {
  agrees_between(0.1, 9, [](const Tensor& x) { return rsqrt(x); });
}
TEST_CASE("device: reciprocal", "[device]") {
  agrees_between(0.2, 9, [](const Tensor& x) { return reciprocal(x); });
}
TEST_CASE("device: sin", "[device]") {
  agrees_between(-6, 6, [](const Tensor& x) { return sin(x); });
}
TEST_CASE("device: cos", "[device]") {
  agrees_between(-6, 6, [](const Tensor& x) { return cos(x); });
}
TEST_CASE("device: tan", "[device]") {
  agrees_between(-1.2, 1.2, [](const Tensor& x) { return tan(x); });
}
TEST_CASE("device: asin", "[device]") {
  agrees_between(-0.9, 0.9, [](const Tensor& x) { return asin(x); });
}
TEST_CASE("device: acos", "[device]") {
  agrees_between(-0.9, 0.9, [](const Tensor& x) { return acos(x); });
}
TEST_CASE("device: atan", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return atan(x); });
}
TEST_CASE("device: atan2", "[device]") {
  agrees(operands(), [](const Tensors& x) { return atan2(x[0], x[1]); });
}
TEST_CASE("device: sinh", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return sinh(x); });
}
TEST_CASE("device: cosh", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return cosh(x); });
}
TEST_CASE("device: tanh", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return tanh(x); });
}
TEST_CASE("device: erf", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return erf(x); });
}
TEST_CASE("device: square", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return square(x); });
}
TEST_CASE("device: abs", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return abs(x); });
}
TEST_CASE("device: sign", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return sign(x); });
}
TEST_CASE("device: floor", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return floor(x); });
}
TEST_CASE("device: ceil", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return ceil(x); });
}
TEST_CASE("device: round", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return round(x); });
}
TEST_CASE("device: trunc", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return trunc(x); });
}
TEST_CASE("device: pow", "[device]") {
  const Tensors x{uniform(image, 0.3, 2), uniform({3, 1, 4}, -2, 2, 2)};
  agrees(x, [](const Tensors& t) { return pow(t[0], t[1]); });
  agrees_between(0.3, 2, [](const Tensor& t) { return pow(t, 2.5); });
  agrees_between(-2, 2, [](const Tensor& t) { return pow(t, 3); });
  agrees_between(-2, 2, [](const Tensor& t) { return pow(1.7, t); });
}
TEST_CASE("device: remainder", "[device]") {
  // Odd multiples of 1/16 by multiples of 1/8: exact in each type, and never on a jump.
  const Tensor odd = 2 * ops::cast(integers(image, -20, 20), float64) + 1;
  const Tensors x{odd / 16, ops::cast(integers({3, 1, 4}, 3, 9, 2), float64) / 8};
  agrees(x, [](const Tensors& t) { return remainder(t[0], t[1]); });
  agrees(x, [](const Tensors& t) { return remainder(t[0], 0.75); });
}
TEST_CASE("device: maximum", "[device]") {
  agrees(operands(), [](const Tensors& x) { return maximum(x[0], x[1]); });
  agrees_between(-1, 1, [](const Tensor& x) { return maximum(x, 0.25); });
}
TEST_CASE("device: minimum", "[device]") {
  agrees(operands(), [](const Tensors& x) { return minimum(x[0], x[1]); });
  agrees_between(-1, 1, [](const Tensor& x) { return minimum(x, 0.25); });
}
TEST_CASE("device: clamp", "[device]") {
  agrees_between(-1, 1, [](const Tensor& x) { return clamp(x, {.min = -0.4, .max = 0.3}); });
  agrees_between(-1, 1, [](const Tensor& x) { return clamp_(clone(x), {.max = 0.3}); });
}
TEST_CASE("device: lerp", "[device]") {
  const Tensors x{normal(image), normal(image, 2), uniform({3, 1, 1}, 0, 1, 3)};
  agrees(x, [](const Tensors& t) { return lerp(t[0], t[1], t[2]); });
  agrees(x, [](const Tensors& t) { return lerp(t[0], t[1], 0.3); });
  agrees(x, [](const Tensors& t) { return lerp_(clone(t[0]), t[1], t[2]); });
  agrees(x, [](const Tensors& t) { return lerp_(clone(t[0]), t[1], 0.3); });
}

TEST_CASE("device: add", "[device]") {
  agrees(operands(), [](const Tensors& x) { return add(x[0], x[1]); });
  agrees(operands(), [](const Tensors& x) { return 2 + (x[0] + 0.5); });
  agrees(operands(), [](const Tensors& x) { return add_(clone(x[0]), x[1]); });
}
TEST_CASE("device: subtract", "[device]") {
  agrees(operands(), [](const Tensors& x) { return subtract(x[0], x[1]); });
  agrees(operands(), [](const Tensors& x) { return 2 - (x[0] - 0.5); });
  agrees(operands(), [](const Tensors& x) { return subtract_(clone(x[0]), x[1]); });
}
TEST_CASE("device: multiply", "[device]") {
  agrees(operands(), [](const Tensors& x) { return multiply(x[0], x[1]); });
  agrees(operands(), [](const Tensors& x) { return 2 * (x[0] * 0.7); });
  agrees(operands(), [](const Tensors& x) { return multiply_(clone(x[0]), x[1]); });
}
TEST_CASE("device: divide", "[device]") {
  agrees(operands(), [](const Tensors& x) { return divide(x[0], x[1]); });
  agrees(operands(), [](const Tensors& x) { return 2 / (x[1] / 3); });
  agrees(operands(), [](const Tensors& x) { return divide_(clone(x[0]), x[1]); });
}
TEST_CASE("device: negate", "[device]") {
  agrees_between(-1, 1, [](const Tensor& x) { return negate(x); });
}
TEST_CASE("device: fill_", "[device]") {
  agrees_in_value_between(-1, 1, [](const Tensor& x) { return fill_(clone(x), 2.5); });
}

TEST_CASE("device: relu", "[device]") {
  agrees_between(-1, 1, [](const Tensor& x) { return relu(x); });
  agrees_between(-1, 1, [](const Tensor& x) { return relu_(clone(x)); });
}
TEST_CASE("device: leaky_relu", "[device]") {
  agrees_between(-1, 1, [](const Tensor& x) { return leaky_relu(x, 0.2); });
}
TEST_CASE("device: prelu", "[device]") {
  for (const Shape& weight : {Shape{}, Shape{3}})
    agrees({normal(image), uniform(weight, 0.1, 1, 2)}, [](const Tensors& x) { return prelu(x[0], x[1]); });
}
TEST_CASE("device: elu", "[device]") {
  agrees_between(-2, 2, [](const Tensor& x) { return elu(x, 1.3); });
}
TEST_CASE("device: sigmoid", "[device]") {
  agrees_between(-4, 4, [](const Tensor& x) { return sigmoid(x); });
}
TEST_CASE("device: log_sigmoid", "[device]") {
  agrees_between(-4, 4, [](const Tensor& x) { return log_sigmoid(x); });
}
TEST_CASE("device: softplus", "[device]") {
  agrees_between(-4, 4, [](const Tensor& x) { return softplus(x, {.beta = 2, .threshold = 5}); });
}
TEST_CASE("device: gelu", "[device]") {
  agrees_between(-3, 3, [](const Tensor& x) { return gelu(x); });
  agrees_between(-3, 3, [](const Tensor& x) { return gelu(x, GeluApproximation::tanh); });
}
TEST_CASE("device: silu", "[device]") {
  agrees_between(-4, 4, [](const Tensor& x) { return silu(x); });
}
TEST_CASE("device: mish", "[device]") {
  agrees_between(-4, 4, [](const Tensor& x) { return mish(x); });
}
TEST_CASE("device: hardswish", "[device]") {
  agrees_between(-4, 4, [](const Tensor& x) { return hardswish(x); });
}
TEST_CASE("device: hardsigmoid", "[device]") {
  agrees_between(-4, 4, [](const Tensor& x) { return hardsigmoid(x); });
}
TEST_CASE("device: hardtanh", "[device]") {
  agrees_between(-4, 4, [](const Tensor& x) { return hardtanh(x, -1, 2); });
}
TEST_CASE("device: relu6", "[device]") {
  agrees_between(-4, 9, [](const Tensor& x) { return relu6(x); });
}

TEST_CASE("device: where", "[device]") {
  const Tensors x{coins(image), normal(image), normal({3, 1, 4}, 2)};
  agrees(x, [](const Tensors& t) { return where(t[0], t[1], t[2]); });
  agrees(x, [](const Tensors& t) { return where(t[0], t[1], 0.5); });
  agrees(x, [](const Tensors& t) { return where(t[0], 0.5, t[1]); });
  agrees_in_value(x, [](const Tensors& t) { return where(t[0], 0.5, 2); });
}
TEST_CASE("device: masked_fill", "[device]") {
  const Tensors x{normal(image), coins({5, 4})};
  agrees(x, [](const Tensors& t) { return masked_fill(t[0], t[1], 0.5); });
  agrees(x, [](const Tensors& t) { return masked_fill_(clone(t[0]), t[1], 0.5); });
}

TEST_CASE("device: comparisons", "[device]") {
  const Tensors x{integers(image, 0, 4), integers({3, 1, 4}, 0, 4, 2), normal(image)};
  agrees_in_value(x, [](const Tensors& t) {
    return Tensors{equal(t[0], t[1]),   not_equal(t[0], t[1]),     less(t[0], t[1]), less_equal(t[0], t[1]),
                   greater(t[0], t[1]), greater_equal(t[0], t[1]), t[2] < 0.3,       t[0] == 2};
  });
  agrees_in_value(x, [](const Tensors& t) {
    const Tensor strange = t[2] / (t[0] - 2);  // with infinities
    return Tensors{isfinite(strange), isinf(strange), isnan(strange - strange)};
  });
}
TEST_CASE("device: logic", "[device]") {
  agrees_in_value({coins(image), coins({5, 4}, 2)}, [](const Tensors& t) {
    return Tensors{logical_and(t[0], t[1]), logical_or(t[0], t[1]), logical_xor(t[0], t[1]),
                   logical_not(t[0])};
  });
}
TEST_CASE("device: array_equal and allclose", "[device]") {
  agrees_in_value({normal(image)}, [](const Tensors& t) {
    const Tensor near = t[0] + 1e-9 * t[0];
    const auto truth = [&](bool b) { return full({}, b, {.dtype = boolean, .device = t[0].device()}); };
    return Tensors{truth(array_equal(t[0], clone(t[0]))), truth(array_equal(t[0], t[0] + 1)),
                   truth(allclose(t[0], near)), truth(allclose(t[0], t[0] + 1))};
  });
}

TEST_CASE("device: cast, clone, to_format, to_device and copy_", "[device]") {
  agrees_between(-9, 9, [](const Tensor& x) { return cast(x, float64); });
  agrees_in_value_between(-9, 9, [](const Tensor& x) { return cast(x, pleat::int32); });
  agrees_in_value_between(0, 9, [](const Tensor& x) { return cast(cast(x, uint8), bfloat16); });
  agrees_between(-9, 9, [](const Tensor& x) { return clone(x); });
  agrees_between(-9, 9, [](const Tensor& x) { return to_format(x, MemoryFormat::channels_last); });
  agrees_between(-9, 9, [](const Tensor& x) { return to_device(to_device(x, Device()), x.device()); });
  agrees({normal(image), normal({3, 1, 4}, 2)}, [](const Tensors& t) { return copy_(clone(t[0]), t[1]); });
}

TEST_CASE("device: dropout", "[device]") {
  // gradcheck calls the function again and again: each call draws the same numbers.
  agrees_between(-1, 1, [](const Tensor& x) {
    Generator generator(3);
    return dropout(x, 0.4, true, generator);
  });
}
TEST_CASE("device: channel_dropout", "[device]") {
  agrees_between(-1, 1, [](const Tensor& x) {
    Generator generator(3);
    return channel_dropout(x, 0.4, true, generator);
  });
}
