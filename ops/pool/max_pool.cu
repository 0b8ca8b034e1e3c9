#include "pleat/core/grid.h"
#include "pleat/ops/pool/max_pool_grid.h"
#include "pleat/ops/pool/max_pool_types.h"

namespace pleat::ops {

void max_pool_on_grid(const char* op, const WindowRules& windows, const Tensor& x,
                      const MaxPoolResult& result, MemoryFormat format) {
  dispatch_types(x.dtype(), result.indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    const MaxPoolForward<T, Index> functor{
        windows,           PixelOrder(result.values, format), image_steps(x),
        NumberArray<T>(x), NumberArray<T>(result.values),     result.indices.data<Index>()};
    grid_for(op, x.device(), result.values.numel(), functor);
  });
}

void max_pool_backward_on_grid(const char* op, const WindowRules& windows, const Tensor& dy,
                               const Tensor& indices, const Tensor& dx, MemoryFormat format) {
  dispatch_types(dy.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    const MaxPoolBackward<T, Index> functor{windows,
                                            PixelOrder(dx, format),
                                            image_steps(dy),
                                            image_steps(indices),
                                            NumberArray<T>(dy),
                                            indices.data<Index>(),
                                            NumberArray<T>(dx)};
    grid_for(op, dx.device(), dx.numel(), functor);
  });
}

void max_pool_scatter_on_grid(const char* op, const Tensor& dy, const Tensor& indices, const Tensor& dx,
                              MemoryFormat format) {
  const bool last = format == MemoryFormat::channels_last;
  dispatch_types(dy.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    const MaxPoolScatterPlane<T, Index> functor{
        {plane_steps(dx, last), plane_steps(dy, last), dy.data<T>(), indices.data<Index>(), dx.data<T>()}};
    grid_for(op, dx.device(), dx.size(0) * dx.size(1), functor);
  });
}

void max_pool_gather_on_grid(const char* op, const Tensor& x, const Tensor& indices, const Tensor& y,
                             MemoryFormat format) {
  dispatch_types(x.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    const MaxPoolGather<T, Index> functor{plane_steps(x, format == MemoryFormat::channels_last),
                                          PixelOrder(y, format), x.data<T>(), indices.data<Index>(),
                                          y.data<T>()};
    grid_for(op, y.device(), y.numel(), functor);
  });
}

}  // namespace pleat::ops
