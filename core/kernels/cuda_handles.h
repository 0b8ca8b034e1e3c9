// Private header: not installed.
#pragma once

#include "pleat/core/base/device.h"

/// The handles of cuBLAS and cuDNN that an op computes with, without the headers of either.

struct cublasContext;
struct cudnnContext;

namespace pleat::cuda {

/// The cublasHandle_t for this thread's current stream on `device`, made at its first use and with a
/// workspace of its own. `device` must be the thread's current one (DeviceGuard). No two threads get the same
/// handle.
cublasContext* blas_handle(Device device);
/// The same for cuDNN: a cudnnHandle_t. Without cuDNN it throws DeviceError.
cudnnContext* dnn_handle(Device device);

/// Throw unless `status`, a cublasStatus_t or cudnnStatus_t, is success: OutOfMemoryError when the library
/// could not allocate, the error of CUDA itself where it has one, too (check_cuda), else DeviceError with
/// the library's own words.
void check_blas(int status, const char* op);
void check_dnn(int status, const char* op);

/// 91900 for 9.19.0, 0 without cuDNN.
int cudnn_version();

}  // namespace pleat::cuda
