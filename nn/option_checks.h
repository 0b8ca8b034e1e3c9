// Private header: not installed.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/tensor/dtype.h"

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

/// Throws OutOfMemoryError where the host has no room for so many layers, each of so many tensors with
/// `elements` in all: otherwise small ones would be made until the system ends the process.
inline void check_layers(const char* op, int64_t layers, int64_t tensors, int64_t elements) {
  constexpr int64_t tensor_bytes = 512;  // beside its elements
  const int64_t bytes =
      checked_add(checked_multiply(elements, size_of(float32), op), tensors * tensor_bytes, op);
  check_host_memory(op, checked_multiply(layers, bytes, op));
}

}  // namespace pleat
