#include "pleat/core/format.h"
#include "pleat/ops/matmul/device_gemm.h"

namespace pleat::ops {

template <class T, class Out>
void cublas_gemm(const char* op, Device device, const GemmBatch<T, Out>&) {
  fail<DeviceError>("{}: this is Pleat built without CUDA, got {}", op, device);
}

template void cublas_gemm(const char*, Device, const GemmBatch<float>&);
template void cublas_gemm(const char*, Device, const GemmBatch<double>&);
template void cublas_gemm(const char*, Device, const GemmBatch<Half>&);
template void cublas_gemm(const char*, Device, const GemmBatch<Half, float>&);
template void cublas_gemm(const char*, Device, const GemmBatch<BFloat16>&);
template void cublas_gemm(const char*, Device, const GemmBatch<BFloat16, float>&);

}  // namespace pleat::ops
