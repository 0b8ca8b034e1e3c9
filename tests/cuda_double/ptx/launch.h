#pragma once

#include <cuda_runtime_api.h>

#include "pleat/tests/cuda_double/ptx/module.h"

namespace cuda_double::ptx {

/// Gives a kernel of the module to a stream; `arguments` point to its parameters.
cudaError_t launch(Module& module, const std::string& symbol, const cudaLaunchConfig_t& config,
                   void** arguments);

}  // namespace cuda_double::ptx
