#pragma once

#include "number.h"
#include <cudnn.h>

struct cudnnContext {
  int device;
  cudaStream_t stream;
};

namespace cuda_double {

/// False for a type that is none of the four.
bool type_of(cudnnDataType_t given, Type& type);
/// Ends the process for one that does not exist, or is not of the current device.
cudnnContext& handle_of(cudnnHandle_t handle, const char* what);

}  // namespace cuda_double
