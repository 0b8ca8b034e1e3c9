#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <type_traits>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/core/parallel.h"
#include "pleat/ops/pool/max_pool_functors.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/pool/problem.h"

namespace pleat::ops {
namespace {

constexpr int64_t grain_elements = 16384;

/// Steps of a dense tensor [N, C, spatial...]; `channels_last` says how it lies, which a plane of one pixel
/// does not.
PlaneSteps steps_of(const Tensor& t, bool channels_last) {
  const int64_t channels = t.size(1);
  const int64_t pixels = count(std::span(t.shape()).subspan(2));
  if (channels_last) return {channels, pixels, channels * pixels, 1, channels};
  return {channels, pixels, channels * pixels, pixels, 1};
}

WindowsView plain(const Windows& windows) {
  return {windows.inputs, windows.outputs(), windows.step, windows.begin.data(), windows.end.data()};
}

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

template <class T, class Index>
void forward(const Windows3& windows, const Tensor& x, const MaxPoolResult& result, bool channels_last,
             bool reference) {
  const std::array<WindowsView, 3> views{plain(windows[0]), plain(windows[1]), plain(windows[2])};
  const PlaneSteps in = steps_of(x, channels_last);
  const PlaneSteps out = steps_of(result.values, channels_last);
  T* values = result.values.data<T>();
  Index* indices = result.indices.data<Index>();
  if (reference) {
    for_each_index(
        result.values.numel(),
        MaxPoolForward<T, Index>{{views[0], views[1], views[2]}, in, out, x.data<T>(), values, indices});
  } else {
    NativeForward<T, Index>{views, in, out, x.data<T>(), values, indices}.run(x.size(0), channels_last);
  }
}

/// Calls `f` with the types of values (float or double) and indices (int32 or int64).
template <class F>
void dispatch_types(DType values, DType indices, const F& f) {
  const auto with_values = [&]<class T>(Type<T> type) {
    if (indices == int32)
      f(type, Type<int32_t>{});
    else
      f(type, Type<int64_t>{});
  };
  if (values == float64)
    with_values(Type<double>{});
  else
    with_values(Type<float>{});
}

MaxPoolResult pool(const Tensor& x, const Windows3& windows, bool reference) {
  Shape shape{x.size(0), x.size(1)};
  for (auto d = static_cast<std::size_t>(5 - x.rank()); d < 3; ++d) shape.push_back(windows[d].outputs());
  const MemoryFormat format = x.memory_format();
  const Tensor dense = to_format(cast(x, compute_dtype(x.dtype())), format);
  const int64_t plane = windows[0].inputs * windows[1].inputs * windows[2].inputs;
  const DType index = plane <= std::numeric_limits<int32_t>::max() ? int32 : int64;
  const MaxPoolResult result{empty(shape, {.dtype = dense.dtype(), .device = x.device(), .format = format}),
                             empty(shape, {.dtype = index, .device = x.device(), .format = format})};
  if (result.values.numel() > 0)
    dispatch_types(dense.dtype(), index, [&]<class T, class Index>(Type<T>, Type<Index>) {
      forward<T, Index>(windows, dense, result, format == MemoryFormat::channels_last, reference);
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
  check<DeviceError>(values.device().is_cpu() && indices.device().is_cpu(),
                     "{}: this is Pleat built without CUDA, got {} and {}", op, values, indices);
}

template <class Index>
void check_range(const char* op, const Tensor& indices, int64_t pixels) {
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
}

/// Runs `f(n, first channel, last channel)` over all planes, in groups of channels that share cache lines.
template <class F>
void for_planes(int64_t images, const PlaneSteps& in, bool channels_last, const F& f) {
  const int64_t group = channels_last ? std::min<int64_t>(64, in.channels) : 1;
  const int64_t groups = (in.channels + group - 1) / group;
  parallel_for(0, images * groups, std::max<int64_t>(1, grain_elements / (in.pixels * group)),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i)
                   f(i / groups, i % groups * group, std::min(in.channels, i % groups * group + group));
               });
}

}  // namespace

MaxPoolResult max_pool(const Tensor& x, const MaxPoolOptions& options, const char* op) {
  const bool reference = wants_reference(op, options.implementation);
  return pool(x, max_pool_windows(op, x, options), reference);
}

MaxPoolResult adaptive_max_pool(const Tensor& x, const AdaptivePoolOptions& options, const char* op) {
  const bool reference = wants_reference(op, options.implementation);
  return pool(x, adaptive_windows(op, x, options), reference);
}

Tensor max_pool_backward(const Tensor& dy, const Tensor& indices, const Shape& input_shape,
                         MemoryFormat format, const char* op) {
  check_indices(op, dy, "the gradient", indices, input_shape);
  check<ShapeError>(dy.shape() == indices.shape(), "{}: the gradient must be {} like the result, got {}", op,
                    indices.shape(), dy);
  const bool last = format == MemoryFormat::channels_last;
  const Tensor places = to_format(indices, format);
  const Tensor gradient = to_format(cast(dy, compute_dtype(dy.dtype())), format);
  const Tensor dx = empty(input_shape, {.dtype = gradient.dtype(), .device = dy.device(), .format = format});
  if (dx.numel() == 0) return cast(dx, dy.dtype());
  const PlaneSteps in = steps_of(dx, last);
  dispatch_types(gradient.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    check_range<Index>(op, places, in.pixels);
    for_planes(dx.size(0), in, last,
               MaxPoolScatter<T, Index>{in, steps_of(gradient, last), gradient.data<T>(),
                                        places.data<Index>(), dx.data<T>()});
  });
  return cast(dx, dy.dtype());
}

Tensor max_pool_gather(const Tensor& x, const Tensor& indices, const char* op) {
  check_indices(op, x, "the input", indices, x.shape());
  const MemoryFormat format = x.memory_format();
  const bool last = format == MemoryFormat::channels_last;
  const Tensor places = to_format(indices, format);
  const Tensor from = to_format(cast(x, compute_dtype(x.dtype())), format);
  const Tensor y = empty(indices.shape(), {.dtype = from.dtype(), .device = x.device(), .format = format});
  if (y.numel() == 0) return cast(y, x.dtype());
  const PlaneSteps in = steps_of(from, last);
  dispatch_types(from.dtype(), indices.dtype(), [&]<class T, class Index>(Type<T>, Type<Index>) {
    check_range<Index>(op, places, in.pixels);
    for_planes(
        x.size(0), in, last,
        MaxPoolGather<T, Index>{in, steps_of(y, last), from.data<T>(), places.data<Index>(), y.data<T>()});
  });
  return cast(y, x.dtype());
}

}  // namespace pleat::ops
