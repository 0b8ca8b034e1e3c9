#include "pleat/ops/shape/rearrange.h"

#include <algorithm>
#include <array>

#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"

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
  ops::copy_into(narrow(y, dim, shift, rest), narrow(x, dim, 0, rest));
  ops::copy_into(narrow(y, dim, 0, shift), narrow(x, dim, rest, shift));
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
    return reshape(rolled(reshape(x, {x.numel()}), shifts, 0), x.shape());
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

/// pixel_shuffle, `up`, or pixel_unshuffle: between images of fewer channels [batch, channels, r, r, height,
/// width] by channels, and [batch, channels, height, r, width, r] by pixels.
Tensor pixels_shuffled(const char* op, const Tensor& x, int64_t r, bool up) {
  check<ShapeError>(x.rank() >= 3, "{}: needs [..., C, H, W], got {}", op, x);
  check<ValueError>(r >= 1, "{}: the factor must be at least 1, got {}", op, r);
  const auto square = [&] { return checked_multiply(r, r, op); };
  int64_t channels = x.size(-3), height = x.size(-2), width = x.size(-1), batch = 1;
  Shape shape = x.shape();
  const auto sizes = shape.end() - 3;
  if (up) {
    check<ShapeError>(channels % square() == 0,
                      "{}: the square of the factor {} must divide the channels of {}", op, r, x);
    sizes[0] = channels /= square();
    sizes[1] = checked_multiply(height, r, op);
    sizes[2] = checked_multiply(width, r, op);
  } else {
    check<ShapeError>(height % r == 0 && width % r == 0,
                      "{}: the factor {} must divide height and width of {}", op, r, x);
    sizes[0] = checked_multiply(channels, square(), op);
    sizes[1] = height /= r;
    sizes[2] = width /= r;
  }
  for (std::size_t d = 0; d + 3 < shape.size(); ++d) batch = checked_multiply(batch, shape[d], op);
  const MemoryFormat format = x.rank() == 4 ? x.memory_format() : MemoryFormat::contiguous;
  const Tensor y = empty(shape, {.dtype = x.dtype(), .device = x.device(), .format = format});
  const Shape by_channels{batch, channels, r, r, height, width},
      by_pixels{batch, channels, height, r, width, r};
  const Dims order = up ? Dims{0, 1, 4, 2, 5, 3} : Dims{0, 1, 3, 5, 2, 4};
  ops::copy_into(view(y, up ? by_pixels : by_channels),
                 permute(reshape(x, up ? by_channels : by_pixels), order));
  return y;
}

Tensor channels_shuffled(const Tensor& x, int64_t groups) {
  constexpr const char* op = "channel_shuffle";
  check<ShapeError>(x.rank() >= 2, "{}: needs [N, C, ...], got {}", op, x);
  check<ValueError>(groups >= 1, "{}: groups must be at least 1, got {}", op, groups);
  check<ShapeError>(x.size(1) % groups == 0, "{}: {} groups must divide the channels of {}", op, groups, x);
  const int64_t each = x.size(1) / groups;
  const Tensor y = empty_like(x);
  ops::copy_into(unflatten(y, 1, {each, groups}), transpose(unflatten(x, 1, {groups, each}), 1, 2));
  return y;
}

}  // namespace

Tensor flip(const Tensor& x, const Dims& dims) {
  const Call call("flip", {x}, [&] { return Attributes{{"dims", dims.values()}}; });
  return call.result(flipped(x, dims), grad_of(x, [dims](const Tensor& dy) { return flip(dy, dims); }));
}

