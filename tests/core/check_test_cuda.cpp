#include <cublas_v2.h>

#include "pleat/core/base/error.h"
#include "pleat/core/device/check_cuda.h"
#include "pleat/core/kernels/cuda_handles.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

TEST_CASE("codes of CUDA become the errors that a caller can act on", "[core]") {
  cuda::check_cuda(cudaSuccess, "relu");
  CHECK_THROWS_AS(cuda::check_cuda(cudaErrorMemoryAllocation, "relu"), OutOfMemoryError);
  CHECK_THROWS_AS(cuda::check_cuda(cudaErrorIllegalAddress, "relu"), DeviceLostError);
  CHECK_THROWS_WITH(
      cuda::check_cuda(cudaErrorIllegalAddress, "relu"),
      Contains("relu: ") && Contains("cudaErrorIllegalAddress") && Contains("CUDA_LAUNCH_BLOCKING"));
  CHECK_THROWS_AS(cuda::check_cuda(cudaErrorInvalidValue, "relu"), DeviceError);
  try {
    cuda::check_cuda(cudaErrorInvalidValue, "relu");
  } catch (const DeviceLostError&) {
    FAIL("an invalid argument costs no device");
  } catch (const DeviceError&) {
  }
}

TEST_CASE("codes of cuBLAS become errors of Pleat", "[core]") {
  cuda::check_blas(CUBLAS_STATUS_SUCCESS, "matmul");
  CHECK_THROWS_AS(cuda::check_blas(CUBLAS_STATUS_ALLOC_FAILED, "matmul"), OutOfMemoryError);
  // In CUDA's words when it has an error of its own, as without a driver.
  CHECK_THROWS_WITH(cuda::check_blas(CUBLAS_STATUS_INVALID_VALUE, "matmul"),
                    Contains("matmul: cuBLAS: ") || Contains("cudaErrorInsufficientDriver"));
}
