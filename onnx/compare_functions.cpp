#include "pleat/onnx/functions.h"

/// Comparisons and logic: bool tensors.

namespace pleat::onnx {
namespace {

Operand compared(Emit& e, const char* op) {
  const DType dtype = promote(e.dtype(0), e.dtype(1));
  return apply(op, e.in(0, dtype), e.in(1, dtype));
}
Conversion comparison(const char* op) {
  return {2, 2, [op](Emit& e) { return compared(e, op); }};
}

/// Tests of floating numbers; integers are all finite.
Operand tested(Emit& e, const char* op) {
  if (!is_floating(e.dtype(0))) e.refuse("it is asked of integers");
  // onnxruntime has them for float and double alone.
  return apply(op, is_half(e.dtype(0)) ? e.in(0, float32) : e.in(0));
}

}  // namespace

Conversions compare_functions() {
  return {
      {"equal", comparison("Equal")},
      {"not_equal", {2, 2, [](Emit& e) { return apply("Not", compared(e, "Equal")); }}},
      {"less", comparison("Less")},
      {"less_equal", comparison("LessOrEqual")},
      {"isnan", {1, 1, [](Emit& e) { return tested(e, "IsNaN"); }}},
      {"isinf", {1, 1, [](Emit& e) { return tested(e, "IsInf"); }}},
      {"isfinite",
       {1, 1, [](Emit& e) { return apply("Not", apply("Or", tested(e, "IsNaN"), tested(e, "IsInf"))); }}},
      // The result's type is bool.
      {"logical_and", op(2, "And")},
      {"logical_or", op(2, "Or")},
      {"logical_xor", op(2, "Xor")},
      {"logical_not", op(1, "Not")},
  };
}

}  // namespace pleat::onnx
