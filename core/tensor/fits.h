// Private header: not installed.
#pragma once

#include "pleat/core/tensor/number.h"

/// Whether a plain number can become an element: the one place that decides it.

namespace pleat {

/// Whether an element of `dtype` can hold the number. An integer type holds what lies in its range once a
/// fraction is cut off; a floating type all but finite numbers beyond its largest; bool everything, by asking
/// "not 0".
bool fits(const Number& number, DType dtype);

/// Throws ValueError naming `op` unless it fits: "full: 300 does not fit uint8 (0 to 255); ...".
void check_fits(const char* op, const Number& number, DType dtype);

}  // namespace pleat
