// Private header: not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "pleat/core/tensor.h"

namespace pleat::ops {

/// Indices over a grid, and the range in which they must lie.
struct IndexRange {
  Tensor indices;  ///< row-major or otherwise dense, int32 or int64
  int64_t low, high;
};

/// What was found: some outside of [low, high), some below 0.
struct FoundIndices {
  bool outside = false, negative = false;
};

/// Looks through all of them, which are on one device, and waits once.
std::vector<FoundIndices> find_indices(const char* op, const std::vector<IndexRange>& ranges);

/// Those of [-size, size) counted from the start; of others nothing is known.
Tensor from_start(const char* op, const Tensor& indices, int64_t size);

/// Whether all elements of row-major or otherwise dense `indices` (int32 or int64) lie in [low, high), found
/// over the grid of their device. On CUDA the host waits for the answer and so for all work before it: an
/// index outside is an error of the call it was given to, not of whatever comes later.
bool all_within(const char* op, const Tensor& indices, int64_t low, int64_t high);

}  // namespace pleat::ops
