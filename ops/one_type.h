// Private header: not installed.
#pragma once

#include "pleat/core/base/format.h"

namespace pleat::ops {

/// Products and layers do not promote: their operands are of one type, so that a float64 batch is noticed
/// instead of being computed with in float64 from there on. Throws DTypeError.
inline void check_one_type(const char* op, const char* input, const Tensor& x, const char* other,
                           const Tensor& t) {
  check<DTypeError>(
      x.dtype() == t.dtype(),
      "{}: {} is {}, {} is {}; they must be of one type: convert one, for instance with x.to({})", op, input,
      x.dtype(), other, t.dtype(), is_floating(t.dtype()) ? t.dtype() : x.dtype());
}

}  // namespace pleat::ops
