#include "pleat/ops/reduce/shares.h"

#include "pleat/core/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {

Tensor shares_of_equals(const Tensor& x, const Tensor& y, const Dims& dims) {
  const Tensor shares = empty_like(x);
  dispatch_number("max", x.dtype(), [&]<class T>(Type<T>) {
    elementwise<T, T, T>("max", shares, {x, y}, [](T* out, const T* a, const T* b, int64_t n) {
      for (int64_t i = 0; i < n; ++i) out[i] = T((a[i] == b[i]) | ((a[i] != a[i]) & (b[i] != b[i])));
    });
  });
  divide_into(shares, shares, sum(shares, dims, true));
  return shares;
}

Tensor mask_of_index(const Tensor& indices, int64_t dim, int64_t size, DType dtype) {
  const int64_t axis = normalize_dim(dim, indices.rank(), "mask_of_index");
  Tensor along = arange(size);
  if (indices.rank() == 0) along = reshape(along, {});
  for (int64_t d = axis + 1; d < indices.rank(); ++d) along = unsqueeze(along, -1);
  const Tensor mask = empty(broadcast(indices.shape(), along.shape(), "mask_of_index"), {.dtype = dtype});
  dispatch_floating("mask_of_index", dtype, [&]<class T>(Type<T>) {
    elementwise<T, int64_t, int64_t>("mask_of_index", mask, {indices, along},
                                     [](T* out, const int64_t* a, const int64_t* b, int64_t n) {
                                       for (int64_t i = 0; i < n; ++i) out[i] = a[i] == b[i] ? T(1) : T(0);
                                     });
  });
  return mask;
}

}  // namespace pleat::ops
