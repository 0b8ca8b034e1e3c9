#pragma once

#include <string>
#include <vector>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::test {

/// Names that `laid_out` takes: layouts under which an operation on images may meet a tensor.
inline const std::vector<std::string>& layouts() {
  static const std::vector<std::string> all{"contiguous", "channels_last", "gaps"};
  return all;
}

/// A copy of x, of at least one dimension, with a gap after each element.
inline Tensor with_gaps(const Tensor& x) {
  const NoGrad off_the_tape;
  Shape wide = x.shape();
  wide.back() *= 2;
  const Tensor gaps = slice(zeros(wide, {.dtype = x.dtype(), .device = x.device()}), -1, 0, wide.back(), 2);
  ops::copy_into(gaps, x);
  return gaps;
}

/// A copy of x [N, C, spatial...] of any number of spatial dimensions: row-major, with the channels densest,
/// or with gaps between elements.
inline Tensor laid_out(const Tensor& x, const std::string& layout) {
  const NoGrad off_the_tape;
  if (layout == "contiguous" || x.rank() < 3) return ops::to_format(x, MemoryFormat::contiguous);
  if (layout == "channels_last") {
    std::vector<int64_t> there{0};
    std::vector<int64_t> back{0, x.rank() - 1};
    for (int64_t d = 2; d < x.rank(); ++d) {
      there.push_back(d);
      back.push_back(d - 1);
    }
    there.push_back(1);
    return permute(ops::to_format(permute(x, there), MemoryFormat::contiguous), back);
  }
  return with_gaps(x);
}

/// Normally distributed numbers that depend on shape and seed alone.
inline Tensor numbers(const Shape& shape, DType dtype = float64, uint64_t seed = 1) {
  Generator generator(seed);
  const Tensor t = empty(shape, {.dtype = float64});
  fill_normal_(t, 0.3, 1.5, generator);
  return ops::cast(t, dtype);
}

}  // namespace pleat::test
