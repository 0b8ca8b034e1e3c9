// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/shape/pad.h"

/// Padding by what the input has, off the tape: any mode but constant, with widths that were checked.

namespace pleat::ops {

/// How much a dimension grows at its ends; what is negative is cut off.
struct PadWidths {
  int64_t before = 0;
  int64_t after = 0;
};

/// Where an element at `i`, counted from the input's start, is read.
template <class Place>
PLEAT_HOST_DEVICE Place pad_source(PadMode mode, Place i, Place size) {
  if (i >= 0 && i < size) return i;
  if (mode == PadMode::reflect) return i < 0 ? -i : 2 * (size - 1) - i;
  if (mode == PadMode::replicate) return i < 0 ? 0 : size - 1;
  return i < 0 ? i + size : i - size;
}

/// The padded x, of shape `shape`, in x's memory format.
Tensor pad_forward(const Tensor& x, const Shape& shape, const std::vector<PadWidths>& widths, PadMode mode);
/// The gradient with respect to an x of shape `shape`: every element of `dy` added where pad had read it, in
/// dy's memory format.
Tensor pad_backward(const Tensor& dy, const Shape& shape, const std::vector<PadWidths>& widths, PadMode mode);

/// The same on a GPU, and padding by a constant. What is read has any strides, what is written no gaps. Throw
/// ShapeError for more dimensions than a functor can carry.
void pad_cuda(const Tensor& y, const Tensor& x, const std::vector<PadWidths>& widths, PadMode mode,
              const Scalar& value = 0);
void pad_backward_cuda(const Tensor& dx, const Tensor& dy, const std::vector<PadWidths>& widths,
                       PadMode mode);

}  // namespace pleat::ops
