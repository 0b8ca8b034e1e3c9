// Host and device.
#include "pleat/ops/pool/kernels.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/dispatch_size.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/pool/max_pool_functors.h"

namespace pleat::ops {

namespace {

/// Calls `f` with the types that kernels compute in: see max_pool_forward.
template <class F>
void dispatch_kernel(DType values, DType indices, const F& f) {
  if (indices == int32) return f(Type<float>{}, Type<int32_t>{});
  if (values == float64) return f(Type<double>{}, Type<int64_t>{});
  f(Type<float>{}, Type<int64_t>{});
}

/// Whether the places of these windows' inputs, and all of an image of x, can be counted by 32 bits.
bool counts_small(const Tensor& x, const WindowRules& rules) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  int64_t inputs = x.size(1), outputs = x.size(1);
  for (const WindowRule& rule : rules) {
    inputs = checked_multiply(inputs, rule.inputs, "max_pool");
    outputs = checked_multiply(outputs, rule.outputs, "max_pool");
    if (!Window<uint32_t>::fits_small(rule)) return false;
  }
  return std::max({inputs, outputs, reach_of_image(x)}) <= most;
}

/// Calls `run(first, groups, calls, pixels)` for parts of the images of `result`, of which `others` have as
/// many.
template <class Place, class Run>
void for_parts(const WindowRules& rules, const Tensor& result, MemoryFormat format,
               const std::vector<Tensor>& others, const Run& run) {
  using Index = IndexOf<Place>;
  bool joins = format == MemoryFormat::contiguous;
  int64_t reach = 1;
  std::vector<Tensor> all = others;
  all.push_back(result);
  for (const Tensor& t : all) {
    joins = joins && joins_images(t);
    reach = std::max({reach, reach_of_image(t), t.strides()[0]});
  }
  const auto part = [&](int64_t first, int64_t images) {
    const int64_t channels = result.size(1) * (joins ? images : 1);
    const int64_t groups = lane_groups(channels);
    const PoolPixels<Index> pixels{Window<Index>(rules[0]),
                                   Window<Index>(rules[1]),
                                   Window<Index>(rules[2]),
                                   PixelOrderOf<Index>(result, format, groups),
                                   static_cast<Index>(channels),
                                   steps_as<Index>(result),
                                   rules[0].inputs == 1 && rules[0].outputs == 1 && rules[0].kernel == 1};
    run(first, groups, result.numel() / result.size(0) / result.size(1) * groups * (joins ? 1 : images),
        pixels);
  };
  if constexpr (std::is_same_v<Place, int32_t>)
    for_image_parts(result.size(0), reach, part);
  else
    part(0, result.size(0));
}

}  // namespace

MaxPoolResult max_pool_forward(const char* op, const Tensor& given, const WindowRules& rules, bool reference,
                               bool with_indices) {
  Shape shape{given.size(0), given.size(1)};
  for (auto d = static_cast<std::size_t>(5 - given.rank()); d < 3; ++d) shape.push_back(rules[d].outputs);
  const MemoryFormat format = given.memory_format();
  const bool by_index = reference || given.device().is_cuda();
  // Half types as they are only where kernels count by 32 bits; float64 by 64 bits alone.
  const DType index = counts_small(given, rules) && !(by_index && given.dtype() == float64) ? int32 : int64;
  const DType dtype = by_index && index == int32 ? given.dtype() : compute_dtype(given.dtype());
  const Tensor x = cast(given, dtype);
  MaxPoolResult result{empty(shape, {.dtype = dtype, .device = x.device(), .format = format}), {}};
  if (with_indices) result.indices = empty(shape, {.dtype = index, .device = x.device(), .format = format});
  if (result.values.numel() == 0) return {cast(result.values, given.dtype()), result.indices};
  if (by_index) {
    dispatch_kernel(dtype, index, [&]<class T, class Place>(Type<T>, Type<Place>) {
      using Index = IndexOf<Place>;
      for_parts<Place>(
          rules, result.values, format, {x},
          [&](int64_t first, int64_t groups, int64_t calls, const PoolPixels<Index>& pixels) {
            const MaxPoolForward<T, Place> functor{
                pixels,
                steps_as<Index>(x),
                LaneArray<Index>(x, first, groups),
                LaneArray<Index>(result.values, first, groups),
                with_indices ? LaneArray<Index>(result.indices, first, groups) : LaneArray<Index>(),
                x.dtype()};
            for_each_index(op, x.device(), calls, functor);
          });
    });
    return {cast(result.values, given.dtype()), result.indices};
  }
  const Tensor dense = to_format(x, format);
  const bool last = format == MemoryFormat::channels_last;
  dispatch_types(dtype, index, [&]<class T, class Index>(Type<T>, Type<Index>) {
    max_pool_on_cpu(rules, x.size(0), plane_steps(dense, last), plane_steps(result.values, last),
                    dense.data<T>(), result.values.data<T>(),
                    with_indices ? result.indices.data<Index>() : nullptr);
  });
  return {cast(result.values, given.dtype()), result.indices};
}

