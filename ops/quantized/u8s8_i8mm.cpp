// Compiled for processors that may not be the one it runs on, as u8s8_avx512.cpp.
#include "pleat/ops/quantized/u8s8_kernels.h"

#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "pleat/ops/quantized/u8s8_arm.h"

namespace pleat::ops {

const U8S8Kernels* u8s8_kernels_i8mm() { return &kernels_of<Arm>; }

}  // namespace pleat::ops
#else
namespace pleat::ops {

const U8S8Kernels* u8s8_kernels_i8mm() { return nullptr; }

}  // namespace pleat::ops
#endif
