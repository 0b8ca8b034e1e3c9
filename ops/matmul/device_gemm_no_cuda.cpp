#include "pleat/core/format.h"
#include "pleat/ops/matmul/device_gemm.h"

namespace pleat::ops {

void cublas_gemm(const char* op, Device device, const GemmBatch<float>&) {
  fail<DeviceError>("{}: this is Pleat built without CUDA, got {}", op, device);
}
void cublas_gemm(const char* op, Device device, const GemmBatch<double>&) {
  fail<DeviceError>("{}: this is Pleat built without CUDA, got {}", op, device);
}

}  // namespace pleat::ops
