#pragma once

#include <string_view>

namespace pleat {

/// The instructions that this library was compiled for, by the levels of the x86-64 ABI: "x86-64" (SSE2,
/// every processor), "x86-64-v2", "x86-64-v3" (AVX2, FMA, F16C), "x86-64-v4" (AVX-512); elsewhere "AArch64"
/// or "portable". Of a package with variants (PLEAT_CPU_VARIANTS) the dynamic loader chose the library.
std::string_view instruction_set();

/// The highest of these levels that the processor has: where it is above instruction_set(), a library for it
/// would be faster.
std::string_view cpu_instruction_set();

}  // namespace pleat
