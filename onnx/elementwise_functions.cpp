#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "pleat/onnx/emit.h"
#include "pleat/onnx/functions.h"

/// Functions of elements: arithmetic, mathematics, activations.

namespace pleat::onnx {
namespace {

using Names = std::vector<std::string>;

/// The name of an operator as a template argument.
template <std::size_t n>
struct Op {
  char name[n];
  constexpr Op(const char (&text)[n]) { std::copy_n(text, n, name); }
};

/// The input in the type of the result: integers become floating, types are promoted.
std::string x_of(Emit& e, std::size_t i = 0) { return e.in(i, e.out_dtype()); }
std::string number(Emit& e, double value) { return e.number(value, e.out_dtype()); }

template <Op op>
Names unary(Emit& e) {
  return {e.node(op.name, {x_of(e)})};
}
template <Op op>
Names binary(Emit& e) {
  return {e.node(op.name, {x_of(e, 0), x_of(e, 1)})};
}
/// The logarithm to another base.
Names log_to(Emit& e, double base) {
  return {e.node("Mul", {e.node("Log", {x_of(e)}), number(e, 1 / std::log(base))})};
}

Names pow_by_number(Emit& e) {
  if (e.inputs() == 2) return {e.node("Pow", {x_of(e, 0), x_of(e, 1)})};
  return {e.node("Pow", {x_of(e), number(e, e.number("exponent"))})};
}

Names clamp(Emit& e) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto bound = [&](const char* name, double none) {
    return e.number(name) == none ? std::string() : e.number_of(name, e.out_dtype());
  };
  return {e.node("Clip", {x_of(e), bound("min", -infinity), bound("max", infinity)})};
}

/// x Φ(x) with the error function, or its approximation by a hyperbolic tangent.
Names gelu(Emit& e) {
  const std::string x = x_of(e);
  std::string inner;
  if (e.flag("tanh")) {
    const std::string cube = e.node("Mul", {e.node("Mul", {x, x}), x});
    const std::string sum = e.node("Add", {x, e.node("Mul", {cube, number(e, 0.044715)})});
    inner = e.node("Tanh", {e.node("Mul", {sum, number(e, std::sqrt(2 / std::numbers::pi))})});
  } else {
    inner = e.node("Erf", {e.node("Mul", {x, number(e, std::sqrt(0.5))})});
  }
  return {e.node("Mul", {e.node("Mul", {x, number(e, 0.5)}), e.node("Add", {inner, number(e, 1)})})};
}

Names softplus(Emit& e) {
  const double beta = e.number("beta"), threshold = e.number("threshold");
  const std::string x = x_of(e);
  if (beta == 1 && threshold >= 20) return {e.node("Softplus", {x})};
  const std::string scaled = e.node("Mul", {x, number(e, beta)});
  const std::string y = e.node("Div", {e.node("Softplus", {scaled}), number(e, beta)});
  if (threshold >= 20) return {y};
  return {e.node("Where", {e.node("Greater", {scaled, number(e, threshold)}), x, y})};
}

Names celu(Emit& e) {
  const double alpha = e.number("alpha");
  if (e.out_dtype() == float32) return {e.node("Celu", {x_of(e)}, {{"alpha", alpha}})};
  const std::string x = x_of(e);
  const std::string grown = e.node("Exp", {e.node("Div", {x, number(e, alpha)})});
  const std::string below = e.node("Mul", {e.node("Sub", {grown, number(e, 1)}), number(e, alpha)});
  return {e.node("Where", {e.node("Greater", {x, number(e, 0)}), x, below})};
}

Names shrink(Emit& e, bool is_soft) {
  const double lambd = e.number("lambd");
  return {e.node("Shrink", {x_of(e)}, {{"lambd", lambd}, {"bias", is_soft ? lambd : 0.0}})};
}

Names glu(Emit& e) {
  const int64_t dim = e.dim("dim", e.rank(0));
  const int64_t half = e.fixed_size(0, dim) / 2;
  const Names parts =
      e.nodes("Split", {x_of(e), e.list(std::vector<int64_t>{half, half})}, {{"axis", dim}}, 2);
  return {e.node("Mul", {parts[0], e.node("Sigmoid", {parts[1]})})};
}

/// With the sign of the divisor.
std::string remainder_of(Emit& e) {
  const std::string a = x_of(e, 0), b = x_of(e, 1);
  if (!is_floating(e.out_dtype())) return e.node("Mod", {a, b});
  const std::string rest = e.node("Mod", {a, b}, {{"fmod", int64_t{1}}});
  const std::string zero = number(e, 0);
  const std::string differs = e.node("Xor", {e.node("Less", {rest, zero}), e.node("Less", {b, zero})});
  const std::string is_rest = e.node("Not", {e.node("Equal", {rest, zero})});
  return e.node("Where", {e.node("And", {differs, is_rest}), e.node("Add", {rest, b}), rest});
}

Names floor_divide(Emit& e) {
  const std::string quotient = e.node("Div", {e.node("Sub", {x_of(e, 0), remainder_of(e)}), x_of(e, 1)});
  // A whole number but for rounding.
  return {is_floating(e.out_dtype()) ? e.node("Round", {quotient}) : quotient};
}

Names where(Emit& e) { return {e.node("Where", {e.in(0, boolean), x_of(e, 1), x_of(e, 2)})}; }

Names masked_fill(Emit& e) {
  return {e.node("Where", {e.in(1, boolean), e.number_of("value", e.out_dtype()), x_of(e)})};
}

/// One number in the shape of the input.
Names fill(Emit& e) {
  return {e.node("Expand", {e.number_of("value", e.out_dtype()), e.list(e.out_shape())})};
}

/// Into an input, whose own elements no longer matter.
Names copy(Emit& e) { return {e.node("Expand", {e.in(1, e.out_dtype()), e.list(e.out_shape())})}; }

Names cast(Emit& e) { return {e.in(0, e.out_dtype())}; }

}  // namespace

