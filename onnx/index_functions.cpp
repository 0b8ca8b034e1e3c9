#include "pleat/onnx/functions.h"

/// Functions of indices, and those that order elements.

namespace pleat::onnx {
namespace {

Operand index_of(Emit& e, std::size_t i) {
  return e.dtype(i) == int32 || e.dtype(i) == int64 ? e.in(i) : e.in(i, int64);
}

/// An operator that takes elements of the first input along a dimension.
Conversion gather(const char* op) {
  return {2, 2, [op](Emit& e) { return e.node(op, {e.in(0), index_of(e, 1)}, {{"axis", e.dim()}}); }};
}

Operand scatter(Emit& e, const std::string& reduction) {
  if (e.shape(1) != e.shape(2)) e.refuse("index and source need one shape");
  if (reduction == "mean") e.refuse("ScatterElements has no mean");
  return e.node("ScatterElements", {e.in(0), index_of(e, 1), e.x(2)},
                {{"axis", e.dim()}, {"reduction", reduction.c_str()}});
}

Operand scatter_reduce(Emit& e) {
  if (!e.flag("include_self")) e.refuse("ScatterElements takes the tensor's own elements, too");
  return scatter(e, e.text("reduction"));
}

Operand scatter_nd(Emit& e) {
  const std::string reduction = e.text("reduction");
  if (reduction == "mean") e.refuse("ScatterND has no mean");
  return e.node("ScatterND", {e.in(0), e.in(1, int64), e.in(2)}, {{"reduction", reduction.c_str()}});
}

Operand one_hot(Emit& e) {
  const int64_t classes = e.integer("classes");
  if (classes < 0) e.refuse("the number of classes must be given");
  const Operand values = e.concat({e.reshape(0, {{0, 1}}), e.reshape(1, {{0, 1}})}, 0);
  return e.node("OneHot", {e.in(0, int64), e.reshape(e.list(Integers{classes}), {}), values}, {{"axis", -1}});
}

Operands ordered(Emit& e, const Size& count, bool largest) {
  return e.nodes("TopK", {e.in(0), e.list(SizeList{count})},
                 {{"axis", e.dim()}, {"largest", largest}, {"sorted", 1}}, 2);
}

Operands sort(Emit& e) {
  return ordered(e, e.shape(0)[static_cast<std::size_t>(e.dim())], e.flag("descending"));
}

}  // namespace

Conversions index_functions() {
  return {
      {"embedding", {2, 2, [](Emit& e) { return apply("Gather", e.in(1), index_of(e, 0)); }}},
      {"index_select", gather("Gather")},
      {"gather", gather("GatherElements")},
      {"scatter", {3, 3, [](Emit& e) { return scatter(e, "none"); }}},
      {"scatter_add", {3, 3, [](Emit& e) { return scatter(e, "add"); }}},
      {"scatter_reduce", {3, 3, scatter_reduce}},
      {"gather_nd",
       {2, 2,
        [](Emit& e) {
          return e.node("GatherND", {e.in(0), e.in(1, int64)}, {{"batch_dims", e.integer("batch_dims")}});
        }}},
      {"scatter_nd", {3, 3, scatter_nd}},
      {"one_hot", {1, 1, one_hot}},
      {"sort", {1, 1, sort}},
      {"argsort", {1, 1, [](Emit& e) { return sort(e)[1]; }}},
      {"topk", {1, 1, [](Emit& e) { return ordered(e, e.sizes("k")[0], e.flag("largest")); }}},
  };
}

}  // namespace pleat::onnx
