// Host and device.
#include "pleat/ops/reduce/shares.h"

#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

/// 1 where both are equal or both NaN, else 0.
struct SameElement {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return T((a == b) | ((a != a) & (b != b)));
  }
};

}  // namespace

Tensor shares_of_equals(const Tensor& x, const Tensor& y, const Dims& dims) {
  const RecordOp range("shares_of_equals", x, y);
  const Tensor shares = empty_like(x);
  map_into<Numbers>("max", x.dtype(), shares, std::array{x, y}, SameElement{});
  divide_into(shares, shares, sum(shares, dims, true));
  return shares;
}

Tensor mask_of_index(const Tensor& indices, int64_t dim, int64_t size, DType dtype) {
  const RecordOp range("mask_of_index", indices);
  const int64_t axis = normalize_dim(dim, indices.rank(), "mask_of_index");
  Tensor along = arange(0, size, 1, {.dtype = int64, .device = indices.device()});
  if (indices.rank() == 0) along = reshape(along, {});
  for (int64_t d = axis + 1; d < indices.rank(); ++d) along = unsqueeze(along, -1);
  const Tensor mask = empty(broadcast(indices.shape(), along.shape(), "mask_of_index"),
                            {.dtype = dtype, .device = indices.device()});
  copy_into(mask, equal(indices, along));
  return mask;
}

}  // namespace pleat::ops
