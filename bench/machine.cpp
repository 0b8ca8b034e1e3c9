#include "pleat/bench/machine.h"

#include <fstream>

#include <fmt/format.h>

#include "pleat/core/device/cuda.h"
#include "pleat/core/parallel/parallel.h"

namespace pleat::bench {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0)
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown CPU";
}

std::string describe_machine(Device device, int threads) {
  if (device.is_cpu()) {
    const int used = threads > 0 ? threads : num_threads();
    return fmt::format("cpu: {}, {} thread{}", cpu_model(), used, used == 1 ? "" : "s");
  }
  const cuda::Versions v = cuda::versions();
  return fmt::format("{}: {}, CUDA {}, driver {}, cuBLAS {}, cuDNN {}", name(device),
                     cuda::properties(device).name, v.runtime, v.driver, v.cublas, v.cudnn);
}

}  // namespace pleat::bench
