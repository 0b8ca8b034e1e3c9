// Host and device.
#include "pleat/ops/pool/pool_kernels.h"

#include <algorithm>
#include <limits>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/index/index_cuda.h"
#include "pleat/ops/pool/max_pool_cpu.h"
#include "pleat/ops/pool/max_pool_functors.h"
#include "pleat/ops/pool/problem.h"

namespace pleat::ops {
namespace {

/// Fills a result that is dense in `format`, from x of any strides.
void max_pool_by_index(const char* op, const WindowRules& windows, const Tensor& x,
                       const MaxPoolResult& result, MemoryFormat format) {
  dispatch_types(x.dtype(), result.indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    const MaxPoolForward<T, Index> functor{
        windows,           PixelOrder(result.values, format), image_steps(x),
        NumberArray<T>(x), NumberArray<T>(result.values),     result.indices.data<Index>()};
    for_each_index(op, x.device(), result.values.numel(), functor);
  });
}

/// Fills dx, dense in `format`, from dy and indices of any strides.
void max_pool_backward_by_index(const char* op, const WindowRules& windows, const Tensor& dy,
                                const Tensor& indices, const Tensor& dx, MemoryFormat format) {
  dispatch_types(dy.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    const MaxPoolBackward<T, Index> functor{windows,
                                            PixelOrder(dx, format),
                                            image_steps(dy),
                                            image_steps(indices),
                                            NumberArray<T>(dy),
                                            indices.data<Index>(),
                                            NumberArray<T>(dx)};
    for_each_index(op, dx.device(), dx.numel(), functor);
  });
}

/// The same without knowing the windows: a thread works through a whole plane. All tensors are dense in
/// `format`, float32 or float64, and the indices inside the planes.
void scatter_by_plane(const char* op, const Tensor& dy, const Tensor& indices, const Tensor& dx,
                      MemoryFormat format) {
  const bool last = format == MemoryFormat::channels_last;
  dispatch_types(dy.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    const MaxPoolScatterPlane<T, Index> functor{
        {plane_steps(dx, last), plane_steps(dy, last), dy.data<T>(), indices.data<Index>(), dx.data<T>()}};
    for_each_index(op, dx.device(), dx.size(0) * dx.size(1), functor);
  });
}

/// Its adjoint: y gets what the indices name in x.
void gather_by_index(const char* op, const Tensor& x, const Tensor& indices, const Tensor& y,
                     MemoryFormat format) {
  dispatch_types(x.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    const MaxPoolGather<T, Index> functor{plane_steps(x, format == MemoryFormat::channels_last),
                                          PixelOrder(y, format), x.data<T>(), indices.data<Index>(),
                                          y.data<T>()};
    for_each_index(op, y.device(), y.numel(), functor);
  });
}

MaxPoolResult pool(const char* op, const Tensor& x, const WindowRules& rules, bool reference,
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
    max_pool_by_index(op, rules, x, result, format);
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

void check_indices(const char* op, const Tensor& values, const char* what, const Tensor& indices,
                   const Shape& input_shape) {
  check<ShapeError>(indices.rank() >= 3 && indices.rank() <= 5 &&
                        input_shape.size() == indices.shape().size() &&
                        std::equal(input_shape.begin(), input_shape.begin() + 2, indices.shape().begin()),
                    "{}: indices {} do not belong to an input {}", op, indices, input_shape);
  check<DTypeError>(indices.dtype() == int32 || indices.dtype() == int64,
                    "{}: indices must be int32 or int64, got {}", op, indices);
  check<DTypeError>(is_floating(values.dtype()), "{}: {} must be floating, got {}", op, what, values);
  check<DeviceError>(values.device() == indices.device(), "{}: must be on one device, got {} and {}", op,
                     values, indices);
}

void check_range(const char* op, const Tensor& given, int64_t pixels) {
  if constexpr (with_cuda)
    if (given.device().is_cuda() && all_within(op, given, -1, pixels)) return;
  const Tensor indices = to_device(given, Device());
  const auto find = [&]<class Index>(Type<Index>) {
    const Index* index = indices.data<Index>();
    Index low = 0;
    Index high = -1;
    const int64_t n = indices.numel();
    for (int64_t i = 0; i < n; ++i) {
      low = std::min(low, index[i]);
      high = std::max(high, index[i]);
    }
    check<IndexError>(low >= -1 && static_cast<int64_t>(high) < pixels,
                      "{}: indices {} to {} reach outside planes of {}", op, low, high, pixels);
  };
  if (indices.dtype() == int32)
    find(Type<int32_t>{});
  else
    find(Type<int64_t>{});
}

void check_gradient(const char* op, const Tensor& dy, const Tensor& indices, const Shape& input_shape) {
  check_indices(op, dy, "the gradient", indices, input_shape);
  check<ShapeError>(dy.shape() == indices.shape(), "{}: the gradient must be {} like the result, got {}", op,
                    indices.shape(), dy);
}

/// Each dy where its index points to. Indices that anyone gave are checked.
Tensor scattered(const char* op, const Tensor& dy, const Tensor& indices, bool check,
                 const Shape& input_shape, MemoryFormat format) {
  const bool last = format == MemoryFormat::channels_last;
  const Tensor places = to_format(indices, format);
  const Tensor gradient = to_format(cast(dy, compute_dtype(dy.dtype())), format);
  const Tensor dx = empty(input_shape, {.dtype = gradient.dtype(), .device = dy.device(), .format = format});
  if (dx.numel() == 0) return cast(dx, dy.dtype());
  const PlaneSteps in = plane_steps(dx, last);
  if (check) check_range(op, places, in.pixels);
  if (dy.device().is_cuda())
    scatter_by_plane(op, gradient, places, dx, format);
  else
    dispatch_types(gradient.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
      max_pool_backward_on_cpu(dx.size(0),
                               MaxPoolScatter<T, Index>{in, plane_steps(gradient, last), gradient.data<T>(),
                                                        places.data<Index>(), dx.data<T>()});
    });
  return cast(dx, dy.dtype());
}

}  // namespace

