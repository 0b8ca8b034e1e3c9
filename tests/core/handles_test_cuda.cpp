#include <cublas_v2.h>

#include "pleat/core/device/check_cuda.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/kernels/cuda_handles.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;

TEST_CASE("cuda: cuBLAS works on the current stream", "[core][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Device gpu(DeviceType::cuda);
  const Tensor x = from_vector(std::vector<float>{1, 2, 3}, {3}, gpu);
  const Tensor y = from_vector(std::vector<float>{10, 20, 30}, {3}, gpu);
  cuda::synchronize();
  const auto usual = cuda::blas_handle(gpu);
  CHECK(cuda::blas_handle(gpu) == usual);
  const cuda::Stream side({.device = gpu});
  const cuda::StreamGuard guard(side);
  cublasHandle_t handle = cuda::blas_handle(gpu);
  CHECK(handle != usual);
  cudaStream_t stream = nullptr;
  cuda::check_blas(cublasGetStream(handle, &stream), "test");
  CHECK(stream == side.native());
  const float two = 2;
  cuda::check_blas(cublasSaxpy(handle, 3, &two, x.data<float>(), 1, y.data<float>(), 1), "test");
  CHECK(y.to_vector() == std::vector<float>{12, 24, 36});
}
