// Host and device.
#include "pleat/ops/pool/pool.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/index/index_cuda.h"
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

constexpr int64_t grain_elements = 16384;

/// The windows along one dimension as plain arrays.
struct WindowsView {
  int64_t inputs, outputs, step;
  const int64_t* begin;
  const int64_t* end;
};

/// A rule worked out.
struct Windows {
  WindowRule rule;
  std::vector<int64_t> begin, end;

  explicit Windows(const WindowRule& of) : rule(of) {
    for (int64_t o = 0; o < rule.outputs; ++o) {
      begin.push_back(rule.begin(o));
      end.push_back(rule.end(o));
    }
  }
  WindowsView view() const { return {rule.inputs, rule.outputs, rule.step, begin.data(), end.data()}; }
};

/// best[i], index[i] <- value[i], place + i * step where that is larger.
template <class T, class Index>
void take_larger(int64_t n, const T* __restrict value, Index place, Index step, T* __restrict best,
                 Index* __restrict index) {
  for (int64_t i = 0; i < n; ++i) {
    const bool larger = is_new_maximum(value[i], best[i]);
    best[i] = larger ? value[i] : best[i];
    index[i] = larger ? static_cast<Index>(place + static_cast<Index>(i) * step) : index[i];
  }
}

/// Takes the first candidates as they are.
template <class T, class Index>
void take_all(int64_t n, const T* __restrict value, Index place, Index step, T* __restrict best,
              Index* __restrict index) {
  for (int64_t i = 0; i < n; ++i) {
    best[i] = value[i];
    index[i] = static_cast<Index>(place + static_cast<Index>(i) * step);
  }
}

template <class T, class Index>
struct NativeForward {
  std::array<WindowsView, 3> windows;
  PlaneSteps in, out;
  const T* x;
  T* values;
  Index* indices;

  /// Output row r counts [images, D, H]: all channels of a pixel at a time.
  void channels_last_row(int64_t r) const {
    const int64_t oh = r % windows[1].outputs;
    const int64_t od = r / windows[1].outputs % windows[0].outputs;
    const T* image = x + r / windows[1].outputs / windows[0].outputs * in.image_step;
    for (int64_t ow = 0; ow < windows[2].outputs; ++ow) {
      const int64_t to = (r * windows[2].outputs + ow) * out.channels;
      bool first = true;
      for (int64_t d = windows[0].begin[od]; d < windows[0].end[od]; d += windows[0].step)
        for (int64_t h = windows[1].begin[oh]; h < windows[1].end[oh]; h += windows[1].step)
          for (int64_t w = windows[2].begin[ow]; w < windows[2].end[ow]; w += windows[2].step) {
            const int64_t place = (d * windows[1].inputs + h) * windows[2].inputs + w;
            const auto take = first ? take_all<T, Index> : take_larger<T, Index>;
            take(in.channels, image + place * in.channels, static_cast<Index>(place), Index(0), values + to,
                 indices + to);
            first = false;
          }
      if (first) set_empty(to, out.channels);
    }
  }

  /// Output row r counts [images, channels, D, H]: first the maximum of each column over d and h, whole rows
  /// at a time, then that of each window's columns. `best` and `index` are a row of columns.
  void contiguous_row(int64_t r, T* best, Index* index) const {
    const int64_t oh = r % windows[1].outputs;
    const int64_t od = r / windows[1].outputs % windows[0].outputs;
    const T* plane = x + r / windows[1].outputs / windows[0].outputs * in.pixels;
    const int64_t to = r * windows[2].outputs;
    bool first = true;
    for (int64_t d = windows[0].begin[od]; d < windows[0].end[od]; d += windows[0].step)
      for (int64_t h = windows[1].begin[oh]; h < windows[1].end[oh]; h += windows[1].step) {
        const int64_t place = (d * windows[1].inputs + h) * windows[2].inputs;
        const auto take = first ? take_all<T, Index> : take_larger<T, Index>;
        take(windows[2].inputs, plane + place, static_cast<Index>(place), Index(1), best, index);
        first = false;
      }
    if (first) return set_empty(to, windows[2].outputs);
    for (int64_t ow = 0; ow < windows[2].outputs; ++ow) {
      int64_t w = windows[2].begin[ow];
      if (w >= windows[2].end[ow]) {
        set_empty(to + ow, 1);
        continue;
      }
      T value = best[w];
      Index place = index[w];
      for (w += windows[2].step; w < windows[2].end[ow]; w += windows[2].step) {
        // Of equal columns the one whose maximum comes first in the plane.
        const bool equal = (best[w] == value) | ((best[w] != best[w]) & (value != value));
        const bool larger = is_new_maximum(best[w], value) | (equal & (index[w] < place));
        value = larger ? best[w] : value;
        place = larger ? index[w] : place;
      }
      values[to + ow] = value;
      indices[to + ow] = place;
    }
  }

  void set_empty(int64_t to, int64_t n) const {
    std::fill_n(values + to, n, -std::numeric_limits<T>::infinity());
    std::fill_n(indices + to, n, Index(-1));
  }

