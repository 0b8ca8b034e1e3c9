#include "pleat/onnx/emit.h"
#include "pleat/onnx/functions.h"

/// Comparisons and logic: bool tensors.

namespace pleat::onnx {
namespace {

using Names = std::vector<std::string>;

Names compared(Emit& e, const char* op) {
  const DType dtype = promote(e.dtype(0), e.dtype(1));
  return {e.node(op, {e.in(0, dtype), e.in(1, dtype)})};
}

/// Tests of floating numbers; integers are all finite.
Names tested(Emit& e, const char* op) {
  if (!is_floating(e.dtype(0))) e.refuse("it is asked of integers");
  // onnxruntime has them for float and double alone.
  const std::string x = is_half(e.dtype(0)) ? e.in(0, float32) : e.in(0);
  if (op != nullptr) return {e.node(op, {x})};
  return {e.node("Not", {e.node("Or", {e.node("IsNaN", {x}), e.node("IsInf", {x})})})};
}

Names logical(Emit& e, const char* op) { return {e.node(op, {e.in(0, boolean), e.in(1, boolean)})}; }

}  // namespace

void add_compare(Conversions& all) {
  all.merge(Conversions{
      {"equal", {2, 2, [](Emit& e) { return compared(e, "Equal"); }}},
      {"not_equal", {2, 2, [](Emit& e) -> Names { return {e.node("Not", compared(e, "Equal"))}; }}},
      {"less", {2, 2, [](Emit& e) { return compared(e, "Less"); }}},
      {"less_equal", {2, 2, [](Emit& e) { return compared(e, "LessOrEqual"); }}},
      {"isnan", {1, 1, [](Emit& e) { return tested(e, "IsNaN"); }}},
      {"isinf", {1, 1, [](Emit& e) { return tested(e, "IsInf"); }}},
      {"isfinite", {1, 1, [](Emit& e) { return tested(e, nullptr); }}},
      {"logical_and", {2, 2, [](Emit& e) { return logical(e, "And"); }}},
      {"logical_or", {2, 2, [](Emit& e) { return logical(e, "Or"); }}},
      {"logical_xor", {2, 2, [](Emit& e) { return logical(e, "Xor"); }}},
      {"logical_not", {1, 1, [](Emit& e) -> Names { return {e.node("Not", {e.in(0, boolean)})}; }}},
  });
}

}  // namespace pleat::onnx