Tensor rot90(const Tensor& x, Integer k, const Dims& dims) {
  const RecordOp range("rot90", x);
  check<ValueError>(dims.size() == 2, "rot90: needs two dimensions, got {}", dims);
  const int64_t first = normalize_dim(dims[0], x.rank(), "rot90"),
                second = normalize_dim(dims[1], x.rank(), "rot90");
  check<ValueError>(first != second && x.rank() >= 2, "rot90: needs two dimensions, got {} of {}", dims, x);
  switch (wrapped(k, 4)) {
    case 1:
      return transpose(flip(x, second), first, second);
    case 2:
      return flip(x, {first, second});
    case 3:
      return transpose(flip(x, first), first, second);
    default:
      return clone(x);
  }
}

Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims) {
  const Call call("roll", {x}, [&] {
    return Attributes{{"shifts", shifts.values()}, {"dims", dims.values()}};
  });
  const Tensor y = no_grad([&] { return rolled(x, shifts, dims); });
  Dims back;  // the negative shifts as positive ones: the least int64 has no negative
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    const int64_t size = std::max<int64_t>(dims.empty() ? x.numel() : x.size(dims[i]), 1);
    const int64_t rest = shifts[i] % size;
    back.push_back(rest > 0 ? size - rest : -rest);
  }
  return call.result(y, grad_of(x, [back, dims](const Tensor& dy) { return roll(dy, back, dims); }));
}

Tensor repeat(const Tensor& x, const Sizes& repeats) {
  const Call call("repeat", {x}, [&] { return Attributes{{"repeats", repeats.values()}}; });
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
  no_grad([&] { ops::copy_into(view(y, blocks), reshape(x, std::move(once))); });
  return call.result(y, grad_of(x, [blocks, repeated, shape = x.shape()](const Tensor& dy) {
                       return reshape(sum(reshape(dy, blocks), repeated), shape);
                     }));
}

Tensor tile(const Tensor& x, Sizes repeats) {
  if (repeats.size() < x.shape().size())
    repeats.insert(repeats.begin(), x.shape().size() - repeats.size(), 1);
  return repeat(x, repeats);
}

Tensor repeat_interleave(const Tensor& x, Integer times, Integer dim) {
  const Call call("repeat_interleave", {x}, {{"times", times}, {"dim", dim}});
  check<ShapeError>(x.rank() > 0, "repeat_interleave: a tensor of rank 0 has no dimension {}", dim);
  check<ValueError>(times >= 0, "repeat_interleave: the number of times must not be negative, got {}", times);
  const int64_t along = normalize_dim(dim, x.rank(), "repeat_interleave");
  Shape shape = x.shape();
  const auto d = static_cast<std::size_t>(along);
  shape[d] = checked_multiply(shape[d], times, "repeat_interleave");
  Shape blocks = x.shape();
  blocks.insert(blocks.begin() + along + 1, times);
  const Tensor y = empty(std::move(shape), {.dtype = x.dtype(), .device = x.device()});
  no_grad([&] { ops::copy_into(view(y, blocks), unsqueeze(x, along + 1)); });
  return call.result(
      y, grad_of(x, [blocks, along](const Tensor& dy) { return sum(reshape(dy, blocks), along + 1); }));
}

Tensor pixel_shuffle(const Tensor& x, Integer factor) {
  const Call call("pixel_shuffle", {x}, {{"factor", factor}});
  return call.result(no_grad([&] { return pixels_shuffled("pixel_shuffle", x, factor, true); }),
                     grad_of(x, [factor](const Tensor& dy) { return pixel_unshuffle(dy, factor); }));
}

Tensor pixel_unshuffle(const Tensor& x, Integer factor) {
  const Call call("pixel_unshuffle", {x}, {{"factor", factor}});
  return call.result(no_grad([&] { return pixels_shuffled("pixel_unshuffle", x, factor, false); }),
                     grad_of(x, [factor](const Tensor& dy) { return pixel_shuffle(dy, factor); }));
}

Tensor channel_shuffle(const Tensor& x, Integer groups) {
  const Call call("channel_shuffle", {x}, {{"groups", groups}});
  const Tensor y = no_grad([&] { return channels_shuffled(x, groups); });
  const int64_t back = x.size(1) / groups;
  return call.result(
      y, grad_of(x, [back](const Tensor& dy) { return channel_shuffle(dy, std::max<int64_t>(back, 1)); }));
}

}  // namespace pleat
