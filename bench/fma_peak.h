#pragma once

#include <cstdint>

namespace pleat::bench {

/// Vector multiply-adds in registers, as many as there are at once, in the widest instructions that the CPU
/// has (AVX-512, AVX2 with FMA; else those of the build). Returns how many floating-point operations they
/// were; `T` is float or double.
template <class T>
double multiply_adds(int64_t rounds);

/// The instructions that multiply_adds uses: "AVX-512", "AVX2", "baseline".
const char* multiply_add_instructions();

}  // namespace pleat::bench
