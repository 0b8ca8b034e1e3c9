// Private header: not installed.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "pleat/core/base/format.h"

/// Checks of options, with one message for each rule: ValueError "SGD: lr must be at least 0 and
/// finite, got -1". A NaN is in no range.

namespace pleat {

inline void check_finite(std::string_view op, std::string_view what, double value) {
  check<ValueError>(std::isfinite(value), "{}: {} must be finite, got {}", op, what, value);
}
inline void check_at_least_0(std::string_view op, std::string_view what, double value) {
  check<ValueError>(std::isfinite(value) && value >= 0, "{}: {} must be at least 0 and finite, got {}", op,
                    what, value);
}
inline void check_positive(std::string_view op, std::string_view what, double value) {
  check<ValueError>(std::isfinite(value) && value > 0, "{}: {} must be above 0 and finite, got {}", op, what,
                    value);
}
/// 0 <= value < 1.
inline void check_fraction(std::string_view op, std::string_view what, double value) {
  check<ValueError>(value >= 0 && value < 1, "{}: {} must be in [0, 1), got {}", op, what, value);
}
/// 0 <= value <= 1.
inline void check_share(std::string_view op, std::string_view what, double value) {
  check<ValueError>(value >= 0 && value <= 1, "{}: {} must be in [0, 1], got {}", op, what, value);
}
inline void check_at_least(std::string_view op, std::string_view what, int64_t value, int64_t least) {
  check<ValueError>(value >= least, "{}: {} must be at least {}, got {}", op, what, least, value);
}

}  // namespace pleat
