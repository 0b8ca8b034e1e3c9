#include "pleat/ops/reduce/plan.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"

namespace pleat::ops::reduction {
namespace {

/// Elements that a tensor may have whose storage holds fewer: hours of work.
constexpr int64_t most_repeated = int64_t{1} << 40;

/// Where a dimension belongs in the loop: expanded ones (stride 0) outside, so that what moves moves inside.
int64_t rank_of(int64_t step) { return step == 0 ? std::numeric_limits<int64_t>::max() : std::abs(step); }

/// Innermost first, without sizes of 1, neighbours joined.
std::vector<Dim> simplified(std::vector<Dim> dims) {
  std::erase_if(dims, [](const Dim& dim) { return dim.size == 1; });
  std::reverse(dims.begin(), dims.end());
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dim& a, const Dim& b) { return rank_of(a.step) < rank_of(b.step); });
  std::vector<Dim> joined;
  for (const Dim& dim : dims) {
    const bool joins = !joined.empty() && dim.step == joined.back().step * joined.back().size &&
                       dim.out_step == joined.back().out_step * joined.back().size;
    if (joins)
      joined.back().size *= dim.size;
    else
      joined.push_back(dim);
  }
  if (joined.empty()) joined.push_back({1, 1, 1});
  return joined;
}

bool lies_inside(const Dim& kept, const Dim& reduced) {
  return kept.size > 1 && (reduced.size == 1 || rank_of(kept.step) < rank_of(reduced.step));
}

/// Dense strides in the order in which x's dimensions lie.
Strides strides_as(const Tensor& x, const Shape& shape, const std::vector<std::size_t>& from) {
  Strides strides = dense_strides(shape);
  if (x.is_contiguous() || !x.is_dense()) return strides;
  std::vector<std::size_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return x.strides()[from[a]] < x.strides()[from[b]]; });
  int64_t step = 1;
  for (const std::size_t d : order) {
    strides[d] = step;
    step *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

}  // namespace

void check_can_be_read(const char* op, const Tensor& x) {
  // Only an expanded tensor can be larger than any memory.
  check<ShapeError>(x.numel() <= std::max(most_repeated, x.impl().storage->size),
                    "{}: {} repeats its elements to a number that would take years; reduce it before it is "
                    "expanded",
                    op, x);
}

Plan make_plan(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  const Shape& shape = x.shape();
  check<ShapeError>(shape.size() <= max_rank, "{}: at most {} dimensions, got {}", op, max_rank,
                    shape.size());
  std::vector<bool> is_reduced(shape.size(), dims.empty());
  bool named_scalar = false;
  for (const int64_t dim : dims) {
    const auto d = static_cast<std::size_t>(normalize_dim(dim, x.rank(), op));
    const bool twice = shape.empty() ? named_scalar : static_cast<bool>(is_reduced[d]);
    check<ValueError>(!twice, "{}: dimension {} of {} is named twice", op, d, x);
    if (shape.empty())
      named_scalar = true;
    else
      is_reduced[d] = true;
  }

  check_can_be_read(op, x);
  Plan plan;
  std::vector<std::size_t> from;  // which dimension of x a dimension of the result is
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (is_reduced[d])
      plan.count *= shape[d];
    else
      plan.outputs *= shape[d];
    if (is_reduced[d] && !keepdim) continue;
    plan.shape.push_back(is_reduced[d] ? 1 : shape[d]);
    from.push_back(d);
  }
  plan.strides = strides_as(x, plan.shape, from);
  for (std::size_t d = 0, out = 0; d < shape.size(); ++d) {
    const int64_t out_step = is_reduced[d] ? 0 : plan.strides[out];
    if (!is_reduced[d] || keepdim) ++out;
    (is_reduced[d] ? plan.reduced : plan.kept).push_back({shape[d], x.strides()[d], out_step});
  }
  plan.kept = simplified(std::move(plan.kept));
  plan.reduced = simplified(std::move(plan.reduced));
  plan.kept_inside = lies_inside(plan.kept[0], plan.reduced[0]);
  plan.device = x.device();
  return plan;
}

void check_named_once(const char* op, const Dims& dims, const Dims& in_options) {
  check<ValueError>(in_options.empty(), "{}: dimensions are named twice, {} and .dim = {}; name them once",
                    op, dims, in_options);
}

Tensor empty_result(const Plan& plan, DType dtype) {
  return empty(plan.shape, {.dtype = dtype, .device = plan.device}).as_strided(plan.shape, plan.strides, 0);
}

}  // namespace pleat::ops::reduction
