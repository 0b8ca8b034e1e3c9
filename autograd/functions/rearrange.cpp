#include "pleat/autograd/functions/rearrange.h"

#include <algorithm>

#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/autograd/tape.h"
#include "pleat/ops/shape/rearrange.h"

namespace pleat {

Tensor flip(const Tensor& x, const Dims& dims) {
  return record("flip", ops::flip(x, dims),
                {grad_of(x, [dims](const Tensor& dy) { return flip(dy, dims); })});
}

Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims) {
  const Tensor y = ops::roll(x, shifts, dims);
  Dims back;  // the negative shifts as positive ones: the least int64 has no negative
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    const int64_t size = std::max<int64_t>(dims.empty() ? x.numel() : x.size(dims[i]), 1);
    const int64_t rest = shifts[i] % size;
    back.push_back(rest > 0 ? size - rest : -rest);
  }
  return record("roll", y, {grad_of(x, [back, dims](const Tensor& dy) { return roll(dy, back, dims); })});
}

Tensor repeat(const Tensor& x, const Sizes& repeats) {
  const Tensor y = ops::repeat(x, repeats);
  // The result as blocks: [repeats[0], size 0, repeats[1], size 1, ...].
  Shape blocks;
  Dims repeated;
  const std::size_t added = repeats.size() - x.shape().size();
  for (std::size_t d = 0; d < repeats.size(); ++d) {
    repeated.push_back(static_cast<int64_t>(blocks.size()));
    blocks.insert(blocks.end(), {repeats[d], d < added ? 1 : x.shape()[d - added]});
  }
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
  const Tensor y = ops::repeat_interleave(x, times, dim);
  const int64_t along = normalize_dim(dim, x.rank(), "repeat_interleave");
  Shape blocks = x.shape();
  blocks.insert(blocks.begin() + along + 1, times);
  return record(
      "repeat_interleave", y,
      {grad_of(x, [blocks, along](const Tensor& dy) { return sum(reshape(dy, blocks), along + 1); })});
}

}  // namespace pleat