void add_elementwise(Conversions& all) {
  all.merge(Conversions{
      {"add", {2, 2, binary<"Add">}},
      {"subtract", {2, 2, binary<"Sub">}},
      {"multiply", {2, 2, binary<"Mul">}},
      {"divide", {2, 2, binary<"Div">}},
      {"negate", {1, 1, unary<"Neg">}},
      {"maximum", {2, 2, binary<"Max">}},
      {"minimum", {2, 2, binary<"Min">}},
      {"pow", {1, 2, pow_by_number}},
      {"remainder", {2, 2, [](Emit& e) -> Names { return {remainder_of(e)}; }}},
      {"fmod",
       {2, 2,
        [](Emit& e) -> Names {
          return {e.node("Mod", {x_of(e, 0), x_of(e, 1)}, {{"fmod", int64_t{1}}})};
        }}},
      {"floor_divide", {2, 2, floor_divide}},
      {"hypot",
       {2, 2,
        [](Emit& e) -> Names {
          const std::string a = x_of(e, 0), b = x_of(e, 1);
          return {e.node("Sqrt", {e.node("Add", {e.node("Mul", {a, a}), e.node("Mul", {b, b})})})};
        }}},
      {"lerp",
       {3, 3,
        [](Emit& e) -> Names {
          const std::string a = x_of(e, 0);
          return {e.node("Add", {a, e.node("Mul", {x_of(e, 2), e.node("Sub", {x_of(e, 1), a})})})};
        }}},
      {"where", {3, 3, where}},
      {"masked_fill", {2, 2, masked_fill}},
      {"clamp", {1, 1, clamp}},
      {"hardtanh", {1, 1, clamp}},
      {"fill", {1, 1, fill}},
      {"copy_", {2, 2, copy}},
      {"cast", {1, 1, cast}},
      {"exp", {1, 1, unary<"Exp">}},
      {"exp2",
       {1, 1,
        [](Emit& e) -> Names {
          return {e.node("Pow", {number(e, 2), x_of(e)})};
        }}},
      {"expm1",
       {1, 1,
        [](Emit& e) -> Names {
          // tanh(x / 2) (exp(x) + 1), which is exact near 0.
          const std::string x = x_of(e);
          return {e.node("Mul", {e.node("Tanh", {e.node("Mul", {x, number(e, 0.5)})}),
                                 e.node("Add", {e.node("Exp", {x}), number(e, 1)})})};
        }}},
      {"log", {1, 1, unary<"Log">}},
      {"log1p",
       {1, 1,
        [](Emit& e) -> Names {
          return {e.node("Log", {e.node("Add", {x_of(e), number(e, 1)})})};
        }}},
      {"log2", {1, 1, [](Emit& e) { return log_to(e, 2); }}},
      {"log10", {1, 1, [](Emit& e) { return log_to(e, 10); }}},
      {"sqrt", {1, 1, unary<"Sqrt">}},
      {"rsqrt", {1, 1, [](Emit& e) -> Names { return {e.node("Reciprocal", {e.node("Sqrt", {x_of(e)})})}; }}},
      {"reciprocal", {1, 1, unary<"Reciprocal">}},
      {"square",
       {1, 1,
        [](Emit& e) -> Names {
          return {e.node("Mul", {x_of(e), x_of(e)})};
        }}},
      {"abs", {1, 1, unary<"Abs">}},
      {"sign", {1, 1, unary<"Sign">}},
      {"floor", {1, 1, unary<"Floor">}},
      {"ceil", {1, 1, unary<"Ceil">}},
      {"round", {1, 1, unary<"Round">}},
      {"trunc",
       {1, 1,
        [](Emit& e) -> Names {
          const std::string x = x_of(e);
          return {e.node("Mul", {e.node("Sign", {x}), e.node("Floor", {e.node("Abs", {x})})})};
        }}},
      {"sin", {1, 1, unary<"Sin">}},
      {"cos", {1, 1, unary<"Cos">}},
      {"tan", {1, 1, unary<"Tan">}},
      {"asin", {1, 1, unary<"Asin">}},
      {"acos", {1, 1, unary<"Acos">}},
      {"atan", {1, 1, unary<"Atan">}},
      {"sinh", {1, 1, unary<"Sinh">}},
      {"cosh", {1, 1, unary<"Cosh">}},
      {"tanh", {1, 1, unary<"Tanh">}},
      {"asinh", {1, 1, unary<"Asinh">}},
      {"acosh", {1, 1, unary<"Acosh">}},
      {"atanh", {1, 1, unary<"Atanh">}},
      {"erf", {1, 1, unary<"Erf">}},
      {"erfc",
       {1, 1,
        [](Emit& e) -> Names {
          return {e.node("Sub", {number(e, 1), e.node("Erf", {x_of(e)})})};
        }}},
      {"relu", {1, 1, unary<"Relu">}},
      {"leaky_relu",
       {1, 1,
        [](Emit& e) -> Names {
          return {e.node("LeakyRelu", {x_of(e)}, {{"alpha", e.number("negative_slope")}})};
        }}},
      {"prelu", {2, 2, binary<"PRelu">}},
      {"elu",
       {1, 1,
        [](Emit& e) -> Names {
          return {e.node("Elu", {x_of(e)}, {{"alpha", e.number("alpha")}})};
        }}},
      {"selu", {1, 1, unary<"Selu">}},
      {"celu", {1, 1, celu}},
      {"glu", {1, 1, glu}},
      {"softsign", {1, 1, unary<"Softsign">}},
      {"tanhshrink",
       {1, 1,
        [](Emit& e) -> Names {
          return {e.node("Sub", {x_of(e), e.node("Tanh", {x_of(e)})})};
        }}},
      {"sigmoid", {1, 1, unary<"Sigmoid">}},
      {"log_sigmoid",
       {1, 1,
        [](Emit& e) -> Names { return {e.node("Neg", {e.node("Softplus", {e.node("Neg", {x_of(e)})})})}; }}},
      {"softplus", {1, 1, softplus}},
      {"gelu", {1, 1, gelu}},
      {"silu",
       {1, 1,
        [](Emit& e) -> Names {
          return {e.node("Mul", {x_of(e), e.node("Sigmoid", {x_of(e)})})};
        }}},
      {"mish",
       {1, 1,
        [](Emit& e) -> Names {
          return {e.node("Mul", {x_of(e), e.node("Tanh", {e.node("Softplus", {x_of(e)})})})};
        }}},
      {"hardswish", {1, 1, unary<"HardSwish">}},
      {"hardsigmoid",
       {1, 1,
        [](Emit& e) -> Names {
          return {e.node("HardSigmoid", {x_of(e)}, {{"alpha", 1.0 / 6}, {"beta", 0.5}})};
        }}},
      {"softshrink", {1, 1, [](Emit& e) { return shrink(e, true); }}},
      {"hardshrink", {1, 1, [](Emit& e) { return shrink(e, false); }}},
      {"threshold",
       {1, 1,
        [](Emit& e) -> Names {
          const std::string x = x_of(e);
          return {e.node("Where", {e.node("LessOrEqual", {x, number(e, e.number("threshold"))}),
                                   number(e, e.number("value")), x})};
        }}},
  });
}

}  // namespace pleat::onnx
