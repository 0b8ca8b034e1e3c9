#pragma once

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// What stands beyond an edge.
enum class PadMode : unsigned char {
  constant,   ///< a number
  reflect,    ///< the elements before the edge in reverse, without the edge itself: c b | a b c | b a
  replicate,  ///< the edge: a a | a b c | c c
  circular    ///< the other end: b c | a b c | a b; of what negative widths leave
};

struct PadOptions {
  PadMode mode = PadMode::constant;
  Scalar value = 0;  ///< of constant mode
};

/// Widens the last dimensions. `widths` gives a pair for each, from the last one backwards: {left, right} or
/// {left, right, top, bottom} and so on. A negative width cuts off: in circular mode before the other side is
/// added, while reflect and replicate read the input as it was, as in PyTorch. The result keeps the memory
/// format. Differentiable. Throws ShapeError when `widths` does not fit, a result's size would be negative,
/// or the input is too small: reflect needs widths less than the size, circular at most what is left,
/// replicate a size of 1.
Tensor pad(const Tensor& x, const IntegerList& widths, PadOptions options = {});

}  // namespace pleat
