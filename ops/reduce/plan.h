// Private header: not installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pleat/core/tensor/tensor.h"

/// The geometry of a reduction: which elements make which result, in the order in which they lie in memory.

namespace pleat::ops::reduction {

inline constexpr std::size_t max_rank = 64;

/// A dimension of a loop: how many elements, how far apart in the input and in the result.
struct Dim {
  int64_t size;
  int64_t step;
  int64_t out_step = 0;
};

struct Plan {
  std::vector<Dim> kept;     ///< innermost first, as few as the strides allow
  std::vector<Dim> reduced;  ///< the same
  int64_t outputs = 1;       ///< product of the kept sizes
  int64_t count = 1;         ///< elements that make one result
  bool kept_inside = false;  ///< kept[0] lies denser than reduced[0]
  Device device;
  Shape shape;      ///< of the result
  Strides strides;  ///< of the result: dense, in the order of dimensions of a dense input
};

/// Throws ShapeError for an expanded tensor of so many elements that reading them would take years.
void check_can_be_read(const char* op, const Tensor& x);

/// Throws ShapeError for more than 64 dimensions, IndexError for a dimension out of range, ValueError for one
/// named twice.
Plan make_plan(const char* op, const Tensor& x, const Dims& dims, bool keepdim);

/// Throws ValueError when options that stand beside `dims` name dimensions of their own.
void check_named_once(const char* op, const Dims& dims, const Dims& in_options);

/// A result on the plan's device, not initialised.
Tensor empty_result(const Plan& plan, DType dtype);

/// A place among dimensions, counted from the innermost.
class StridedIterator {
 public:
  StridedIterator(std::span<const Dim> dims, int64_t linear) : dims_(dims) {
    for (std::size_t d = 0; d < dims.size(); ++d) {
      index_[d] = linear % dims[d].size;
      linear /= dims[d].size;
      offset_ += index_[d] * dims[d].step;
      out_offset_ += index_[d] * dims[d].out_step;
    }
  }

  /// Elements left in the innermost dimension.
  int64_t run_left() const { return dims_[0].size - index_[0]; }
  int64_t offset() const { return offset_; }
  int64_t out_offset() const { return out_offset_; }

  /// Moves on by `n` elements, not further than to the end of the innermost dimension.
  void advance(int64_t n) {
    index_[0] += n;
    offset_ += n * dims_[0].step;
    out_offset_ += n * dims_[0].out_step;
    for (std::size_t d = 0; d + 1 < dims_.size() && index_[d] == dims_[d].size; ++d) {
      index_[d] = 0;
      ++index_[d + 1];
      offset_ += dims_[d + 1].step - dims_[d].size * dims_[d].step;
      out_offset_ += dims_[d + 1].out_step - dims_[d].size * dims_[d].out_step;
    }
  }

 private:
  std::span<const Dim> dims_;
  std::array<int64_t, max_rank> index_;  // of which dims_.size() are used: no allocation for each result
  int64_t offset_ = 0;
  int64_t out_offset_ = 0;
};

}  // namespace pleat::ops::reduction
