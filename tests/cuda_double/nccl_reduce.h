#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <nccl.h>

namespace cuda_double {

/// 0 for a type that the double does not have.
std::size_t bytes_of(ncclDataType_t type);
const char* name_of(ncclDataType_t type);
const char* name_of(ncclRedOp_t op);
/// Whether the double computes it: all but averages of integers.
bool has_reduction(ncclDataType_t type, ncclRedOp_t op);

/// Combines `count` numbers of each rank, in the order of ranks, so that all get the same bits. Halves are
/// added in float.
void reduce(ncclDataType_t type, ncclRedOp_t op, std::size_t count,
            std::span<const std::vector<std::byte>> of_ranks, void* result);

}  // namespace cuda_double