  void run(int64_t images, bool channels_last) const {
    const int64_t rows =
        images * windows[0].outputs * windows[1].outputs * (channels_last ? 1 : out.channels);
    const int64_t row = windows[2].inputs * (channels_last ? out.channels : 1);
    parallel_for(0, rows, std::max<int64_t>(1, grain_elements / row), [&](int64_t first, int64_t last) {
      if (channels_last) {
        for (int64_t r = first; r < last; ++r) channels_last_row(r);
        return;
      }
      std::vector<T> best(static_cast<std::size_t>(windows[2].inputs));
      std::vector<Index> index(best.size());
      for (int64_t r = first; r < last; ++r) contiguous_row(r, best.data(), index.data());
    });
  }
};

MaxPoolResult pool(const char* op, const Tensor& x, const WindowRules& rules, bool reference) {
  Shape shape{x.size(0), x.size(1)};
  for (auto d = static_cast<std::size_t>(5 - x.rank()); d < 3; ++d) shape.push_back(rules[d].outputs);
  const MemoryFormat format = x.memory_format();
  const int64_t plane = rules[0].inputs * rules[1].inputs * rules[2].inputs;
  const DType index = plane <= std::numeric_limits<int32_t>::max() ? int32 : int64;
  const bool by_index = reference || x.device().is_cuda();
  const DType dtype = by_index ? x.dtype() : compute_dtype(x.dtype());
  const MaxPoolResult result{empty(shape, {.dtype = dtype, .device = x.device(), .format = format}),
                             empty(shape, {.dtype = index, .device = x.device(), .format = format})};
  if (by_index) {
    max_pool_by_index(op, rules, x, result, format);
    return result;
  }
  if (result.values.numel() == 0) return {cast(result.values, x.dtype()), result.indices};
  const Tensor dense = to_format(cast(x, dtype), format);
  const bool last = format == MemoryFormat::channels_last;
  const std::array windows{Windows(rules[0]), Windows(rules[1]), Windows(rules[2])};
  dispatch_types(dtype, index, [&]<class T, class Index>(Type<T>, Type<Index>) {
    NativeForward<T, Index>{{windows[0].view(), windows[1].view(), windows[2].view()},
                            plane_steps(dense, last),
                            plane_steps(result.values, last),
                            dense.data<T>(),
                            result.values.data<T>(),
                            result.indices.data<Index>()}
        .run(x.size(0), last);
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

/// Runs `f(n, first channel, last channel)` over all planes, in groups of channels that share cache lines.
template <class F>
void for_planes(int64_t images, const PlaneSteps& in, bool channels_last, const F& f) {
  const int64_t group = channels_last ? std::min<int64_t>(64, in.channels) : 1;
  const int64_t groups = ceil_div(in.channels, group);
  parallel_for(0, images * groups, std::max<int64_t>(1, grain_elements / (in.pixels * group)),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i)
                   f(i / groups, i % groups * group, std::min(in.channels, i % groups * group + group));
               });
}

}  // namespace

MaxPoolResult max_pool(const Tensor& x, const MaxPoolOptions& options, const char* op) {
  const RecordOp range(op, x);
  const bool reference = wants_reference(op, options.implementation);
  return pool(op, x, max_pool_windows(op, x, options), reference);
}

MaxPoolResult adaptive_max_pool(const Tensor& x, const AdaptivePoolOptions& options, const char* op) {
  const RecordOp range(op, x);
  const bool reference = wants_reference(op, options.implementation);
  return pool(op, x, adaptive_windows(op, x, options), reference);
}

Tensor max_pool_backward(const Tensor& dy, const Tensor& indices, const Sizes& input_shape,
                         MemoryFormat format, const char* op) {
  const RecordOp range(op, "_backward", dy, indices);
  check_gradient(op, dy, indices, input_shape);
  const bool last = format == MemoryFormat::channels_last;
  const Tensor places = to_format(indices, format);
  const Tensor gradient = to_format(cast(dy, compute_dtype(dy.dtype())), format);
  const Tensor dx = empty(input_shape, {.dtype = gradient.dtype(), .device = dy.device(), .format = format});
  if (dx.numel() == 0) return cast(dx, dy.dtype());
  const PlaneSteps in = plane_steps(dx, last);
  check_range(op, places, in.pixels);
  if (dy.device().is_cuda())
    scatter_by_plane(op, gradient, places, dx, format);
  else
    dispatch_types(gradient.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
      for_planes(dx.size(0), in, last,
                 MaxPoolScatter<T, Index>{in, plane_steps(gradient, last), gradient.data<T>(),
                                          places.data<Index>(), dx.data<T>()});
    });
  return cast(dx, dy.dtype());
}

Tensor max_pool_backward(const Tensor& dy, const Tensor& indices, const WindowRules& windows,
                         const Shape& input_shape, MemoryFormat format, const char* op) {
  const RecordOp range(op, "_backward", dy, indices);
  if (dy.device().is_cpu()) return max_pool_backward(dy, indices, input_shape, format, op);
  check_gradient(op, dy, indices, input_shape);
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
