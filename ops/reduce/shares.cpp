// Host and device.
#include "pleat/ops/reduce/shares.h"

#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/reduce/lines.h"

namespace pleat::ops {
namespace {

/// 1 where both are equal or both NaN, else 0.
struct SameElement {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return T((a == b) | ((a != a) & (b != b)));
  }
};

/// One line of y a call, of which values and indices have one element.
template <class T>
struct PlaceAtIndex {
  FastDivider inner;
  int64_t size;
  const int64_t* indices;
  const T* values;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t line) const {
    int64_t within = line;
    const int64_t outer = inner.divide(within);
    y[(outer * size + indices[line]) * inner.divisor() + within] = values[line];
  }
};

}  // namespace

Tensor equal_elements(const Tensor& x, const Tensor& y) {
  const RecordOp range("equal_elements", x, y);
  const Tensor equal = empty_like(x);
  map_into<Numbers>("max", x.dtype(), equal, std::array{x, y}, SameElement{});
  return equal;
}

Tensor place_at_indices(const Tensor& values, const Tensor& indices, int64_t dim, int64_t size,
                        MemoryFormat format) {
  const RecordOp range("place_at_indices", values, indices);
  Shape shape = values.shape();
  if (!shape.empty()) shape[static_cast<std::size_t>(normalize_dim(dim, values.rank(), "max"))] = size;
  const Tensor y = zeros(shape, {.dtype = values.dtype(), .device = values.device(), .format = format});
  const Tensor from = to_format(values, format), places = to_format(indices, format);
  dispatch(y.dtype(), [&]<class T>(Type<T>) {
    for_each_index("max", y.device(), values.numel(),
                   PlaceAtIndex<T>{FastDivider(Lines("max", y, dim).inner), size, places.data<int64_t>(),
                                   from.data<T>(), y.data<T>()});
  });
  return y;
}

}  // namespace pleat::ops
