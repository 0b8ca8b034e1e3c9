// Private header: not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "pleat/core/base/scope.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// Indices as row-major int64, each checked to lie in [0, size) of dimension `dim` of `shape`; those of
/// places in [-size, size), which are counted from the end where negative and come out in [0, size), too.
/// Throws DTypeError unless integers, IndexError naming the first that does not.
Tensor checked_indices(const char* op, const Tensor& index, int64_t dim, const Shape& shape);
Tensor checked_places(const char* op, const Tensor& index, int64_t dim, const Shape& shape);
/// Places along the first dimensions, one tensor for each. Throws DeviceError unless on one device.
std::vector<Tensor> checked_places(const char* op, const std::vector<Tensor>& indices, const Shape& shape);

/// While one exists, indices on a GPU are known to be in range: a function that has checked them
/// calls others, or a backward uses those of its forward. What is recorded meanwhile keeps that for its own
/// backward. So the host waits for the GPU's result once.
class IndicesAreChecked {
 public:
  enum class Sign : unsigned char { any, not_negative };
  explicit IndicesAreChecked(Sign sign = Sign::any) : sign_(sign) {}
  static const Sign* current() { return Scoped<Sign>::innermost(); }

 private:
  Scoped<Sign> sign_;
};

/// The same without a range.
Tensor integer_indices(const char* op, const Tensor& index);

/// `dim` in [0, rank), a rank of 0 counting as 1. Throws IndexError; DeviceError when the index is elsewhere.
std::size_t index_dim(const char* op, int64_t dim, const Tensor& x, const Tensor& index);

/// Along all dimensions but `dim` the index must stay inside x. Throws ShapeError.
void check_index_shape(const char* op, const Tensor& x, std::size_t dim, const Tensor& index);
/// Throws DeviceError unless on x's device, ShapeError unless of the index's shape.
void check_source(const char* op, const Tensor& x, const Tensor& index, const Tensor& source);

/// Writes source's elements into y as `scatter` does (ops/index/index.h). Indices are checked; they
/// and `source`, of one shape, may have strides of 0.
void scatter_checked_into(const Tensor& y, std::size_t along, const Tensor& indices, const Tensor& source);

/// One element along a dimension 0 in place of rank 0.
Tensor at_least_1d(const Tensor& x);

}  // namespace pleat::ops
