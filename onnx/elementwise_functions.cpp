#include <cmath>
#include <limits>
#include <numbers>

#include "pleat/onnx/functions.h"

/// Functions of elements: arithmetic, mathematics, activations.

namespace pleat::onnx {
namespace {

using X = const Operand&;

Operand sigmoid(X x) { return apply("Sigmoid", x); }

Operand clamp(Emit& e) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto bound = [&](const char* name, double none) {
    return e.number(name) == none ? Operand() : e.number_of(name);
  };
  return apply("Clip", e.x(), bound("min", -infinity), bound("max", infinity));
}

/// x Φ(x) with the error function, or its approximation by a hyperbolic tangent.
Operand gelu(Emit& e) {
  const Operand x = e.x();
  const Operand inner = e.flag("tanh")
                            ? apply("Tanh", (x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi))
                            : apply("Erf", x * std::sqrt(0.5));
  return x * 0.5 * (inner + 1);
}

Operand softplus(Emit& e) {
  const double beta = e.number("beta"), threshold = e.number("threshold");
  const Operand x = e.x();
  if (beta == 1 && threshold >= 20) return apply("Softplus", x);
  const Operand scaled = x * beta, y = apply("Softplus", scaled) / beta;
  if (threshold >= 20) return y;
  return apply("Where", apply("Greater", scaled, threshold), x, y);
}

Operand celu(Emit& e) {
  const double alpha = e.number("alpha");
  const Operand x = e.x();
  // The operator exists for float32 alone.
  if (e.out_dtype() == float32) return e.node("Celu", {x}, {{"alpha", alpha}});
  return apply("Where", apply("Greater", x, 0), x, (apply("Exp", x / alpha) - 1) * alpha);
}

Operand glu(Emit& e) {
  const int64_t dim = e.dim();
  const int64_t half = e.fixed_size(0, dim) / 2;
  const Operands parts = e.nodes("Split", {e.x(), e.list(Integers{half, half})}, {{"axis", dim}}, 2);
  return parts[0] * sigmoid(parts[1]);
}

Operand fmod(Emit& e) { return e.node("Mod", {e.x(0), e.x(1)}, {{"fmod", 1}}); }

/// With the sign of the divisor.
Operand remainder(Emit& e) {
  const Operand b = e.x(1);
  if (!is_floating(e.out_dtype())) return apply("Mod", e.x(0), b);
  const Operand rest = fmod(e);
  const Operand differs = apply("Xor", apply("Less", rest, 0), apply("Less", b, 0));
  const Operand is_rest = apply("Not", apply("Equal", rest, 0));
  return apply("Where", apply("And", differs, is_rest), rest + b, rest);
}

Operand floor_divide(Emit& e) {
  const Operand quotient = (e.x(0) - remainder(e)) / e.x(1);
  // A whole number but for rounding.
  return is_floating(e.out_dtype()) ? apply("Round", quotient) : quotient;
}

}  // namespace

