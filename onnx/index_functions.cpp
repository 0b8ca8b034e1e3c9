#include "pleat/onnx/emit.h"
#include "pleat/onnx/functions.h"

/// Functions of indices, and those that order elements.

namespace pleat::onnx {
namespace {

using Names = std::vector<std::string>;
using Integers = std::vector<int64_t>;

std::string index_of(Emit& e, std::size_t i) {
  return e.dtype(i) == int32 || e.dtype(i) == int64 ? e.in(i) : e.in(i, int64);
}

Names scatter(Emit& e, const char* reduction) {
  if (e.shape(1) != e.shape(2)) e.refuse("index and source need one shape");
  return {e.node("ScatterElements", {e.in(0), index_of(e, 1), e.in(2, e.out_dtype())},
                 {{"axis", e.dim("dim", e.rank(0))}, {"reduction", reduction}})};
}

Names scatter_reduce(Emit& e) {
  if (!e.flag("include_self")) e.refuse("ScatterElements takes the tensor's own elements, too");
  const std::string reduction = e.text("reduction");
  if (reduction == "mean") e.refuse("ScatterElements has no mean");
  return scatter(e, reduction.c_str());
}

Names scatter_nd(Emit& e) {
  const std::string reduction = e.text("reduction");
  if (reduction == "mean") e.refuse("ScatterND has no mean");
  return {e.node("ScatterND", {e.in(0), e.in(1, int64), e.in(2)}, {{"reduction", reduction.c_str()}})};
}

Names one_hot(Emit& e) {
  int64_t classes = e.integer("classes");
  if (classes < 0) e.refuse("the number of classes must be given");
  const std::string values = e.node(
      "Concat",
      {e.reshape(e.number(0, e.out_dtype()), {{0, 1}}), e.reshape(e.number(1, e.out_dtype()), {{0, 1}})},
      {{"axis", int64_t{0}}});
  return {e.node("OneHot", {e.in(0, int64), e.reshape(e.list(Integers{classes}), {}), values},
                 {{"axis", int64_t{-1}}})};
}

Names ordered(Emit& e, const Size& count, bool largest) {
  const int64_t dim = e.dim("dim", e.rank(0));
  return e.nodes("TopK", {e.in(0), e.list(SizeList{count})},
                 {{"axis", dim}, {"largest", int64_t{largest}}, {"sorted", int64_t{1}}}, 2);
}

Names sort(Emit& e) {
  const std::size_t dim = static_cast<std::size_t>(e.dim("dim", e.rank(0)));
  return ordered(e, e.shape(0)[dim], e.flag("descending"));
}

Names topk(Emit& e) { return ordered(e, e.sizes("k")[0], e.flag("largest")); }

}  // namespace

void add_index(Conversions& all) {
  all.merge(Conversions{
      {"embedding",
       {2, 2,
        [](Emit& e) -> Names {
          return {e.node("Gather", {e.in(1), index_of(e, 0)})};
        }}},
      {"index_select",
       {2, 2,
        [](Emit& e) -> Names {
          return {e.node("Gather", {e.in(0), index_of(e, 1)}, {{"axis", e.dim("dim", e.rank(0))}})};
        }}},
      {"gather",
       {2, 2,
        [](Emit& e) -> Names {
          return {e.node("GatherElements", {e.in(0), index_of(e, 1)}, {{"axis", e.dim("dim", e.rank(0))}})};
        }}},
      {"scatter", {3, 3, [](Emit& e) { return scatter(e, "none"); }}},
      {"scatter_add", {3, 3, [](Emit& e) { return scatter(e, "add"); }}},
      {"scatter_reduce", {3, 3, scatter_reduce}},
      {"gather_nd",
       {2, 2,
        [](Emit& e) -> Names {
          return {e.node("GatherND", {e.in(0), e.in(1, int64)}, {{"batch_dims", e.integer("batch_dims")}})};
        }}},
      {"scatter_nd", {3, 3, scatter_nd}},
      {"one_hot", {1, 1, one_hot}},
      {"sort", {1, 1, sort}},
      {"argsort", {1, 1, [](Emit& e) -> Names { return {sort(e)[1]}; }}},
      {"topk", {1, 1, topk}},
  });
}

}  // namespace pleat::onnx
