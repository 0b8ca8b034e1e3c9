// Host and device.
#include "pleat/ops/pool/kernels.h"

#include <limits>

#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/pool/max_pool_functors.h"

namespace pleat::ops {

MaxPoolResult max_pool_forward(const char* op, const Tensor& x, const WindowRules& rules, bool reference,
                               bool with_indices) {
  Shape shape{x.size(0), x.size(1)};
  for (auto d = static_cast<std::size_t>(5 - x.rank()); d < 3; ++d) shape.push_back(rules[d].outputs);
  const MemoryFormat format = x.memory_format();
  const int64_t plane = rules[0].inputs * rules[1].inputs * rules[2].inputs;
  const DType index = plane <= std::numeric_limits<int32_t>::max() ? int32 : int64;
  const bool by_index = reference || x.device().is_cuda();
  const DType dtype = by_index ? x.dtype() : compute_dtype(x.dtype());
  MaxPoolResult result{empty(shape, {.dtype = dtype, .device = x.device(), .format = format}), {}};
  if (by_index || with_indices)
    result.indices = empty(shape, {.dtype = index, .device = x.device(), .format = format});
  if (by_index) {
    dispatch_types(x.dtype(), index, [&]<class T, class Index>(Type<T>, Type<Index>) {
      const MaxPoolForward<T, Index> functor{rules,
                                             PixelOrder(result.values, format),
                                             image_steps(x),
                                             NumberArray<T>(x),
                                             NumberArray<T>(result.values),
                                             result.indices.data<Index>()};
      for_each_index(op, x.device(), result.values.numel(), functor);
    });
    return result;
  }
  if (result.values.numel() == 0) return {cast(result.values, x.dtype()), result.indices};
  const Tensor dense = to_format(cast(x, dtype), format);
  const bool last = format == MemoryFormat::channels_last;
  dispatch_types(dtype, index, [&]<class T, class Index>(Type<T>, Type<Index>) {
    max_pool_on_cpu(rules, x.size(0), plane_steps(dense, last), plane_steps(result.values, last),
                    dense.data<T>(), result.values.data<T>(),
                    with_indices ? result.indices.data<Index>() : nullptr);
  });
  return {cast(result.values, x.dtype()), result.indices};
}

Tensor max_pool_backward(const char* op, const Tensor& dy, const Tensor& indices, const WindowRules& windows,
                         const Shape& input_shape, MemoryFormat format) {
  const RecordOp range(op, "_backward", dy, indices);
  const bool on_cpu = dy.device().is_cpu();
  const Tensor gradient = on_cpu ? to_format(cast(dy, compute_dtype(dy.dtype())), format) : dy;
  const Tensor dx = empty(input_shape, {.dtype = gradient.dtype(), .device = dy.device(), .format = format});
  if (dx.numel() == 0) return cast(dx, dy.dtype());
  const bool last = format == MemoryFormat::channels_last;
  dispatch_types(gradient.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    if (on_cpu) {
      const Tensor places = to_format(indices, format);
      return max_pool_backward_on_cpu(
          dx.size(0), MaxPoolScatter<T, Index>{plane_steps(dx, last), plane_steps(gradient, last),
                                               gradient.data<T>(), places.data<Index>(), dx.data<T>()});
    }
    const MaxPoolBackward<T, Index> functor{windows,
                                            PixelOrder(dx, format),
                                            image_steps(dy),
                                            image_steps(indices),
                                            NumberArray<T>(dy),
                                            indices.data<Index>(),
                                            NumberArray<T>(dx)};
    for_each_index(op, dx.device(), dx.numel(), functor);
  });
  return cast(dx, dy.dtype());
}

Tensor max_pool_gather(const char* op, const Tensor& x, const Tensor& indices) {
  const RecordOp range(op, "_gather", x, indices);
  const MemoryFormat format = x.memory_format();
  const Tensor places = to_format(indices, format);
  const Tensor from = to_format(cast(x, compute_dtype(x.dtype())), format);
  const Tensor y = empty(indices.shape(), {.dtype = from.dtype(), .device = x.device(), .format = format});
  dispatch_types(from.dtype(), places.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    const MaxPoolGather<T, Index> functor{plane_steps(from, format == MemoryFormat::channels_last),
                                          PixelOrder(y, format), from.data<T>(), places.data<Index>(),
                                          y.data<T>()};
    for_each_index(op, y.device(), y.numel(), functor);
  });
  return cast(y, x.dtype());
}

}  // namespace pleat::ops
