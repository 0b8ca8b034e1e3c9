#pragma once

#include <limits>
#include <string>

namespace pleat {

/// What an activation limits its input to: a ReLU {.min = 0}, a ReLU6 {.min = 0, .max = 6}; by default
/// nothing. NaN stays. The gradient passes between the bounds, not at them.
struct Bounds {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();

  bool operator==(const Bounds&) const = default;
  /// Whether they limit anything.
  bool any() const { return *this != Bounds(); }
};

/// "[0, 6]".
std::string to_string(const Bounds& bounds);

}  // namespace pleat
