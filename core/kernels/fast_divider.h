// Private header: not installed.
#pragma once

#include <bit>
#include <cstdint>

#include "pleat/core/base/host_device.h"

namespace pleat {

/// Division by a number that is known before the launch, as a multiplication where both fit 31 bits.
/// Source: Granlund, Montgomery: "Division by invariant integers using multiplication", PLDI 1994.
class FastDivider {
 public:
  FastDivider() = default;
  explicit FastDivider(int64_t divisor) : divisor_(divisor) {
    if (divisor <= 0 || divisor >= (int64_t{1} << 31)) return;
    shift_ = static_cast<int>(std::bit_width(static_cast<uint64_t>(divisor - 1)));
    magic_ = ((((uint64_t{1} << shift_) - static_cast<uint64_t>(divisor)) << 32) /
              static_cast<uint64_t>(divisor)) +
             1;
  }

  PLEAT_HOST_DEVICE int64_t divisor() const { return divisor_; }

  /// The quotient of n >= 0; the remainder stays in n.
  PLEAT_HOST_DEVICE int64_t divide(int64_t& n) const {
    int64_t quotient;
    if (magic_ != 0 && n < (int64_t{1} << 31))
      quotient = static_cast<int64_t>(
          (((static_cast<uint64_t>(n) * magic_) >> 32) + static_cast<uint64_t>(n)) >> shift_);
    else
      quotient = n / divisor_;
    n -= quotient * divisor_;
    return quotient;
  }

 private:
  int64_t divisor_ = 1;
  uint64_t magic_ = 0;
  int shift_ = 0;
};

}  // namespace pleat
