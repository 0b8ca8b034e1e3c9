#pragma once

/// What is asked of NVIDIA GPUs directly. Everything here exists in a build without CUDA, too: questions are
/// answered
/// ("no device"), actions throw DeviceError.

namespace pleat::cuda {

/// Whether this Pleat was built with CUDA.
bool is_built();

/// GPUs that can be used: 0 in a build without CUDA, without a driver, or when none is visible.
int device_count();

/// Whether there is a GPU to use.
inline bool is_available() { return device_count() > 0; }

}  // namespace pleat::cuda
