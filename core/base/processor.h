// Private header: not installed.
#pragma once

namespace pleat {

/// Instructions beyond those that a library is compiled for, of which kernels are chosen at run time.
enum class Instructions {
  avx512_bf16,  ///< x86-64, each with AVX512BW and AVX512VL
  avx512_vnni,
  arm_dotprod,  ///< 64-bit Arm
  arm_i8mm,
  arm_bf16
};

/// Whether the processor has them, and the system says so.
bool processor_has(Instructions instructions);

}  // namespace pleat
