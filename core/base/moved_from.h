#pragma once

#include <utility>

namespace pleat {

/// As a member, tells whether the object around it was moved from, through moves and copies that are written
/// as
/// `= default`. A new value by assignment makes it whole again.
class MovedFrom {
 public:
  MovedFrom() = default;
  MovedFrom(const MovedFrom&) = default;
  MovedFrom(MovedFrom&& other) noexcept : value_(std::exchange(other.value_, true)) {}
  MovedFrom& operator=(const MovedFrom&) = default;
  MovedFrom& operator=(MovedFrom&& other) noexcept {
    value_ = std::exchange(other.value_, true);
    return *this;
  }
  ~MovedFrom() = default;

  explicit operator bool() const { return value_; }

 private:
  bool value_ = false;
};

}  // namespace pleat
