// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/ops/shape/pad.h"

namespace pleat::ops {

/// How much a dimension grows at its ends; what is negative is cut off.
struct PadWidths {
  int64_t before = 0;
  int64_t after = 0;
};

/// pad and pad_backward in any mode but constant over the grid of the device. What is read has any strides,
/// what is written no gaps. Throw ShapeError for more dimensions than a functor can carry.
void pad_on_grid(const Tensor& y, const Tensor& x, const std::vector<PadWidths>& widths, PadMode mode);
void pad_backward_on_grid(const Tensor& dx, const Tensor& dy, const std::vector<PadWidths>& widths,
                          PadMode mode);

}  // namespace pleat::ops
