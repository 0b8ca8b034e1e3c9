// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// Sorted keys, and where each was in its line (int64).
struct OrderedLines {
  Tensor keys;
  Tensor order;
};

/// Sorts each line of row-major keys [lines, n], which are unsigned numbers of `bits` bits at most, held in
/// int32 or int64. Equal keys keep their order. CUB's radix sort on CUDA.
OrderedLines order_lines(const char* op, const Tensor& keys, int64_t lines, int64_t n, int bits);

}  // namespace pleat::ops