Conversions elementwise_functions() {
  return {
      {"add", op(2, "Add")},
      {"subtract", op(2, "Sub")},
      {"multiply", op(2, "Mul")},
      {"divide", op(2, "Div")},
      {"negate", op(1, "Neg")},
      {"maximum", op(2, "Max")},
      {"minimum", op(2, "Min")},
      {"pow",
       {1, 2,
        [](Emit& e) {
          return apply("Pow", e.x(), e.inputs() == 2 ? e.x(1) : Operand(e.number("exponent")));
        }}},
      {"remainder", {2, 2, remainder}},
      {"fmod", {2, 2, fmod}},
      {"floor_divide", {2, 2, floor_divide}},
      {"hypot", formula([](X a, X b) { return apply("Sqrt", a * a + b * b); })},
      {"lerp", formula([](X a, X b, X weight) { return a + weight * (b - a); })},
      {"where", {3, 3, [](Emit& e) { return apply("Where", e.in(0, boolean), e.x(1), e.x(2)); }}},
      {"masked_fill",
       {2, 2, [](Emit& e) { return apply("Where", e.in(1, boolean), e.number_of("value"), e.x()); }}},
      {"clamp", {1, 1, clamp}},
      {"hardtanh", {1, 1, clamp}},
      // One number in the shape of the input.
      {"fill", {1, 1, [](Emit& e) { return apply("Expand", e.number_of("value"), e.list(e.out_shape())); }}},
      // Into an input, whose own elements no longer matter.
      {"copy_", {2, 2, [](Emit& e) { return apply("Expand", e.x(1), e.list(e.out_shape())); }}},
      {"cast", formula([](X x) { return x; })},
      {"exp", op(1, "Exp")},
      {"exp2", formula([](X x) { return apply("Pow", 2, x); })},
      // Exact near 0.
      {"expm1", formula([](X x) { return apply("Tanh", x * 0.5) * (apply("Exp", x) + 1); })},
      {"log", op(1, "Log")},
      {"log1p", formula([](X x) { return apply("Log", x + 1); })},
      {"log2", formula([](X x) { return apply("Log", x) * std::numbers::log2e; })},
      {"log10", formula([](X x) { return apply("Log", x) * std::numbers::log10e; })},
      {"sqrt", op(1, "Sqrt")},
      {"rsqrt", formula([](X x) { return apply("Reciprocal", apply("Sqrt", x)); })},
      {"reciprocal", op(1, "Reciprocal")},
      {"square", formula([](X x) { return x * x; })},
      {"abs", op(1, "Abs")},
      {"sign", op(1, "Sign")},
      {"floor", op(1, "Floor")},
      {"ceil", op(1, "Ceil")},
      {"round", op(1, "Round")},
      {"trunc", formula([](X x) { return apply("Sign", x) * apply("Floor", apply("Abs", x)); })},
      {"sin", op(1, "Sin")},
      {"cos", op(1, "Cos")},
      {"tan", op(1, "Tan")},
      {"asin", op(1, "Asin")},
      {"acos", op(1, "Acos")},
      {"atan", op(1, "Atan")},
      {"sinh", op(1, "Sinh")},
      {"cosh", op(1, "Cosh")},
      {"tanh", op(1, "Tanh")},
      {"asinh", op(1, "Asinh")},
      {"acosh", op(1, "Acosh")},
      {"atanh", op(1, "Atanh")},
      {"erf", op(1, "Erf")},
      {"erfc", formula([](X x) { return 1 - apply("Erf", x); })},
      {"relu", op(1, "Relu")},
      {"leaky_relu", op(1, "LeakyRelu", {{"alpha", "negative_slope"}})},
      {"prelu", op(2, "PRelu")},
      {"elu", op(1, "Elu", {{"alpha", "alpha"}})},
      {"selu", op(1, "Selu")},
      {"celu", {1, 1, celu}},
      {"glu", {1, 1, glu}},
      {"softsign", op(1, "Softsign")},
      {"tanhshrink", formula([](X x) { return x - apply("Tanh", x); })},
      {"sigmoid", op(1, "Sigmoid")},
      {"log_sigmoid", formula([](X x) { return apply("Neg", apply("Softplus", apply("Neg", x))); })},
      {"softplus", {1, 1, softplus}},
      {"gelu", {1, 1, gelu}},
      {"silu", formula([](X x) { return x * sigmoid(x); })},
      {"mish", formula([](X x) { return x * apply("Tanh", apply("Softplus", x)); })},
      {"hardswish", op(1, "HardSwish")},
      {"hardsigmoid",
       {1, 1,
        [](Emit& e) {
          return e.node("HardSigmoid", {e.x()}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
        }}},
      {"softshrink", op(1, "Shrink", {{"lambd", "lambd"}, {"bias", "lambd"}})},
      {"hardshrink", op(1, "Shrink", {{"lambd", "lambd"}})},
      {"threshold",
       {1, 1,
        [](Emit& e) {
          const Operand x = e.x();
          return apply("Where", apply("LessOrEqual", x, e.number("threshold")), e.number("value"), x);
        }}},
  };
}

}  // namespace pleat::onnx
