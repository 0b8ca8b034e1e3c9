#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

namespace cuda_double {

/// Checks a launch as the runtime and compute capability 9.0 do, and gives it to its stream; `bytes` of
/// arguments; `grid` runs all blocks.
cudaError_t launch(const cudaLaunchConfig_t& config, const std::string& name, std::size_t bytes,
                   std::function<void()> grid);

/// The types of a kernel's parameters, from what the compiler calls the function that launches it.
std::string kernel_name(const std::string& function);

}  // namespace cuda_double
