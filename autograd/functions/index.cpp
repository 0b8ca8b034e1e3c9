#include "pleat/autograd/functions/index.h"

#include "pleat/autograd/functions/select.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/shape/view.h"

namespace pleat {
namespace {

/// Zeros for the gradient of a tensor of this shape.
Tensor zeros_for(const Tensor& dy, const Shape& shape) {
  return zeros(shape, {.dtype = dy.dtype(), .device = dy.device()});
}

/// Values that were found along `dim`: their gradient goes back there.
Tensor record_gathered(const char* name, const Tensor& values, const Tensor& x, int64_t dim,
                       const Tensor& indices) {
  return record(name, values,
                {grad_of(x, [shape = x.shape(), dim, indices = saved(indices)](const Tensor& dy) {
                  return scatter_add(zeros_for(dy, shape), dim, *indices, dy);
                })});
}

/// Where index's elements are the last along `dim` to name their place in a tensor of `shape`: those whose
/// values scatter leaves standing.
Tensor last_writers(const Shape& shape, int64_t dim, const Tensor& index) {
  Shape line(index.shape().size(), 1);
  const auto along = static_cast<std::size_t>(dim < 0 ? dim + index.rank() : dim);
  line[along] = index.shape()[along];
  const Tensor places =
      ops::expand(ops::reshape(arange(0, line[along], 1, {.dtype = int64, .device = index.device()}), line),
                  index.shape());
  const Tensor winners =
      ops::scatter(zeros(shape, {.dtype = int64, .device = index.device()}), dim, index, places);
  return ops::equal(ops::gather(winners, dim, index), places);
}

}  // namespace

Tensor gather(const Tensor& x, Integer dim, const Tensor& index) {
  return record_gathered("gather", ops::gather(x, dim, index), x, dim, index);
}

Tensor scatter_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  return record(
      "scatter_add", ops::scatter_add(x, dim, index, source),
      {grad_of(x, [](const Tensor& dy) { return dy; }),
       grad_of(source, [dim, index = saved(index)](const Tensor& dy) { return gather(dy, dim, *index); })});
}

Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  return record(
      "scatter", ops::scatter(x, dim, index, source),
      {grad_of(x, [dim, index = saved(index)](const Tensor& dy) { return scatter(dy, dim, *index, 0); }),
       grad_of(source, [dim, index = saved(index)](const Tensor& dy) {
         return where(last_writers(dy.shape(), dim, *index), gather(dy, dim, *index), 0);
       })});
}

Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, Scalar value) {
  return record(
      "scatter", ops::scatter(x, dim, index, value),
      {grad_of(x, [dim, index = saved(index)](const Tensor& dy) { return scatter(dy, dim, *index, 0); })});
}

Tensor index_select(const Tensor& x, Integer dim, const Tensor& index) {
  return record(
      "index_select", ops::index_select(x, dim, index),
      {grad_of(
          x, [shape = x.shape(), format = x.memory_format(), dim, index = saved(index)](const Tensor& dy) {
            const Tensor dx = zeros(shape, {.dtype = dy.dtype(), .device = dy.device(), .format = format});
            return index_add(dx, dim, *index, dy);
          })});
}

Tensor index_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  return record("index_add", ops::index_add(x, dim, index, source),
                {grad_of(x, [](const Tensor& dy) { return dy; }),
                 grad_of(source, [dim, index = saved(index)](const Tensor& dy) {
                   return index_select(dy, dim, *index);
                 })});
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check<DTypeError>(mask.dtype() == boolean, "masked_select: the mask must be bool, got {}", mask.dtype());
  const Shape shape = broadcast(x.shape(), mask.shape(), "masked_select");
  return index_select(reshape(expand(x, shape), {count(shape)}), 0,
                      ops::flat_nonzero(ops::expand(mask, shape)));
}

Tensor embedding(const Tensor& index, const Tensor& weight, EmbeddingOptions options) {
  std::optional<int64_t> padding = options.padding_idx;
  if (padding) {
    check<ShapeError>(weight.rank() == 2, "embedding: the weight must be [rows, width], got {}",
                      weight.shape());
    const int64_t rows = weight.size(0);
    check<IndexError>(*padding >= -rows && *padding < rows, "embedding: padding_idx {} is outside [{}, {})",
                      *padding, -rows, rows);
    if (*padding < 0) *padding += rows;
  }
  return record("embedding", ops::embedding(index, weight),
                {grad_of(weight, [shape = weight.shape(), padding, index = saved(index)](const Tensor& dy) {
                  const Tensor places = ops::to_format(ops::cast(*index, int64), MemoryFormat::contiguous);
                  const Tensor flat = ops::view(places, {places.numel()});
                  const Tensor rows = reshape(dy, {flat.numel(), shape[1]});
                  const Tensor dweight = zeros_for(dy, shape);
                  if (!padding) return index_add(dweight, 0, flat, rows);
                  const Tensor used = ops::flat_nonzero(ops::not_equal(flat, *padding));
                  return index_add(dweight, 0, ops::index_select(flat, 0, used), index_select(rows, 0, used));
                })});
}

ValuesIndices sort(const Tensor& x, SortOptions options) {
  const auto [values, indices] = ops::sort(x, options);
  if (x.rank() > 0) return {record_gathered("sort", values, x, options.dim, indices), indices};
  return {record("sort", values, {grad_of(x, [](const Tensor& dy) { return dy; })}), indices};
}

ValuesIndices topk(const Tensor& x, Integer k, TopkOptions options) {
  const auto [values, indices] = ops::topk(x, k, options);
  return {record_gathered("topk", values, x, options.dim, indices), indices};
}

}  // namespace pleat
