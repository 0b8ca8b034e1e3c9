#include <cmath>

#include "pleat/onnx/functions.h"

/// Reductions, and sums on the way.

namespace pleat::onnx {
namespace {

/// The dimensions; all where none is named.
Integers dims_of(Emit& e) {
  Integers dims = e.integers("dims");
  for (int64_t& dim : dims)
    if (dim < 0) dim += e.rank(0);
  if (dims.empty())
    for (int64_t d = 0; d < e.rank(0); ++d) dims.push_back(d);
  return dims;
}

Operand reduced(Emit& e, const char* op, const Operand& x, bool keepdim) {
  if (e.rank(0) == 0) return x;
  return e.node(op, {x, e.list(dims_of(e))}, {{"keepdims", keepdim}});
}
Operand reduced(Emit& e, const char* op, const Operand& x) { return reduced(e, op, x, e.flag("keepdim")); }

Conversion reduction(const char* op) {
  return {1, 1, [op](Emit& e) { return reduced(e, op, e.x()); }};
}

/// Mean squared distance from the mean, over count - correction; and the mean.
Results var_mean(Emit& e) {
  const Operand x = e.x();
  const Operand centre = reduced(e, "ReduceMean", x, true);
  double count = 1;
  for (const int64_t dim : dims_of(e)) count *= static_cast<double>(e.fixed_size(0, dim));
  return {reduced(e, "ReduceSumSquare", x - centre) / (count - e.number("correction")),
          e.flag("keepdim") ? centre : reduced(e, "ReduceMean", x, false)};
}

Operand norm(Emit& e) {
  const double p = e.number("p");
  const Operand x = e.x();
  if (p == 2) return reduced(e, "ReduceL2", x);
  if (p == 1) return reduced(e, "ReduceL1", x);
  if (p == 0) return reduced(e, "ReduceSum", apply("Where", apply("Equal", x, 0), 0, 1));
  const Operand size = apply("Abs", x);
  if (std::isinf(p)) return reduced(e, p > 0 ? "ReduceMax" : "ReduceMin", size);
  return apply("Pow", reduced(e, "ReduceSum", apply("Pow", size, p)), 1 / p);
}

/// Whether any or all elements are not 0.
Conversion truth(const char* op) {
  return {1, 1, [op](Emit& e) { return e.cast(reduced(e, op, e.cast(e.in(0, boolean), int32)), boolean); }};
}

void check_has_dims(Emit& e) {
  if (e.rank(0) == 0) e.refuse("it is asked of a single number");
}

Conversion place(const char* op) {
  return {1, 1, [op](Emit& e) {
            check_has_dims(e);
            const bool keepdim = e.flag("keepdim");
            if (!e.flag("all")) return e.node(op, {e.in(0)}, {{"axis", e.dim()}, {"keepdims", keepdim}});
            const Operand flat = apply("Reshape", e.in(0), e.list(Integers{-1}));
            const Operand y = e.node(op, {flat}, {{"axis", 0}, {"keepdims", 0}});
            return keepdim ? e.reshape(y, e.out_shape()) : y;
          }};
}

Conversion with_place(const char* op, const char* place_op) {
  return {1, 1, [=](Emit& e) -> Results {
            check_has_dims(e);
            const int64_t dim = e.dim();
            const bool keepdim = e.flag("keepdim");
            return {e.node(op, {e.in(0), e.list(Integers{dim})}, {{"keepdims", keepdim}}),
                    e.node(place_op, {e.in(0)}, {{"axis", dim}, {"keepdims", keepdim}})};
          }};
}

Operand cumsum(Emit& e) {
  return e.node("CumSum", {e.x(), e.reshape(e.list(Integers{e.dim()}), {})},
                {{"reverse", e.flag("reverse")}});
}

}  // namespace

Conversions reduce_functions() {
  return {
      {"sum", reduction("ReduceSum")},
      {"mean", reduction("ReduceMean")},
      {"prod", reduction("ReduceProd")},
      {"max", reduction("ReduceMax")},
      {"min", reduction("ReduceMin")},
      {"logsumexp", reduction("ReduceLogSumExp")},
      {"norm", {1, 1, norm}},
      {"var", {1, 1, [](Emit& e) { return var_mean(e)[0]; }}},
      {"stddev", {1, 1, [](Emit& e) { return apply("Sqrt", var_mean(e)[0]); }}},
      {"var_mean", {1, 1, var_mean}},
      {"any", truth("ReduceMax")},
      {"all", truth("ReduceMin")},
      {"argmax", place("ArgMax")},
      {"argmin", place("ArgMin")},
      {"max_with_indices", with_place("ReduceMax", "ArgMax")},
      {"min_with_indices", with_place("ReduceMin", "ArgMin")},
      {"cumsum", {1, 1, cumsum}},
  };
}

}  // namespace pleat::onnx
