// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstring>

/// Copies of a few bytes, of which loops over strides are made.

namespace pleat::detail {

/// Copies `part` to 2 `part` bytes without a call, which would cost more: both ends, which meet or overlap.
template <std::size_t part>
inline void copy_both_ends(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::byte first[part], last[part];
  std::memcpy(first, from, part);
  std::memcpy(last, from + bytes - part, part);
  std::memcpy(to, first, part);
  std::memcpy(to + bytes - part, last, part);
}

/// memcpy's instruction takes ten times as long on some processors (AMD Zen 3 and 4) where the places differ
/// by 1 to 15 bytes, whole pages apart, as when a line is rolled by an element.
inline bool is_slow_distance(const std::byte* to, const std::byte* from) {
  const std::ptrdiff_t distance = (to - from) & 4095;
  return distance > 0 && distance < 16;
}

inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes < 8 || bytes > 128) {
    if (is_slow_distance(to, from))
      for (; bytes > 1024; bytes -= 1024, to += 1024, from += 1024) std::memcpy(to, from, 1024);
    std::memcpy(to, from, bytes);
  } else if (bytes > 64) {
    copy_both_ends<64>(to, from, bytes);
  } else if (bytes > 32) {
    copy_both_ends<32>(to, from, bytes);
  } else if (bytes > 16) {
    copy_both_ends<16>(to, from, bytes);
  } else {
    copy_both_ends<8>(to, from, bytes);
  }
}

}  // namespace pleat::detail
