// Private header: not installed.
#pragma once

#include <cudnn.h>

#include "pleat/core/tensor/dtype.h"

namespace pleat::cuda {

/// cuDNN's name of a floating type.
inline cudnnDataType_t dnn_type(DType dtype) {
  switch (dtype) {
    case float64:
      return CUDNN_DATA_DOUBLE;
    case float16:
      return CUDNN_DATA_HALF;
    case bfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

}  // namespace pleat::cuda
