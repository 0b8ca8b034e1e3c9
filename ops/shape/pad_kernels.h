#pragma once

#include <vector>

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

// Options are in namespace pleat: found through their namespace, the raw functions would rival the
// differentiable ones.
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

}  // namespace pleat

namespace pleat::ops {

/// Widens the last dimensions. `widths` gives a pair for each, from the last one backwards: {left, right} or
/// {left, right, top, bottom} and so on. A negative width cuts off: in circular mode before the other side is
/// added, while reflect and replicate read the input as it was, as in PyTorch. The result keeps the memory
/// format. Throws ShapeError when `widths` does not fit, a result's size would be negative, or the input is
/// too small: reflect needs widths less than the size, circular at most what is left, replicate a size of 1.
Tensor pad(const Tensor& x, const IntegerList& widths, PadOptions options = {});

/// The gradient of `pad` with respect to its input of shape `shape`: every element of `dy` added where pad
/// had read it. The result has the memory format of `dy`. Throws ShapeError as pad, DTypeError unless
/// floating.
Tensor pad_backward(const Tensor& dy, const Sizes& shape, const IntegerList& widths, PadMode mode);

}  // namespace pleat::ops