MaxPoolResult max_pool(const Tensor& x, const MaxPoolOptions& options, const char* op, bool with_indices) {
  const RecordOp range(op, x);
  const bool reference = wants_reference(op, options.implementation);
  return pool(op, x, max_pool_windows(op, x, options), reference, with_indices);
}

MaxPoolResult adaptive_max_pool(const Tensor& x, const AdaptivePoolOptions& options, const char* op,
                                bool with_indices) {
  const RecordOp range(op, x);
  const bool reference = wants_reference(op, options.implementation);
  return pool(op, x, adaptive_windows(op, x, options), reference, with_indices);
}

Tensor max_pool_backward(const Tensor& dy, const Tensor& indices, const Sizes& input_shape,
                         MemoryFormat format, const char* op) {
  const RecordOp range(op, "_backward", dy, indices);
  check_gradient(op, dy, indices, input_shape);
  return scattered(op, dy, indices, true, input_shape, format);
}

Tensor max_pool_backward(const Tensor& dy, const Tensor& indices, const WindowRules& windows,
                         const Shape& input_shape, MemoryFormat format, const char* op) {
  const RecordOp range(op, "_backward", dy, indices);
  check_gradient(op, dy, indices, input_shape);
  if (dy.device().is_cpu()) return scattered(op, dy, indices, false, input_shape, format);
  const Tensor dx = empty(input_shape, {.dtype = dy.dtype(), .device = dy.device(), .format = format});
  max_pool_backward_by_index(op, windows, dy, indices, dx, format);
  return dx;
}

Tensor max_pool_gather(const Tensor& x, const Tensor& indices, const char* op) {
  const RecordOp range(op, "_gather", x, indices);
  check_indices(op, x, "the input", indices, x.shape());
  const MemoryFormat format = x.memory_format();
  const bool last = format == MemoryFormat::channels_last;
  const Tensor places = to_format(indices, format);
  const Tensor from = to_format(cast(x, compute_dtype(x.dtype())), format);
  const Tensor y = empty(indices.shape(), {.dtype = from.dtype(), .device = x.device(), .format = format});
  if (y.numel() == 0) return cast(y, x.dtype());
  check_range(op, places, plane_steps(from, last).pixels);
  gather_by_index(op, from, places, y, format);
  return cast(y, x.dtype());
}

Tensor avg_pool(const Tensor& x, const AvgPoolOptions& options, const char* op) {
  return apply_linear_map(op, avg_pool_map(op, x, options), x, {.implementation = options.implementation});
}

Tensor adaptive_avg_pool(const Tensor& x, const AdaptivePoolOptions& options, const char* op) {
  return apply_linear_map(op, adaptive_avg_pool_map(op, x, options), x,
                          {.implementation = options.implementation});
}

}  // namespace pleat::ops
