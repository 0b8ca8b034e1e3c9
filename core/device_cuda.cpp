#include <cuda_runtime_api.h>

#include "pleat/core/cuda.h"

namespace pleat::cuda {

bool is_built() { return true; }

int device_count() {
  // Asked once: the driver does not learn of new devices while a process runs.
  static const int count = [] {
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    cudaGetLastError();  // having no device is an answer, not an error that a later call should report
    return status == cudaSuccess ? devices : 0;
  }();
  return count;
}

}  // namespace pleat::cuda
