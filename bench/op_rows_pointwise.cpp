// The survey's rows of pointwise functions: of one element each, of two, of broadcast ones; comparisons,
// types.
#include "pleat/bench/op_table.h"

// clang-format off
namespace pleat::bench {
namespace {

std::vector<OpRow> math() {
  const char* family = "math";
  return {
      BOTH("exp", "E", exp(x), "x.exp()"),
      BOTH("expm1", "E", expm1(x), "x.expm1()"),
      BOTH("log", "u:E", log(x), "x.log()"),
      BOTH("log1p", "u:E", log1p(x), "x.log1p()"),
      BOTH("log2", "u:E", log2(x), "x.log2()"),
      BOTH("log10", "u:E", log10(x), "x.log10()"),
      BOTH("sqrt", "u:E", sqrt(x), "x.sqrt()"),
      BOTH("rsqrt", "u:E", rsqrt(x), "x.rsqrt()"),
      BOTH("reciprocal", "u:E", reciprocal(x), "x.reciprocal()"),
      BOTH("sin", "E", sin(x), "x.sin()"),
      BOTH("cos", "E", cos(x), "x.cos()"),
      BOTH("tan", "E", tan(x), "x.tan()"),
      BOTH("asin", "u:E", asin(x), "x.asin()"),
      BOTH("acos", "u:E", acos(x), "x.acos()"),
      BOTH("atan", "E", atan(x), "x.atan()"),
      BOTH("atan2", "E E", atan2(x, y), "x.atan2(y)"),
      BOTH("sinh", "E", sinh(x), "x.sinh()"),
      BOTH("cosh", "E", cosh(x), "x.cosh()"),
      BOTH("tanh", "E", tanh(x), "x.tanh()"),
      BOTH("erf", "E", erf(x), "x.erf()"),
      BOTH("erfc", "E", erfc(x), "x.erfc()"),
      BOTH("exp2", "E", exp2(x), "x.exp2()"),
      BOTH("asinh", "E", asinh(x), "x.asinh()"),
      BOTH("acosh", "u:E", acosh(x), "x.acosh()"),
      BOTH("atanh", "u:E", atanh(x), "x.atanh()"),
      BOTH("square", "E", square(x), "x.square()"),
      BOTH("abs", "E", abs(x), "x.abs()"),
      FORWARD("sign", "E", sign(x), "x.sign()"),
      FORWARD("floor", "E", floor(x), "x.floor()"),
      FORWARD("round", "E", round(x), "x.round()"),
      FORWARD("trunc", "E", trunc(x), "x.trunc()"),
      BOTH("pow 2", "E", pow(x, 2), "x.pow(2)"),
      BOTH("pow 3", "E", pow(x, 3), "x.pow(3)"),
      BOTH("pow 0.5", "u:E", pow(x, 0.5), "x.pow(0.5)"),
      BOTH("pow 2.3", "u:E", pow(x, 2.3), "x.pow(2.3)"),
      BOTH("pow of tensors", "u:E u:E", pow(x, y), "x.pow(y)"),
      BOTH("2 to the power", "E", pow(2, x), "2 ** x"),
      BOTH("exp, images", "N,C,H,W", exp(x), "x.exp()"),
      BOTH("exp, float16", "float16:E", exp(x), "x.exp()"),
      BOTH("tanh, bfloat16", "bfloat16:E", tanh(x), "x.tanh()"),
      BOTH("exp, float64", "float64:E", exp(x), "x.exp()"),
      BOTH("sin, float64", "float64:E", sin(x), "x.sin()"),
  };
}

std::vector<OpRow> activations() {
  const char* family = "activation";
  return {
      BOTH("relu", "N,C,H,W", relu(x), "F.relu(x)"),
      BOTH("leaky_relu", "N,C,H,W", leaky_relu(x, 0.1), "F.leaky_relu(x, 0.1)"),
      BOTH("prelu", "N,C,H,W C", prelu(x, y), "F.prelu(x, y)"),
      BOTH("elu", "E", elu(x), "F.elu(x)"),
      BOTH("sigmoid", "N,C,H,W", sigmoid(x), "x.sigmoid()"),
      BOTH("log_sigmoid", "E", log_sigmoid(x), "F.logsigmoid(x)"),
      BOTH("softplus", "E", softplus(x), "F.softplus(x)"),
      BOTH("gelu", "R,L", gelu(x), "F.gelu(x)"),
      BOTH("gelu by tanh", "R,L", gelu(x, GeluApproximation::tanh), "F.gelu(x, approximate='tanh')"),
      BOTH("silu", "N,C,H,W", silu(x), "F.silu(x)"),
      BOTH("mish", "E", mish(x), "F.mish(x)"),
      BOTH("hardswish", "N,C,H,W", hardswish(x), "F.hardswish(x)"),
      BOTH("hardsigmoid", "E", hardsigmoid(x), "F.hardsigmoid(x)"),
      BOTH("hardtanh", "E", hardtanh(x), "F.hardtanh(x)"),
      BOTH("relu6", "N,C,H,W", relu6(x), "F.relu6(x)"),
      BOTH("softshrink", "E", softshrink(x), "F.softshrink(x)"),
      BOTH("hardshrink", "E", hardshrink(x), "F.hardshrink(x)"),
      BOTH("threshold", "E", threshold(x, 0.5, 2), "F.threshold(x, 0.5, 2)"),
      BOTH("selu", "E", selu(x), "F.selu(x)"),
      BOTH("celu", "E", celu(x, 0.5), "F.celu(x, 0.5)"),
      BOTH("softsign", "E", softsign(x), "F.softsign(x)"),
      BOTH("tanhshrink", "E", tanhshrink(x), "F.tanhshrink(x)"),
      BOTH("glu", "R,L", glu(x), "F.glu(x)"),
      BOTH("relu, float16", "float16:E", relu(x), "F.relu(x)"),
      BOTH("gelu, bfloat16", "bfloat16:E", gelu(x), "F.gelu(x)"),
      FORWARD("relu_", "N,C,H,W", relu_(x), "x.relu_()"),
      BOTH("dropout", "N,C,H,W", dropout(x, 0.5), "F.dropout(x, 0.5)"),
      BOTH("dropout, rows", "R,L", dropout(x, 0.1), "F.dropout(x, 0.1)"),
      BOTH("channel_dropout", "N,C,H,W", channel_dropout(x, 0.2), "F.dropout2d(x, 0.2)"),
  };
}

std::vector<OpRow> arithmetic() {
  const char* family = "arithmetic";
  return {
      BOTH("add", "E E", x + y, "x + y"),
      BOTH("add, images", "N,C,H,W N,C,H,W", x + y, "x + y"),
      BOTH("subtract", "E E", x - y, "x - y"),
      BOTH("multiply", "E E", x * y, "x * y"),
      BOTH("divide", "E u:E", x / y, "x / y"),
      BOTH("remainder", "E u:E", remainder(x, y), "torch.remainder(x, y)"),
      BOTH("fmod", "E u:E", fmod(x, y), "torch.fmod(x, y)"),
      FORWARD("floor_divide", "E u:E", floor_divide(x, y), "torch.floor_divide(x, y)"),
      BOTH("hypot", "E E", hypot(x, y), "torch.hypot(x, y)"),
      BOTH("logaddexp", "E E", logaddexp(x, y), "torch.logaddexp(x, y)"),
      BOTH("tril", "N,A,A", tril(x), "x.tril()"),
      BOTH("triu of a matrix", "R,L", triu(x, 1), "x.triu(1)"),
      BOTH("outer", "R L", outer(x, y), "torch.outer(x, y)"),
      BOTH("cross", "R,3", cross(x, x), "torch.linalg.cross(x, x)"),
      BOTH("maximum", "E E", maximum(x, y), "torch.maximum(x, y)"),
      BOTH("minimum with a number", "E", minimum(x, 0.5), "x.clamp(max=0.5)"),
      BOTH("negate", "E", -x, "-x"),
      BOTH("clamp", "N,C,H,W", clamp(x, -1, 1), "x.clamp(-1, 1)"),
      BOTH("lerp by a number", "E E", lerp(x, y, 0.3), "x.lerp(y, 0.3)"),
      BOTH("lerp by a tensor", "E E u:E", lerp(x, y, z), "x.lerp(y, z)"),
      BOTH("where", "bool:E E E", where(x, y, z), "torch.where(x, y, z)"),
      BOTH("where, images", "bool:N,C,H,W N,C,H,W", where(x, y, 0), "torch.where(x, y, 0)"),
      BOTH("masked_fill", "E bool:E", masked_fill(x, y, 0), "x.masked_fill(y, 0)"),
      BOTH("masked_fill of attention", "N,4,A,A bool:A,A", masked_fill(x, y, -1e9), "x.masked_fill(y, -1e9)"),
      BOTH("add a number", "E", x + 2, "x + 2"),
      BOTH("multiply by a number", "N,C,H,W", x * 0.5, "x * 0.5"),
      BOTH("number over tensor", "u:E", 1 / x, "1 / x"),
      FORWARD("add_", "E E", add_(x, y), "x.add_(y)"),
      FORWARD("multiply_ by a number", "E", multiply_(x, 1.0), "x.mul_(1.0)"),
      FORWARD("clamp_", "E", clamp_(x, {.min = -1, .max = 1}), "x.clamp_(-1, 1)"),
      FORWARD("lerp_", "E E", lerp_(x, y, 0.1), "x.lerp_(y, 0.1)"),
      FORWARD("fill_", "E", fill_(x, 1), "x.fill_(1)"),
      FORWARD("zeros", "E", zeros(x.shape()), "torch.zeros(x.shape)"),
      FORWARD("full_like", "E", full_like(x, 3), "torch.full_like(x, 3)"),
      BOTH("add, float16", "float16:E float16:E", x + y, "x + y"),
      BOTH("multiply, bfloat16", "bfloat16:E bfloat16:E", x * y, "x * y"),
      BOTH("add, float64", "float64:E float64:E", x + y, "x + y"),
      FORWARD("add, int64", "int:E int:E", x + y, "x + y"),
      FORWARD("multiply, int64", "int:E int:E", x * y, "x * y"),
      FORWARD("remainder, int64 by a number", "int:E", remainder(x, 7), "x % 7"),
      FORWARD("add, uint8", "byte:E byte:E", x + y, "x + y"),
  };
}

std::vector<OpRow> broadcasts() {
  const char* family = "broadcast";
  return {
      BOTH("add to channels", "N,C,H,W 1,C,1,1", x + y, "x + y"),
      BOTH("gate of channels", "N,C,H,W u:N,C,1,1", x * y, "x * y"),
      BOTH("mask of pixels", "N,C,H,W N,1,H,W", x * y, "x * y"),
      BOTH("add of columns", "N,C,H,W 1,1,1,W", x + y, "x + y"),
      BOTH("scale of images", "N,C,H,W N,1,1,1", x * y, "x * y"),
      BOTH("divide by channels", "N,C,H,W u:1,C,1,1", x / y, "x / y"),
      BOTH("gate, few pixels", "N,K,7,7 u:N,K,1,1", x * y, "x * y"),
      BOTH("few channels", "N,3,G,G 1,3,1,1", x - y, "x - y"),
      BOTH("volumes", "N,C,D,D,D N,C,1,1,1", x * y, "x * y"),
      BOTH("add a row", "R,L L", x + y, "x + y"),
      BOTH("multiply by a row", "R,L L", x * y, "x * y"),
      BOTH("subtract a column", "R,L R,1", x - y, "x - y"),
      BOTH("divide by a column", "R,L u:R,1", x / y, "x / y"),
      BOTH("short rows by a column", "S,10 u:S,1", x / y, "x / y"),
      BOTH("short rows and a row", "S,10 10", x + y, "x + y"),
      BOTH("column and row", "R,1 1,L", x - y, "x - y"),
      BOTH("position on words", "N,A,128 A,128", x + y, "x + y"),
      FORWARD("compare with a column", "R,L R,1", x > y, "x > y"),
      FORWARD("equal of column and row", "<100:R,1 <100:1,L", x == y, "x == y"),
  };
}

std::vector<OpRow> comparisons() {
  const char* family = "compare";
  return {
      FORWARD("equal", "E E", x == y, "x == y"),
      FORWARD("less than a number", "E", x < 0, "x < 0"),
      FORWARD("greater_equal, images", "N,C,H,W N,C,H,W", x >= y, "x >= y"),
      FORWARD("equal, int64", "<10:E <10:E", x == y, "x == y"),
      FORWARD("equal to a number, int64", "<10:E", x == 3, "x == 3"),
      FORWARD("equal, uint8", "byte:E byte:E", x == y, "x == y"),
      FORWARD("logical_and", "bool:E bool:E", x && y, "x & y"),
      FORWARD("logical_not", "bool:E", !x, "~x"),
      FORWARD("isnan", "E", isnan(x), "x.isnan()"),
      FORWARD("isfinite", "E", isfinite(x), "x.isfinite()"),
      FORWARD("array_equal", "E", done(array_equal(x, x + 0)), "torch.equal(x, x + 0)"),
      FORWARD("allclose", "E", done(allclose(x, x + 0)), "torch.allclose(x, x + 0)"),
  };
}

std::vector<OpRow> types() {
  const char* family = "cast";
  return {
      BOTH("float32 to float16", "E", x.to(float16), "x.half()"),
      BOTH("float16 to float32", "float16:E", x.to(float32), "x.float()"),
      BOTH("float32 to bfloat16", "E", x.to(bfloat16), "x.bfloat16()"),
      BOTH("bfloat16 to float32", "bfloat16:E", x.to(float32), "x.float()"),
      BOTH("float32 to float16, images", "N,C,H,W", x.to(float16), "x.half()"),
      BOTH("float32 to float64", "E", x.to(float64), "x.double()"),
      FORWARD("float32 to int64", "E", x.to(int64), "x.long()"),
      FORWARD("float32 to uint8", "u:E", x.to(uint8), "x.byte()"),
      FORWARD("float32 to bool", "E", x.to(boolean), "x.bool()"),
      FORWARD("int64 to float32", "int:E", x.to(float32), "x.float()"),
      FORWARD("int64 to int32", "int:E", x.to(int32), "x.int()"),
      FORWARD("uint8 to float32", "byte:N,3,G,G", x.to(float32), "x.float()"),
      FORWARD("bool to float32", "bool:E", x.to(float32), "x.float()"),
      BOTH("clone", "N,C,H,W", clone(x), "x.clone()"),
      FORWARD("copy_", "E E", copy_(x, y), "x.copy_(y)"),
      FORWARD("copy_ with a cast", "E float16:E", copy_(x, y), "x.copy_(y)"),
      BOTH("to contiguous", "N,C,H,W", x.to(MemoryFormat::contiguous), "x.contiguous()"),
      BOTH("to channels_last", "N,C,H,W", x.to(MemoryFormat::channels_last), "channels_last(x)"),
      BOTH("to channels_last, RGB", "N,3,G,G", x.to(MemoryFormat::channels_last), "channels_last(x)"),
      BOTH("to channels_last, 7 x 7", "N,K,7,7", x.to(MemoryFormat::channels_last), "channels_last(x)"),
      BOTH("to channels_last, volumes", "N,C,D,D,D", x.to(MemoryFormat::channels_last), "channels_last(x)"),
  };
}

}  // namespace

std::vector<OpRow> pointwise_rows() {
  return joined({math(), activations(), arithmetic(), broadcasts(), comparisons(), types()});
}

}  // namespace pleat::bench
