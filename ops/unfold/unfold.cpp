#include "pleat/ops/unfold/unfold.h"

#include "pleat/autograd/call.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/unfold/kernels.h"

namespace pleat {
namespace {

/// A window problem is a convolution's with one channel: sizes are worked out and checked in one place.
ops::ConvProblem window_problem(const char* op, const Shape& image, const UnfoldOptions& options,
                                const Tensor& like) {
  const auto dims = static_cast<int>(image.size()) - 2;
  check<ShapeError>(dims >= 1 && dims <= 3,
                    "{}: needs images [N, C, spatial...] of 1 to 3 spatial dimensions, got {}", op, image);
  check<DTypeError>(is_floating(like.dtype()), "{}: needs a floating tensor, got {}", op, like.dtype());
  Shape one_channel = image;
  one_channel[1] = 1;
  Shape kernel{1, 1};
  for (const int64_t size : options.kernel_size.get().expand(dims, op, "kernel_size")) {
    check<ValueError>(size >= 1, "{}: kernel_size must be at least 1, got {}", op, size);
    kernel.push_back(size);
  }
  return ops::make_conv_problem(
      op, dims, {"image", one_channel, like}, {"window", kernel, like},
      {.stride = options.stride, .padding = options.padding, .dilation = options.dilation});
}

}  // namespace

Tensor unfold(const Tensor& x, const UnfoldOptions& options) {
  const Call call("unfold", {x});
  const ops::ConvProblem problem = window_problem("unfold", x.shape(), options, x);
  return call.result(ops::unfold_windows(problem, x),
                     grad_of(x, [size = Shape(x.shape().begin() + 2, x.shape().end()),
                                 options](const Tensor& dy) { return fold(dy, size, options); }));
}

Tensor fold(const Tensor& columns, const Sizes& output_size, const UnfoldOptions& options) {
  const Call call("fold", {columns});
  check<ShapeError>(columns.rank() == 3, "fold: needs columns [N, C * taps, L], got {}", columns);
  Shape image{columns.size(0), 1};
  image.insert(image.end(), output_size.begin(), output_size.end());
  const ops::ConvProblem p = window_problem("fold", image, options, columns);
  check<ShapeError>(columns.size(1) % p.taps() == 0 && columns.size(2) == p.output_pixels(),
                    "fold: output_size {} has {} windows of {} taps, so columns need [N, C * {}, {}], got {}",
                    output_size, p.output_pixels(), p.taps(), p.taps(), p.output_pixels(), columns);
  image[1] = columns.size(1) / p.taps();
  return call.result(ops::fold_windows(p, columns, image),
                     grad_of(columns, [options](const Tensor& dy) { return unfold(dy, options); }));
}

}  // namespace pleat
