#include "pleat/ops/shape/join.h"

#include <algorithm>

#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/shape/join_kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// PyTorch's rule: a tensor [0] goes with others of any rank.
std::vector<Tensor> of_one_rank(std::vector<Tensor> tensors, int64_t dim) {
  const Shape none{0};
  const auto like =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.shape() != none; });
  if (like == tensors.end() || like->rank() < 2) return tensors;
  Shape shape = like->shape();
  shape[static_cast<std::size_t>(normalize_dim(dim, like->rank(), "cat"))] = 0;
  for (Tensor& t : tensors)
    if (t.shape() == none) t = reshape(t, shape);
  return tensors;
}

}  // namespace

Tensor cat(const std::vector<Tensor>& any_tensors, Integer dim) {
  const std::vector<Tensor> tensors = of_one_rank(any_tensors, dim);
  const Call call("cat", tensors, {{"dim", dim}});
  const Tensor y = ops::cat(tensors, dim);
  std::vector<Derivative> derivatives;
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    const int64_t length = t.size(dim);
    derivatives.push_back(
        grad_of(t, [dim, start, length](const Tensor& dy) { return narrow(dy, dim, start, length); }));
    start += length;
  }
  return call.result(y, std::move(derivatives));
}

Tensor stack(const std::vector<Tensor>& tensors, Integer dim) {
  const Call call("stack", tensors, {{"dim", dim}});
  const Tensor y = ops::stack(tensors, dim);
  std::vector<Derivative> derivatives;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    derivatives.push_back(
        grad_of(tensors[i], [dim, i](const Tensor& dy) { return select(dy, dim, static_cast<int64_t>(i)); }));
  return call.result(y, std::move(derivatives));
}

std::vector<Tensor> split_with_sizes(const Tensor& x, const IntegerList& sizes, Integer dim) {
  const Call call("split", {x}, [&] { return Attributes{{"sizes", sizes.values()}, {"dim", dim}}; });
  // One node for all pieces, so that their gradients are put together once.
  const auto join = [dim, format = x.memory_format()](const Grads& dys, const Needs&) -> Grads {
    return {to_format(cat(dys, dim), format)};
  };
  const std::vector<Tensor> pieces =
      record("split_with_sizes", ops::split_with_sizes(x, sizes, dim), {Derivative{{x}, join}});
  for (const Tensor& piece : pieces) autograd::follow(piece, x);
  return call.gives(pieces);
}

std::vector<Tensor> split(const Tensor& x, Integer size, Integer dim) {
  return split_with_sizes(x, ops::split_sizes(x, size, dim), dim);
}

std::vector<Tensor> unbind(const Tensor& x, Integer dim) {
  check<ShapeError>(x.rank() >= 1, "unbind: needs a dimension, got {}", x);
  const int64_t along = normalize_dim(dim, x.rank(), "unbind");
  if (x.size(along) == 0) return {};
  std::vector<Tensor> parts = split(x, 1, along);
  for (Tensor& part : parts) part = squeeze(part, along);
  return parts;
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, MeshgridOptions options) {
  Shape shape;
  for (const Tensor& axis : axes) {
    check<ShapeError>(axis.rank() <= 1, "meshgrid: axes must be vectors or single numbers, got {}", axis);
    shape.push_back(axis.numel());
  }
  const bool exchange = options.indexing == MeshgridIndexing::xy && axes.size() >= 2;
  std::vector<Tensor> grid;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    Shape along(axes.size(), 1);
    along[k] = shape[k];
    const Tensor coordinates = expand(reshape(axes[k], along), shape);
    grid.push_back(exchange ? transpose(coordinates, 0, 1) : coordinates);
  }
  return grid;
}

std::vector<Tensor> chunk(const Tensor& x, Integer chunks, Integer dim) {
  return split_with_sizes(x, ops::chunk_sizes(x, chunks, dim), dim);
}

}  // namespace pleat
