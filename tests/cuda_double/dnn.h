#pragma once

#include "library_handle.h"
#include "number.h"
#include <cudnn.h>

struct cudnnContext : cuda_double::LibraryHandle {};

namespace cuda_double {

/// False for a type that is none of the four.
bool type_of(cudnnDataType_t given, Type& type);
/// As LibraryHandles::get.
cudnnContext& handle_of(cudnnHandle_t handle, const char* what);

}  // namespace cuda_double
