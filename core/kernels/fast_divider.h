// Private header: not installed.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "pleat/core/base/host_device.h"

namespace pleat {

/// Division by a number that is known before the launch, as a multiplication. Numbers of type uint32_t have
/// to be below 2^31; of type int64_t those that are not are divided as they are. Source: Granlund,
/// Montgomery: "Division by invariant integers using multiplication", PLDI 1994.
template <class Index>
class Divider {
 public:
  Divider() = default;
  explicit Divider(int64_t divisor) : divisor_(static_cast<Index>(divisor)) {
    if (divisor <= 0 || divisor >= (int64_t{1} << 31)) return;
    shift_ = static_cast<int>(std::bit_width(static_cast<uint64_t>(divisor - 1)));
    magic_ = static_cast<Magic>(((((uint64_t{1} << shift_) - static_cast<uint64_t>(divisor)) << 32) /
                                 static_cast<uint64_t>(divisor)) +
                                1);
  }

  PLEAT_HOST_DEVICE Index divisor() const { return divisor_; }

  /// The quotient of n >= 0; the remainder stays in n.
  PLEAT_HOST_DEVICE Index divide(Index& n) const {
    Index quotient;
    if constexpr (std::is_same_v<Index, uint32_t>)
      quotient = (high_product(n, magic_) + n) >> shift_;
    else if (magic_ != 0 && n < (int64_t{1} << 31))
      quotient = static_cast<int64_t>(
          (((static_cast<uint64_t>(n) * magic_) >> 32) + static_cast<uint64_t>(n)) >> shift_);
    else
      quotient = n / divisor_;
    n -= quotient * divisor_;
    return quotient;
  }

 private:
  using Magic = std::conditional_t<std::is_same_v<Index, uint32_t>, uint32_t, uint64_t>;

  PLEAT_HOST_DEVICE static uint32_t high_product(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __umulhi(a, b);
#else
    return static_cast<uint32_t>((uint64_t{a} * b) >> 32);
#endif
  }

  Index divisor_ = 1;
  Magic magic_ = 0;
  int shift_ = 0;
};

using FastDivider = Divider<int64_t>;

}  // namespace pleat
