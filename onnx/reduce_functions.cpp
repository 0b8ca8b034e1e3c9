#include <cmath>
#include <limits>

#include "pleat/onnx/emit.h"
#include "pleat/onnx/functions.h"

/// Reductions, and sums on the way.

namespace pleat::onnx {
namespace {

using Names = std::vector<std::string>;
using Integers = std::vector<int64_t>;

/// The dimensions; all where none is named.
Integers dims_of(Emit& e) {
  Integers dims = e.integers("dims");
  for (int64_t& dim : dims)
    if (dim < 0) dim += e.rank(0);
  if (dims.empty())
    for (int64_t d = 0; d < e.rank(0); ++d) dims.push_back(d);
  return dims;
}

std::string reduced(Emit& e, const char* op, const std::string& x, bool keepdim) {
  if (e.rank(0) == 0) return x;
  return e.node(op, {x, e.list(dims_of(e))}, {{"keepdims", int64_t{keepdim}}});
}

Names reduce(Emit& e, const char* op) { return {reduced(e, op, e.in(0, e.out_dtype()), e.flag("keepdim"))}; }

/// How many elements make one result.
double count_of(Emit& e) {
  double count = 1;
  for (const int64_t dim : dims_of(e)) count *= static_cast<double>(e.fixed_size(0, dim));
  return count;
}

struct Moments {
  std::string var, mean;
};

/// Mean squared distance from the mean, over count - correction.
Moments moments_of(Emit& e) {
  const std::string x = e.in(0, e.out_dtype());
  const bool keepdim = e.flag("keepdim");
  const std::string centre = reduced(e, "ReduceMean", x, true);
  const std::string distance = e.node("Sub", {x, centre});
  const std::string squares = reduced(e, "ReduceSumSquare", distance, keepdim);
  const double degrees = count_of(e) - e.number("correction");
  return {e.node("Div", {squares, e.number(degrees, e.out_dtype())}),
          keepdim ? centre : reduced(e, "ReduceMean", x, false)};
}

Names norm(Emit& e) {
  const double p = e.number("p");
  const std::string x = e.in(0, e.out_dtype());
  const bool keepdim = e.flag("keepdim");
  const auto number = [&](double value) { return e.number(value, e.out_dtype()); };
  if (p == 2) return {reduced(e, "ReduceL2", x, keepdim)};
  if (p == 1) return {reduced(e, "ReduceL1", x, keepdim)};
  if (p == 0) {
    const std::string is_zero = e.node("Equal", {x, number(0)});
    return {reduced(e, "ReduceSum", e.node("Where", {is_zero, number(0), number(1)}), keepdim)};
  }
  const std::string size = e.node("Abs", {x});
  if (std::isinf(p)) return {reduced(e, p > 0 ? "ReduceMax" : "ReduceMin", size, keepdim)};
  const std::string sum = reduced(e, "ReduceSum", e.node("Pow", {size, number(p)}), keepdim);
  return {e.node("Pow", {sum, number(1 / p)})};
}

/// Whether any or all elements are not 0.
Names truth(Emit& e, const char* op) {
  const std::string x = e.cast(e.in(0, boolean), int32);
  return {e.cast(reduced(e, op, x, e.flag("keepdim")), boolean)};
}

Names place(Emit& e, const char* op) {
  if (e.rank(0) == 0) e.refuse("it is asked of a single number");
  const bool keepdim = e.flag("keepdim");
  if (!e.flag("all"))
    return {e.node(op, {e.in(0)}, {{"axis", e.dim("dim", e.rank(0))}, {"keepdims", int64_t{keepdim}}})};
  const std::string flat = e.node("Reshape", {e.in(0), e.list(Integers{-1})});
  const std::string y = e.node(op, {flat}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}});
  return {keepdim ? e.reshape(y, e.out_shape()) : y};
}

Names with_place(Emit& e, const char* op, const char* place_op) {
  if (e.rank(0) == 0) e.refuse("it is asked of a single number");
  const int64_t dim = e.dim("dim", e.rank(0));
  const int64_t keepdim = e.flag("keepdim");
  return {e.node(op, {e.in(0), e.list(Integers{dim})}, {{"keepdims", keepdim}}),
          e.node(place_op, {e.in(0)}, {{"axis", dim}, {"keepdims", keepdim}})};
}

Names cumsum(Emit& e) {
  const std::string dim = e.reshape(e.list(Integers{e.dim("dim", e.rank(0))}), {});
  return {e.node("CumSum", {e.in(0, e.out_dtype()), dim}, {{"reverse", int64_t{e.flag("reverse")}}})};
}

}  // namespace

void add_reduce(Conversions& all) {
  all.merge(Conversions{
      {"sum", {1, 1, [](Emit& e) { return reduce(e, "ReduceSum"); }}},
      {"mean", {1, 1, [](Emit& e) { return reduce(e, "ReduceMean"); }}},
      {"prod", {1, 1, [](Emit& e) { return reduce(e, "ReduceProd"); }}},
      {"max", {1, 1, [](Emit& e) { return reduce(e, "ReduceMax"); }}},
      {"min", {1, 1, [](Emit& e) { return reduce(e, "ReduceMin"); }}},
      {"logsumexp", {1, 1, [](Emit& e) { return reduce(e, "ReduceLogSumExp"); }}},
      {"norm", {1, 1, norm}},
      {"var", {1, 1, [](Emit& e) -> Names { return {moments_of(e).var}; }}},
      {"stddev", {1, 1, [](Emit& e) -> Names { return {e.node("Sqrt", {moments_of(e).var})}; }}},
      {"var_mean",
       {1, 1,
        [](Emit& e) -> Names {
          const Moments moments = moments_of(e);
          return {moments.var, moments.mean};
        }}},
      {"any", {1, 1, [](Emit& e) { return truth(e, "ReduceMax"); }}},
      {"all", {1, 1, [](Emit& e) { return truth(e, "ReduceMin"); }}},
      {"argmax", {1, 1, [](Emit& e) { return place(e, "ArgMax"); }}},
      {"argmin", {1, 1, [](Emit& e) { return place(e, "ArgMin"); }}},
      {"max_with_indices", {1, 1, [](Emit& e) { return with_place(e, "ReduceMax", "ArgMax"); }}},
      {"min_with_indices", {1, 1, [](Emit& e) { return with_place(e, "ReduceMin", "ArgMin"); }}},
      {"cumsum", {1, 1, cumsum}},
  });
}

}  // namespace pleat::onnx
