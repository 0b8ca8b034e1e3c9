#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/pool/kernels.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// The image [N, C, spatial...] that x was pooled from.
struct Image {
  Shape shape;
  ops::WindowRules windows;  ///< in it
};

Image image_of(const char* op, const Tensor& x, const MaxUnpoolOptions& options) {
  const int64_t dims = x.rank() - 2;
  const auto kernels = options.kernel_size.get().expand(dims, op, "kernel_size");
  const auto strides = options.stride.values().empty() ? kernels : options.stride.expand(dims, op, "stride");
  const auto paddings = options.padding.expand(dims, op, "padding");
  const bool is_given = !options.output_size.values().empty();
  const auto given = is_given ? options.output_size.expand(dims, op, "output_size") : Shape();
  Image image{{x.size(0), x.size(1)}, {}};
  for (std::size_t d = 0; d < kernels.size(); ++d) {
    check<ValueError>(kernels[d] >= 1, "{}: kernel_size must be at least 1, got {}", op, kernels[d]);
    check<ValueError>(strides[d] >= 1, "{}: stride must be at least 1, got {}", op, strides[d]);
    check<ValueError>(paddings[d] >= 0 && paddings[d] <= kernels[d] / 2,
                      "{}: padding must be from 0 to half of kernel_size, got {} and {}", op, paddings[d],
                      kernels[d]);
    const int64_t n = x.shape()[d + 2];
    check<ShapeError>(n >= 1, "{}: spatial dimension {} of {} is empty", op, d, x);
    const int64_t size =
        checked_add(checked_multiply(n - 1, strides[d], op), kernels[d] - 2 * paddings[d], op);
    check<ShapeError>(size >= 1 || is_given,
                      "{}: spatial dimension {} of {} comes from an image of {}; name an output_size", op, d,
                      x, size);
    if (is_given)
      check<ShapeError>(given[d] >= 1 && given[d] > size - strides[d] && given[d] - strides[d] < size,
                        "{}: output_size must be within less than a stride of {}, which is {}, in spatial "
                        "dimension {}, got {}",
                        op, strides[d], size, d, given[d]);
    image.shape.push_back(is_given ? given[d] : size);
    image.windows[3 - kernels.size() + d] = {.inputs = image.shape.back(),
                                             .outputs = n,
                                             .kernel = kernels[d],
                                             .stride = strides[d],
                                             .padding = paddings[d]};
  }
  return image;
}

Attributes traced_options(const char* op, const Tensor& x, const MaxUnpoolOptions& options) {
  const int64_t dims = x.rank() - 2;
  const PerDim& kernel = options.kernel_size;
  return {{"kernel", kernel.expand(dims, op, "kernel_size")},
          {"stride", (options.stride.values().empty() ? kernel : options.stride).expand(dims, op, "stride")},
          {"padding", options.padding.expand(dims, op, "padding")}};
}

Tensor unpool(const char* op, const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options) {
  const Call call(op, {x, indices}, [&] { return traced_options(op, x, options); });
  check<ShapeError>(x.rank() >= 3 && x.rank() <= 5,
                    "{}: input must be [N, C, spatial...] with 1 to 3 spatial dimensions, got {}", op, x);
  check<DTypeError>(is_floating(x.dtype()), "{}: input must be floating, got {}; convert it with to(float32)",
                    op, x);
  check<ShapeError>(indices.shape() == x.shape(), "{}: the indices must be {} like the input, got {}", op,
                    x.shape(), indices.shape());
  check<DeviceError>(indices.device() == x.device(), "{}: the indices must be on {} like the input, got {}",
                     op, x.device(), indices.device());
  const auto [shape, windows] = image_of(op, x, options);
  int64_t pixels = 1, places = 1;
  for (std::size_t d = 2; d < shape.size(); ++d) {
    pixels = checked_multiply(pixels, shape[d], op);
    places *= x.shape()[d];
  }
  const Shape planes{shape[0], shape[1], pixels};
  if (x.numel() > 0 && ops::IndicesAreChecked::current() == nullptr)
    if (const Tensor inside = ops::places_in_windows(op, indices, windows, x.memory_format());
        inside.defined())
      return call.gives(ops::scatter_to_windows(op, x, inside, windows, shape, x.memory_format()));
  const Tensor index = ops::checked_indices(
      op, reshape(ops::integer_indices(op, indices), {shape[0], shape[1], places}), 2, planes);
  const ops::IndicesAreChecked checked(ops::IndicesAreChecked::Sign::not_negative);
  const Tensor y = scatter(zeros(planes, {.dtype = x.dtype(), .device = x.device()}), 2, index,
                           reshape(x, {shape[0], shape[1], places}));
  return call.gives(to_format(reshape(y, shape), x.memory_format()));
}

/// The same of `dims` spatial dimensions, with or without a batch.
Tensor with_rank(const char* op, int64_t dims, const Tensor& x, const Tensor& indices,
                 const MaxUnpoolOptions& options) {
  if (x.rank() == dims + 2) return unpool(op, x, indices, options);
  check<ShapeError>(
      x.rank() == dims + 1 && indices.rank() == dims + 1,
      "{}: input and indices must be [N, C, and {} spatial dimensions] or without N, got {} and {}", op, dims,
      x, indices);
  return squeeze(unpool(op, unsqueeze(x, 0), unsqueeze(indices, 0), options), {0});
}

}  // namespace

Tensor max_unpool(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options) {
  return unpool("max_unpool", x, indices, options);
}
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options) {
  return with_rank("max_unpool1d", 1, x, indices, options);
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options) {
  return with_rank("max_unpool2d", 2, x, indices, options);
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions& options) {
  return with_rank("max_unpool3d", 3, x, indices, options);
}

}  // namespace pleat
