// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/index/scatter_fold.h"

/// The work of index.h on a GPU. Indices are row-major int64 and checked. What meets in
/// one place is put in order by sorting, where the lines along the dimension are not short or many enough to
/// have a thread each: so nothing is added atomically, and sums are those of the CPU, to the bit.

namespace pleat::ops {

/// y is row-major.
void gather_cuda(const Tensor& x, std::size_t dim, const Tensor& indices, const Tensor& y);
/// y has no gaps; source any strides.
void scatter_cuda(const Tensor& y, std::size_t dim, const Tensor& indices, const Tensor& source);
/// scatter_fold_into of scatter_fold.h; the source may also be of half types where y is float32.
void scatter_fold_cuda(const char* op, const Tensor& y, std::size_t dim, const Tensor& indices,
                       const Tensor& source, ScatterFold fold);

/// x [outer, rows, inner] and y [outer, indices, inner], both row-major.
void index_select_cuda(const Tensor& x, const Tensor& indices, const Tensor& y, int64_t rows, int64_t inner);
/// Adds values [outer, indices, inner] to y [outer, rows, inner], both row-major.
void index_add_cuda(const Tensor& y, const Tensor& indices, const Tensor& values, int64_t rows,
                    int64_t inner);

/// y [..., classes], row-major.
void one_hot_cuda(const Tensor& indices, int64_t classes, const Tensor& y);

/// The places where row-major flags (bool) are set.
Tensor places_cuda(const char* op, const Tensor& flags);
/// y [places, rank], row-major: the places as coordinates in the shape.
void coordinates_cuda(const char* op, const Tensor& places, const Shape& shape, const Tensor& y);

/// The first elements of each line of x along `dim` in order, as many as `values` and `indices` (int64) have,
/// on its GPU.
void sort_lines_cuda(const char* op, const Tensor& x, std::size_t dim, bool descending, const Tensor& values,
                     const Tensor& indices);

/// Indices on a GPU, and the range in which they must lie.
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

/// Whether all elements of row-major or otherwise dense `indices` (int32 or int64) lie in [low, high).
/// The host waits for the result and so for all work before it: an
/// index outside is an error of the call it was given to, not of whatever comes later.
bool all_within(const char* op, const Tensor& indices, int64_t low, int64_t high);

}  // namespace pleat::ops
