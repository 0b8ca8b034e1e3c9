// Private header: not installed.
#pragma once

#include <cmath>
#include <string>

#include "pleat/core/format.h"

namespace pleat::optim {

/// Throws ValueError "SGD: lr must be at least 0 and finite, got -1".
inline void check_at_least_0(const std::string& op, const char* what, double value) {
  check<ValueError>(std::isfinite(value) && value >= 0, "{}: {} must be at least 0 and finite, got {}", op,
                    what, value);
}
/// Throws ValueError unless 0 <= value < 1.
inline void check_fraction(const std::string& op, const char* what, double value) {
  check<ValueError>(value >= 0 && value < 1, "{}: {} must be in [0, 1), got {}", op, what, value);
}

}  // namespace pleat::optim
