#pragma once

#include "pleat/core/base/argument.h"
#include "pleat/core/tensor/tensor.h"

/// Boxes (x1, y1, x2, y2) with x1 <= x2 and y1 <= y2; as torchvision's functions of these names.

namespace pleat {

/// What boxes [N, 4] and boxes [M, 4] have in common, as a share of what either covers: [N, M]. NaN for two
/// boxes without area. Half types are computed in float32. Differentiable. Throws ShapeError, DTypeError
/// unless both are of one floating type, DeviceError.
Tensor box_iou(const Tensor& boxes1, const Tensor& boxes2);

/// Non-maximum suppression: of boxes [N, 4] with scores [N] those that stand, the highest score first, equal
/// ones in their order; int64 [up to N]. In that order each box that stands suppresses those after it whose
/// box_iou with it is above `iou_threshold`. Computed in float64 by the host, which waits for a GPU and
/// copies the boxes, and the result back. Throws ShapeError, DTypeError unless boxes and scores are floating,
/// DeviceError, ValueError for a NaN in the scores or a threshold that is one.
Tensor nms(const Tensor& boxes, const Tensor& scores, Real iou_threshold);
/// The same where a box suppresses only those of its class, `idxs` [N], int64.
Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& idxs, Real iou_threshold);

}  // namespace pleat