Tensor max_pool_backward(const char* op, const Tensor& dy, const Tensor& indices, const WindowRules& windows,
                         const Shape& input_shape, MemoryFormat format) {
  const RecordOp range(op, "_backward", dy, indices);
  const bool on_cpu = dy.device().is_cpu();
  const bool reaches_far = reach_of_image(dy) > std::numeric_limits<int32_t>::max();
  const Tensor given = on_cpu || indices.dtype() == int64 ? cast(dy, compute_dtype(dy.dtype())) : dy;
  const Tensor gradient = on_cpu || reaches_far ? to_format(given, format) : given;
  const Tensor dx = empty(input_shape, {.dtype = gradient.dtype(), .device = dy.device(), .format = format});
  if (dx.numel() == 0) return cast(dx, dy.dtype());
  const bool last = format == MemoryFormat::channels_last;
  if (on_cpu) {
    const Tensor to = to_format(indices, format);
    dispatch_types(gradient.dtype(), to.dtype(), [&]<class T, class Place>(Type<T>, Type<Place>) {
      max_pool_backward_on_cpu(dx.size(0),
                               MaxPoolScatter<T, Place>{plane_steps(dx, last), plane_steps(gradient, last),
                                                        gradient.data<T>(), to.data<Place>(), dx.data<T>()});
    });
    return cast(dx, dy.dtype());
  }
  const Tensor places = gradient.dtype() == float64 ? cast(indices, int64) : indices;
  dispatch_kernel(gradient.dtype(), places.dtype(), [&]<class T, class Place>(Type<T>, Type<Place>) {
    using Index = IndexOf<Place>;
    for_parts<Place>(windows, dx, format, {gradient, places},
                     [&](int64_t first, int64_t groups, int64_t calls, const PoolPixels<Index>& pixels) {
                       const MaxPoolBackward<T, Place> functor{pixels,
                                                               steps_as<Index>(gradient),
                                                               steps_as<Index>(places),
                                                               LaneArray<Index>(gradient, first, groups),
                                                               LaneArray<Index>(places, first, groups),
                                                               LaneArray<Index>(dx, first, groups),
                                                               dx.dtype()};
                       for_each_index(op, dx.device(), calls, functor);
                     });
  });
  return cast(dx, dy.dtype());
}

Tensor places_in_windows(const char* op, const Tensor& indices, const WindowRules& windows,
                         MemoryFormat format) {
  const bool overlap = std::any_of(windows.begin(), windows.end(), [](const WindowRule& rule) {
    return rule.outputs > 1 && rule.stride < rule.kernel;
  });
  const bool integers = !is_floating(indices.dtype()) && indices.dtype() != boolean;
  if (!indices.device().is_cuda() || !integers || overlap || !counts_small(indices, windows)) return {};
  const Tensor given = to_format(cast(indices, int64), format);
  const Tensor places = empty(given.shape(), {.dtype = int32, .device = given.device(), .format = format});
  const Tensor outside = zeros({1}, {.dtype = int32, .device = given.device()});
  for_parts<int32_t>(windows, places, format, {given},
                     [&](int64_t first, int64_t groups, int64_t calls, const PoolPixels<uint32_t>& each) {
                       const PlacesInWindow functor{each,
                                                    steps_as<uint32_t>(given),
                                                    LaneArray<uint32_t>(given, first, groups),
                                                    LaneArray<uint32_t>(places, first, groups),
                                                    windows[0].inputs * windows[1].inputs * windows[2].inputs,
                                                    Divider<uint32_t>(windows[1].inputs),
                                                    Divider<uint32_t>(windows[2].inputs),
                                                    outside.data<int32_t>()};
                       for_each_index(op, given.device(), calls, functor);
                     });
  return outside.item<int32_t>() == 0 ? places : Tensor();
}

Tensor max_pool_gather(const char* op, const Tensor& x, const Tensor& indices) {
  const RecordOp range(op, "_gather", x, indices);
  const MemoryFormat format = x.memory_format();
  const Tensor places = to_format(indices, format), from = to_format(x, format);
  const Tensor y = empty(indices.shape(), {.dtype = x.dtype(), .device = x.device(), .format = format});
  dispatch_size(x.dtype(), [&]<class T>(Type<T>) {
    const MaxPoolGather<T> functor{plane_steps(from, format == MemoryFormat::channels_last),
                                   PixelOrder(y, format),
                                   reinterpret_cast<const T*>(from.raw()),
                                   places.dtype() == int32 ? places.data<int32_t>() : nullptr,
                                   places.dtype() == int32 ? nullptr : places.data<int64_t>(),
                                   reinterpret_cast<T*>(y.raw())};
    for_each_index(op, y.device(), y.numel(), functor);
  });
  return y;
}

}  // namespace pleat::ops
