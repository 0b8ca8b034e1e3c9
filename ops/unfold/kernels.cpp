#include "pleat/ops/unfold/kernels.h"

#include <algorithm>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/cuda/windows.h"

namespace pleat::ops {
namespace {

/// For one tap: calls `row(image element, column element, count, step)` for each run of windows along the
/// last dimension that see the tap inside the image; elements are relative to the plane and to the tap's
/// column.
template <class Row>
void for_each_row(const ConvProblem& p, int64_t tap, const Row& row) {
  const int64_t t = tap / (p.kernel[2] * p.kernel[1]);
  const int64_t r = tap / p.kernel[2] % p.kernel[1];
  const int64_t shift = tap % p.kernel[2] * p.dilation[2] - p.padding_low[2];
  const int64_t stride = p.stride[2];
  // Windows o with 0 <= o * stride + shift < input.
  const int64_t first = std::clamp<int64_t>(shift >= 0 ? 0 : ceil_div(-shift, stride), 0, p.output[2]);
  const int64_t last =
      std::clamp<int64_t>(p.input[2] <= shift ? 0 : ceil_div(p.input[2] - shift, stride), first, p.output[2]);
  if (first == last) return;
  for (int64_t a = 0; a < p.output[0]; ++a) {
    const int64_t d = a * p.stride[0] - p.padding_low[0] + t * p.dilation[0];
    if (d < 0 || d >= p.input[0]) continue;
    for (int64_t b = 0; b < p.output[1]; ++b) {
      const int64_t h = b * p.stride[1] - p.padding_low[1] + r * p.dilation[1];
      if (h < 0 || h >= p.input[1]) continue;
      row((d * p.input[1] + h) * p.input[2] + first * stride + shift,
          (a * p.output[1] + b) * p.output[2] + first, last - first, stride);
    }
  }
}

template <class F>
void by_type(DType dtype, F f) {
  if (dtype == float64)
    f(Type<double>{});
  else
    f(Type<float>{});
}

Tensor plain(const Tensor& x) {
  return to_format(cast(x, compute_dtype(x.dtype())), MemoryFormat::contiguous);
}

[[maybe_unused]] ConvProblem with_channels(ConvProblem p, int64_t images, int64_t channels) {
  p.batch = images;
  p.in_channels = channels;
  return p;
}

/// [N, C, D, H, W].
[[maybe_unused]] Tensor as_volumes(const Tensor& x) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  while (shape.size() < 5) {
    shape.insert(shape.begin() + 2, 1);
    strides.insert(strides.begin() + 2, 0);
  }
  return x.as_strided(shape, strides, x.offset());
}

/// Of columns [N, C * taps, windows].
[[maybe_unused]] ColumnSteps column_steps(const ConvProblem& p) {
  const int64_t row = p.output_pixels();
  return {p.in_channels * p.taps() * row, 0, p.taps() * row, row, 1};
}

}  // namespace

Tensor unfold_windows(const ConvProblem& p, const Tensor& x) {
  const int64_t planes = checked_multiply(x.size(0), x.size(1), "unfold");
  const int64_t windows = p.output_pixels();
  const Shape shape{x.size(0), checked_multiply(x.size(1), p.taps(), "unfold"), windows};
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      const Tensor columns = empty(shape, {.dtype = x.dtype(), .device = x.device()});
      const ConvProblem images = with_channels(p, x.size(0), x.size(1));
      unfold_box("unfold", images, {{}, {x.size(0), p.output[0], p.output[1], p.output[2]}}, as_volumes(x),
                 columns.raw(), column_steps(images));
      return columns;
    }
  const Tensor source = plain(x);
  const Tensor columns = empty(shape, {.dtype = source.dtype(), .device = Device()});
  by_type(source.dtype(), [&]<class T>(Type<T>) {
    const T* const all = source.data<T>();
    T* const result = columns.data<T>();
    parallel_for(0, planes * p.taps(), std::max<int64_t>(1, 16384 / windows),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const T* plane = all + i / p.taps() * p.input_pixels();
                     T* column = result + i * windows;
                     std::fill_n(column, windows, T(0));
                     for_each_row(p, i % p.taps(), [&](int64_t from, int64_t to, int64_t n, int64_t step) {
                       for (int64_t k = 0; k < n; ++k) column[to + k] = plane[from + k * step];
                     });
                   }
                 });
  });
  return cast(columns, x.dtype());
}

Tensor fold_windows(const ConvProblem& p, const Tensor& columns, const Shape& image) {
  if constexpr (with_cuda)
    if (columns.device().is_cuda()) {
      const Tensor result = empty(image, {.dtype = columns.dtype(), .device = columns.device()});
      const ConvProblem images = with_channels(p, image[0], image[1]);
      const Strides& steps = columns.strides();
      fold_columns("fold", images, columns.raw(), columns.dtype(),
                   {steps[0], 0, p.taps() * steps[1], steps[1], steps[2]}, result.raw(), result.dtype(),
                   {image[1] * p.input_pixels(), p.input_pixels(), 1});
      return result;
    }
  const Tensor source = plain(columns);
  const Tensor result = empty(image, {.dtype = source.dtype(), .device = Device()});
  const int64_t windows = p.output_pixels();
  by_type(source.dtype(), [&]<class T>(Type<T>) {
    parallel_for(0, image[0] * image[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* plane = result.data<T>() + i * p.input_pixels();
        std::fill_n(plane, p.input_pixels(), T(0));
        for (int64_t tap = 0; tap < p.taps(); ++tap) {
          const T* column = source.data<T>() + (i * p.taps() + tap) * windows;
          for_each_row(p, tap, [&](int64_t to, int64_t from, int64_t n, int64_t step) {
            for (int64_t k = 0; k < n; ++k) plane[to + k * step] += column[from + k];
          });
        }
      }
    });
  });
  return cast(result, columns.dtype());
}

}  // namespace pleat::ops
