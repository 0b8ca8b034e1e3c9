#include <array>
#include <cstddef>
#include <cstdint>

#include "pleat/core/kernels/dispatch_size.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/kernels/number_array.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/spatial/pixel_order.h"
#include "pleat/ops/unfold/kernels.h"

namespace pleat::ops {
namespace {

/// The index arithmetic of unfold and fold.
/// The windows of a ConvProblem, for functors.
struct WindowSizes {
  std::array<int64_t, 3> input, output, kernel, stride, padding, dilation;

  explicit WindowSizes(const ConvProblem& p)
      : input(p.input),
        output(p.output),
        kernel(p.kernel),
        stride(p.stride),
        padding(p.padding_low),
        dilation(p.dilation) {}
};

/// One element of the columns [N, C, taps, windows] a call, in row-major order. Elements of x are only moved:
/// T is any type of their size.
template <class T>
struct UnfoldElement {
  WindowSizes sizes;
  std::array<FastDivider, 3> kernel, output;
  FastDivider channels;
  ImageSteps x_step;
  const T* x;
  T* columns;

  UnfoldElement(const ConvProblem& p, const Tensor& from, const Tensor& to)
      : sizes(p),
        channels(from.shape()[1]),
        x_step(image_steps(from)),
        x(reinterpret_cast<const T*>(from.raw())),
        columns(reinterpret_cast<T*>(to.raw())) {
    for (std::size_t d = 0; d < 3; ++d) {
      kernel[d] = FastDivider(p.kernel[d]);
      output[d] = FastDivider(p.output[d]);
    }
  }

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t rest = i;
    Pixel pixel{};
    for (std::size_t d = 3; d-- > 0;) {
      int64_t window = rest;
      rest = output[d].divide(window);
      pixel.at[d] = window * sizes.stride[d] - sizes.padding[d];
    }
    bool inside = true;
    for (std::size_t d = 3; d-- > 0;) {
      int64_t tap = rest;
      rest = kernel[d].divide(tap);
      pixel.at[d] += tap * sizes.dilation[d];
      inside = inside && pixel.at[d] >= 0 && pixel.at[d] < sizes.input[d];
    }
    pixel.channel = rest;
    pixel.image = channels.divide(pixel.channel);
    columns[i] = inside ? x[pixel.offset(x_step)] : T(0);
  }
};

/// One element of the images a call, which are row-major: the sum over the taps, in order, of the windows in
/// which it is at that tap.
template <class T>
struct FoldElement {
  WindowSizes sizes;
  PixelOrder order;
  std::array<int64_t, 3> column_step;  ///< of columns [N, C * taps, windows]
  NumberArray<T> columns;
  NumberArray<T> images;

  FoldElement(const ConvProblem& p, const Tensor& from, const Tensor& to)
      : sizes(p),
        order(to, MemoryFormat::contiguous),
        column_step{from.strides()[0], from.strides()[1], from.strides()[2]},
        columns(from),
        images(to) {}

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel pixel = order.at(i);
    const int64_t taps = sizes.kernel[0] * sizes.kernel[1] * sizes.kernel[2];
    int64_t column = pixel.image * column_step[0] + pixel.channel * taps * column_step[1];
    T sum = 0;
    for (int64_t a = 0; a < sizes.kernel[0]; ++a) {
      const int64_t d = window(0, pixel, a);
      for (int64_t b = 0; b < sizes.kernel[1]; ++b) {
        const int64_t h = window(1, pixel, b);
        for (int64_t c = 0; c < sizes.kernel[2]; ++c, column += column_step[1]) {
          const int64_t w = window(2, pixel, c);
          if (d >= 0 && h >= 0 && w >= 0)
            sum += columns.load(column + ((d * sizes.output[1] + h) * sizes.output[2] + w) * column_step[2]);
        }
      }
    }
    images.store(i, sum);
  }

 private:
  /// The window in which the pixel is at this tap, along one dimension; -1 when there is none.
  PLEAT_HOST_DEVICE int64_t window(std::size_t d, const Pixel& pixel, int64_t tap) const {
    const int64_t start = pixel.at[d] + sizes.padding[d] - tap * sizes.dilation[d];
    if (start < 0 || start % sizes.stride[d] != 0) return -1;
    const int64_t result = start / sizes.stride[d];
    return result < sizes.output[d] ? result : -1;
  }
};

}  // namespace

void unfold_cuda(const ConvProblem& windows, const Tensor& x, const Tensor& columns) {
  dispatch_size(x.dtype(), [&]<class T>(Type<T>) {
    launch_indices("unfold", x.device(), columns.numel(), UnfoldElement<T>(windows, x, columns));
  });
}

void fold_cuda(const ConvProblem& windows, const Tensor& columns, const Tensor& images) {
  Floating::dispatch(columns.dtype(), [&]<class T>(Type<T>) {
    launch_indices("fold", images.device(), images.numel(), FoldElement<T>(windows, columns, images));
  });
}

}  // namespace pleat::ops
