#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/core/base/small_vector.h"

namespace pleat {

/// Sizes of the dimensions; empty for a tensor of rank 0. `std::cout << x.shape()` writes it as "[2, 3]".
class Shape : public SmallVector<int64_t, 6> {
 public:
  using SmallVector::SmallVector;
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);
};
/// Distances in elements between neighbours along each dimension. 0 where a dimension is expanded.
using Strides = Shape;

/// How the dimensions of a tensor [N, C, spatial...] lie in memory. It does not change their meaning:
/// the shape is [N, C, ...] in both.
enum class MemoryFormat : unsigned char {
  contiguous,    ///< last dimension densest
  channels_last  ///< C densest: NLC, NHWC, NDHWC for 1, 2, 3 spatial dimensions
};

/// "contiguous", "channels_last".
std::string name(MemoryFormat format);
std::ostream& operator<<(std::ostream& out, MemoryFormat format);

/// "[2, 3, 4]".
std::string to_string(const Shape& shape);

/// Number of elements: the product of the sizes, 1 for rank 0. Throws ShapeError on a negative size or
/// overflow.
int64_t count(std::span<const int64_t> shape);

/// Strides of a dense tensor of this shape. `channels_last` needs 3 to 5 dimensions, else ShapeError.
Strides dense_strides(const Shape& shape, MemoryFormat format = MemoryFormat::contiguous);

/// The shape that both broadcast to: aligned at the last dimension, a size of 1 stretches. Throws ShapeError
/// naming `op`.
Shape broadcast(const Shape& a, const Shape& b, const char* op);

/// `dim` in [-rank, rank) as an index in [0, rank); a rank of 0 counts as 1. Throws IndexError naming `op`.
int64_t normalize_dim(int64_t dim, int64_t rank, const char* op);

/// A list of dimensions as an argument: `1`, `{0, 2}`, a vector; empty: all. Negative ones count from the
/// end.
class Dims : public IntegerList {
 public:
  using IntegerList::IntegerList;
};

/// The sizes of a shape as an argument: `{2, 3}`, `8`, a vector.
class Sizes : public ArgumentList<Integer, int64_t, Shape> {
 public:
  using ArgumentList::ArgumentList;
};

/// One number for all spatial dimensions, or one number each: `.stride = 2`, `.stride = {2, 1}`.
class PerDim : public IntegerList {
 public:
  using IntegerList::IntegerList;

  /// One value for each of `dims` dimensions. Throws ShapeError "op: what needs 1 or dims values, got n".
  Shape expand(int64_t dims, const char* op, const char* what) const;
};

}  // namespace pleat
