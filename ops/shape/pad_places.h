// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/core/base/host_device.h"
#include "pleat/ops/shape/pad_kernels.h"

namespace pleat::ops {

/// How much a dimension grows at its ends; what is negative is cut off.
struct PadWidths {
  int64_t before = 0;
  int64_t after = 0;
};

/// Where an element at `i`, counted from the input's start, is read.
PLEAT_HOST_DEVICE inline int64_t pad_source(PadMode mode, int64_t i, int64_t size) {
  if (i >= 0 && i < size) return i;
  if (mode == PadMode::reflect) return i < 0 ? -i : 2 * (size - 1) - i;
  if (mode == PadMode::replicate) return i < 0 ? 0 : size - 1;
  return i < 0 ? i + size : i - size;
}

/// pad and pad_backward in any mode but constant on a GPU. What is read has any strides,
/// what is written no gaps. Throw ShapeError for more dimensions than a functor can carry.
void pad_cuda(const Tensor& y, const Tensor& x, const std::vector<PadWidths>& widths, PadMode mode);
void pad_backward_cuda(const Tensor& dx, const Tensor& dy, const std::vector<PadWidths>& widths,
                       PadMode mode);

}  // namespace pleat::ops
