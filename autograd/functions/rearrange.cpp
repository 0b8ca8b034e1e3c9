#include "pleat/autograd/functions/rearrange.h"

#include <algorithm>

#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/shape/view.h"

namespace pleat {
namespace {

/// The shift in [0, size) that does the same.
int64_t wrapped(int64_t shift, int64_t size) {
  const int64_t rest = shift % size;
  return rest < 0 ? rest + size : rest;
}

/// y[i] = x[i - shift], shift in [0, size).
Tensor roll_one(const Tensor& x, int64_t shift, int64_t dim) {
  const Tensor y = empty_like(x);
  const int64_t rest = x.size(dim) - shift;
  ops::copy_into(ops::narrow(y, dim, shift, rest), ops::narrow(x, dim, 0, rest));
  ops::copy_into(ops::narrow(y, dim, 0, shift), ops::narrow(x, dim, rest, shift));
  return y;
}

Tensor flipped(const Tensor& x, const Dims& dims) {
  std::vector<bool> seen(x.shape().size());
  Strides strides = x.strides();
  int64_t offset = x.offset();
  for (const int64_t dim : dims) {
    const auto d = static_cast<std::size_t>(normalize_dim(dim, x.rank(), "flip"));
    if (x.rank() == 0) continue;
    check<ValueError>(!seen[d], "flip: dimension {} is named twice in {}", d, dims);
    seen[d] = true;
    offset = checked_add(offset, checked_multiply(x.shape()[d] - 1, strides[d], "flip"), "flip");
    strides[d] = checked_negate(strides[d], "flip");
  }
  if (x.numel() == 0) return ops::copy(x);
  const Tensor y = empty_like(x);
  ops::copy_into(y, x.as_strided(x.shape(), std::move(strides), offset));
  return y;
}

Tensor rolled(const Tensor& x, const Dims& shifts, const Dims& dims) {
  if (dims.empty()) {
    check<ShapeError>(shifts.size() == 1, "roll: without dimensions there must be one shift, got {}", shifts);
    return ops::reshape(rolled(ops::reshape(x, {x.numel()}), shifts, 0), x.shape());
  }
  check<ShapeError>(shifts.size() == dims.size(),
                    "roll: needs a shift for each dimension, got shifts {} and dimensions {}", shifts, dims);
  for (const int64_t dim : dims) {
    check<ShapeError>(x.rank() > 0, "roll: a tensor of rank 0 has no dimension {}", dim);
    normalize_dim(dim, x.rank(), "roll");
  }
  if (x.numel() == 0) return ops::copy(x);
  Tensor y = x;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int64_t size = x.size(dims[i]);
    y = roll_one(y, wrapped(shifts[i], size), dims[i]);
  }
  return y;
}

}  // namespace

Tensor flip(const Tensor& x, const Dims& dims) {
  const RecordOp range("flip", x);
  return record("flip", flipped(x, dims), {grad_of(x, [dims](const Tensor& dy) { return flip(dy, dims); })});
}

Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims) {
  const RecordOp range("roll", x);
  const Tensor y = rolled(x, shifts, dims);
  Dims back;  // the negative shifts as positive ones: the least int64 has no negative
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    const int64_t size = std::max<int64_t>(dims.empty() ? x.numel() : x.size(dims[i]), 1);
    const int64_t rest = shifts[i] % size;
    back.push_back(rest > 0 ? size - rest : -rest);
  }
  return record("roll", y, {grad_of(x, [back, dims](const Tensor& dy) { return roll(dy, back, dims); })});
}

Tensor repeat(const Tensor& x, const Sizes& repeats) {
  const RecordOp range("repeat", x);
  check<ShapeError>(repeats.size() >= x.shape().size(), "repeat: needs at least {} numbers for {}, got {}",
                    x.rank(), x.shape(), repeats);
  const std::size_t added = repeats.size() - x.shape().size();
  Shape shape;    // of the result
  Shape once;     // x with a dimension of 1 before each of its own
  Shape blocks;   // the result with that dimension repeated
  Dims repeated;  // these dimensions of `blocks`
  for (std::size_t d = 0; d < repeats.size(); ++d) {
    check<ShapeError>(repeats[d] >= 0, "repeat: numbers must not be negative, got {}", repeats);
    const int64_t size = d < added ? 1 : x.shape()[d - added];
    shape.push_back(checked_multiply(size, repeats[d], "repeat"));
    repeated.push_back(static_cast<int64_t>(blocks.size()));
    once.insert(once.end(), {1, size});
    blocks.insert(blocks.end(), {repeats[d], size});
  }
  const Tensor y = empty(shape, {.dtype = x.dtype(), .device = x.device()});
  ops::copy_into(ops::view(y, blocks), ops::reshape(x, std::move(once)));
  return record("repeat", y, {grad_of(x, [blocks, repeated, shape = x.shape()](const Tensor& dy) {
                  return reshape(sum(reshape(dy, blocks), repeated), shape);
                })});
}

Tensor tile(const Tensor& x, Sizes repeats) {
  if (repeats.size() < x.shape().size())
    repeats.insert(repeats.begin(), x.shape().size() - repeats.size(), 1);
  return repeat(x, repeats);
}

Tensor repeat_interleave(const Tensor& x, Integer times, Integer dim) {
  const RecordOp range("repeat_interleave", x);
  check<ShapeError>(x.rank() > 0, "repeat_interleave: a tensor of rank 0 has no dimension {}", dim);
  check<ValueError>(times >= 0, "repeat_interleave: the number of times must not be negative, got {}", times);
  const int64_t along = normalize_dim(dim, x.rank(), "repeat_interleave");
  Shape shape = x.shape();
  const auto d = static_cast<std::size_t>(along);
  shape[d] = checked_multiply(shape[d], times, "repeat_interleave");
  Shape blocks = x.shape();
  blocks.insert(blocks.begin() + along + 1, times);
  const Tensor y = empty(std::move(shape), {.dtype = x.dtype(), .device = x.device()});
  ops::copy_into(ops::view(y, blocks), ops::unsqueeze(x, along + 1));
  return record(
      "repeat_interleave", y,
      {grad_of(x, [blocks, along](const Tensor& dy) { return sum(reshape(dy, blocks), along + 1); })});
}

}  // namespace pleat
