#include <algorithm>
#include <numeric>
#include <string>

#include "pleat/core/dispatch_size.h"
#include "pleat/core/error.h"
#include "pleat/core/grid.h"
#include "pleat/ops/elementwise/grid_map.h"
#include "pleat/ops/shape/pad_functors.h"
#include "pleat/ops/shape/pad_grid.h"

namespace pleat::ops {
namespace {

struct PadDims {
  std::array<PadDim, max_pad_dims> dim;
  std::size_t dims = 0;
};

/// The dimensions of `t` from the densest on, without those of one place in both tensors.
std::vector<std::size_t> from_densest(const Tensor& t, const Tensor& other) {
  std::vector<std::size_t> order;
  for (std::size_t d = t.shape().size(); d-- > 0;)
    if (t.shape()[d] != 1 || other.shape()[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return t.strides()[a] < t.strides()[b]; });
  return order;
}

PadDims pad_dims(const char* op, const Tensor& written, const Tensor& read, bool reads_padded,
                 const std::vector<PadWidths>& widths) {
  const std::vector<std::size_t> order = from_densest(written, read);
  const std::vector<std::size_t> readers = from_densest(read, written);
  if (order.size() > max_pad_dims)
    throw ShapeError(std::string(op) + ": over a grid at most " + std::to_string(max_pad_dims) +
                     " dimensions, got " + std::to_string(order.size()));
  const Tensor& plain = reads_padded ? written : read;
  const Tensor& padded = reads_padded ? read : written;
  PadDims result;
  for (const std::size_t d : order)
    result.dim[result.dims++] = {
        FastDivider(written.shape()[d]),
        plain.shape()[d],
        padded.shape()[d],
        widths[d].before,
        read.strides()[d],
        static_cast<std::size_t>(std::find(readers.begin(), readers.end(), d) - readers.begin())};
  return result;
}

}  // namespace

void pad_on_grid(const Tensor& y, const Tensor& x, const std::vector<PadWidths>& widths, PadMode mode) {
  if (y.numel() == 0) return;
  const PadDims dims = pad_dims("pad", y, x, false, widths);
  dispatch_size(x.dtype(), [&]<class T>(Type<T>) {
    const PadElement<T> functor{dims.dim, dims.dims, mode, reinterpret_cast<const T*>(x.raw()),
                                reinterpret_cast<T*>(y.raw())};
    grid_for("pad", y.device(), y.numel(), functor);
  });
}

void pad_backward_on_grid(const Tensor& dx, const Tensor& dy, const std::vector<PadWidths>& widths,
                          PadMode mode) {
  if (dx.numel() == 0) return;
  const PadDims dims = pad_dims("pad_backward", dx, dy, true, widths);
  Floating::dispatch(dy.dtype(), [&]<class T>(Type<T>) {
    const PadBackwardElement<T> functor{dims.dim, dims.dims, mode, NumberArray<T>(dy), NumberArray<T>(dx)};
    grid_for("pad_backward", dx.device(), dx.numel(), functor);
  });
}

}  // namespace pleat::ops
