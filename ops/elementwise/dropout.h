#pragma once

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// Sets each element to 0 with probability p and scales the others by 1 / (1 - p), which leaves the mean as
/// it was. Returns `x` itself when not training. The mask depends on the generator's state and x's shape, not
/// on its layout. Srivastava et al., "Dropout" (2014). Throws ValueError unless 0 <= p <= 1, DTypeError
/// unless x is floating.
Tensor dropout(const Tensor& x, Real p, Flag training = true, Generator& generator = default_generator());

/// The same for whole channels of x [N, C, ...], each of which stays or goes as one; what Dropout1d, 2d and
/// 3d do. Throws ShapeError below two dimensions. Tompson et al., "Efficient object localization ..." (2015).
Tensor channel_dropout(const Tensor& x, Real p, Flag training = true,
                       Generator& generator = default_generator());

}  // namespace pleat
