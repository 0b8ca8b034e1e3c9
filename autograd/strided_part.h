// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

/// What in-place functions on views are differentiated with: the elements that a view shows of a whole
/// tensor, read, put back and left out, whatever chain of views it came from. Each is linear, and one of the
/// three is its derivative.

namespace pleat {

/// Where a view's elements lie in the tensor of which it is a view. Strides and offset in elements.
struct StridedPart {
  Shape whole;
  Strides whole_strides;
  Shape shape;
  Strides strides;
  int64_t offset = 0;  ///< from the first element of the whole to that of the part

  StridedPart(const TensorImpl& whole, const TensorImpl& view);
};

/// The part of `x`, a tensor of the whole's shape: [part.shape].
Tensor strided_part(const Tensor& x, const StridedPart& part);
/// Its adjoint: zeros of the whole's shape, with `dy` added in the places of the part.
Tensor strided_part_backward(const Tensor& dy, const StridedPart& part);
/// `x`, a tensor of the whole's shape, with zeros in the places of the part.
Tensor without_strided_part(const Tensor& x, const StridedPart& part);

}  // namespace pleat
