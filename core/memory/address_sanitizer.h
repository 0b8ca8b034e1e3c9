// Private header: not installed.
#pragma once

#include <cstddef>

// PLEAT_ADDRESS_SANITIZER: whether this is compiled with -fsanitize=address. GCC defines a macro, Clang by
// a feature.
#if defined(__SANITIZE_ADDRESS__)
#define PLEAT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PLEAT_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef PLEAT_ADDRESS_SANITIZER
#define PLEAT_ADDRESS_SANITIZER 0
#endif

#if PLEAT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

/// An allocator that rounds sizes up and keeps freed blocks hides overruns and uses after the end from
/// AddressSanitizer; these tell it what the allocator's users own. Without it they do nothing.
namespace pleat::detail {

/// From here on, touching these bytes is an error. `begin` + `bytes` has to be a multiple of 8.
inline void forbid_access([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::size_t bytes) {
#if PLEAT_ADDRESS_SANITIZER
  __asan_poison_memory_region(begin, bytes);
#endif
}

/// From here on, these bytes may be touched.
inline void allow_access([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::size_t bytes) {
#if PLEAT_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

}  // namespace pleat::detail
