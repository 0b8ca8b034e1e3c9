// Private header: not installed.
#pragma once

#include <chrono>

namespace pleat::train {

/// Seconds from some moment on.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace pleat::train
