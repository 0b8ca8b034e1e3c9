#include "pleat/core/record_function.h"
#include "pleat/ops/reduce/extremes_functors.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {

using namespace reduction;

namespace {

Plan plan_of_elements(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  Plan plan = make_plan(op, x, dims, keepdim);
  check<ShapeError>(plan.count > 0, "{}: needs at least one element to choose from, got {} reduced to {}", op,
                    x, plan.shape);
  return plan;
}

template <bool larger>
Tensor extreme(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  const RecordOp range(op, x);
  const Plan plan = plan_of_elements(op, x, dims, keepdim);
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    return reduce_to(op, Fold<ExtremeStep<T, larger>>{}, plan, x, x.dtype(), AsIs<T>{});
  });
}

template <bool larger>
ValuesIndices with_indices(const char* op, const Tensor& x, int64_t dim, bool keepdim) {
  const RecordOp range(op, x);
  const Plan plan = plan_of_elements(op, x, dim, keepdim);
  return dispatch_read(x.dtype(), [&]<class T>(Type<T>) {
    const auto [values, indices] =
        reduce_to_two(op, Arg<T, larger>{}, plan, x, x.dtype(), int64, ValueAndIndex<T>{});
    return ValuesIndices{values, indices};
  });
}

template <bool larger>
Tensor arg(const char* op, const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  if (dim) return with_indices<larger>(op, x, *dim, keepdim).indices;
  const Tensor flat = with_indices<larger>(op, reshape(x, {x.numel()}), 0, false).indices;
  const Tensor place = keepdim ? reshape(flat, Shape(x.shape().size(), 1)) : flat;
  place.mutable_impl().is_place_among_all = true;
  return place;
}

}  // namespace

Tensor max(const Tensor& x, const Dims& dims, Flag keepdim) { return extreme<true>("max", x, dims, keepdim); }
Tensor min(const Tensor& x, const Dims& dims, Flag keepdim) {
  return extreme<false>("min", x, dims, keepdim);
}

ValuesIndices max_with_indices(const Tensor& x, Integer dim, Flag keepdim) {
  return with_indices<true>("max_with_indices", x, dim, keepdim);
}
ValuesIndices min_with_indices(const Tensor& x, Integer dim, Flag keepdim) {
  return with_indices<false>("min_with_indices", x, dim, keepdim);
}

Tensor argmax(const Tensor& x, std::optional<Integer> dim, Flag keepdim) {
  return arg<true>("argmax", x, dim, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<Integer> dim, Flag keepdim) {
  return arg<false>("argmin", x, dim, keepdim);
}

}  // namespace pleat::ops
