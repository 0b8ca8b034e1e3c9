#pragma once

#include <cstdint>
#include <cstring>

#include <library_types.h>

/// Numbers of the types that cuBLAS and cuDNN compute with, read and written as double.

namespace cuda_double {

enum class Type { f64, f32, f16, bf16 };

inline std::size_t size_of(Type type) { return type == Type::f64 ? 8 : type == Type::f32 ? 4 : 2; }

double read_number(Type type, const void* memory, int64_t index);
void write_number(Type type, void* memory, int64_t index, double value);
/// What TF32 and bfloat16 keep of a float32 operand.
double rounded_to_bits(double value, int mantissa_bits);

}  // namespace cuda_double
