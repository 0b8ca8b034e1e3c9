#pragma once

#include <string>

#include "pleat/core/base/device.h"

namespace pleat::bench {

/// "AMD EPYC 9654 96-Core Processor", where the system tells; else "unknown CPU".
std::string cpu_model();

/// What a time depends on beside the problem: "cpu: AMD EPYC ..., 2 threads", "cuda:0: NVIDIA H200, CUDA
/// 13000, driver ..., cuBLAS ..., cuDNN ...". `threads` as measured with; 0: as set.
std::string describe_machine(Device device, int threads);

}  // namespace pleat::bench
