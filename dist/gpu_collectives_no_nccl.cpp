#include "pleat/core/base/format.h"
#include "pleat/dist/gpu_collectives.h"

namespace pleat::dist {

std::string nccl_version() { return {}; }

std::unique_ptr<GpuCollectives> connect_gpus(Transport&, Device) {
  fail<DistError>(
      "dist: this Pleat was built without NCCL; CMake says \"Pleat with NCCL\" where it finds it");
}

}  // namespace pleat::dist
