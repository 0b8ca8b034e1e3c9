#include "pleat/ops/shape/join.h"

#include <algorithm>

#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
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

/// channels_last when all tensors are, and one of them is nothing else.
MemoryFormat common_format(const std::vector<Tensor>& tensors) {
  const auto last = [](const Tensor& t) { return t.is_contiguous(MemoryFormat::channels_last); };
  const auto clearly = [](const Tensor& t) { return !t.is_contiguous(); };
  const bool all = std::ranges::all_of(tensors, last) && std::ranges::any_of(tensors, clearly);
  return all ? MemoryFormat::channels_last : MemoryFormat::contiguous;
}

/// What cat does, off the tape.
Tensor joined(const std::vector<Tensor>& tensors, int64_t dim) {
  const NoGrad off_the_tape;
  check<ValueError>(!tensors.empty(), "cat: needs at least one tensor");
  const Tensor& first = tensors[0];
  check<ShapeError>(first.rank() > 0, "cat: tensors of rank 0 have no dimension to join along; use stack");
  const auto along = static_cast<std::size_t>(normalize_dim(dim, first.rank(), "cat"));
  Shape shape = first.shape();
  shape[along] = 0;
  DType dtype = first.dtype();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Shape rest = tensors[i].shape();
    check<ShapeError>(rest.size() == shape.size(),
                      "cat: all tensors must have one rank, got {} and, as number {}, {}", first.shape(), i,
                      tensors[i].shape());
    const int64_t length = std::exchange(rest[along], shape[along]);
    check<ShapeError>(rest == shape,
                      "cat: sizes except that of dimension {} must be equal, got {} and, as number {}, {}; "
                      "choose the dimension in which they differ, or pad them",
                      along, first.shape(), i, tensors[i].shape());
    shape[along] = checked_add(shape[along], length, "cat");
    dtype = promote(dtype, tensors[i].dtype());
    check<DeviceError>(tensors[i].device() == first.device(),
                       "cat: all tensors must be on one device, got {} and {}", first.device(),
                       tensors[i].device());
  }
  const Tensor out =
      empty(shape, {.dtype = dtype, .device = first.device(), .format = common_format(tensors)});
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    const int64_t length = t.shape()[along];
    ops::copy_into(narrow(out, static_cast<int64_t>(along), start, length), t);
    start += length;
  }
  return out;
}

int64_t size_along(const char* op, const Tensor& x, int64_t dim) {
  check<ShapeError>(x.rank() > 0, "{}: a tensor of rank 0 cannot be split", op);
  return x.shape()[static_cast<std::size_t>(normalize_dim(dim, x.rank(), op))];
}

/// Views of `size` elements each; one of nothing where there are no elements.
std::vector<Tensor> equal_pieces(const char* op, const Tensor& x, int64_t total, int64_t size, int64_t dim) {
  const int64_t pieces = std::max<int64_t>(1, ceil_div(total, size));
  constexpr int64_t bytes_each = 512;  // of a view
  check_host_memory(op, checked_multiply(pieces, bytes_each, op));
  std::vector<int64_t> sizes(static_cast<std::size_t>(pieces), size);
  sizes.back() = total - (pieces - 1) * size;
  return split_with_sizes(x, sizes, dim);
}

}  // namespace

Tensor cat(const std::vector<Tensor>& any_tensors, Integer dim) {
  const std::vector<Tensor> tensors = of_one_rank(any_tensors, dim);
  const Call call("cat", tensors, {{"dim", dim}});
  const Tensor y = joined(tensors, dim);
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
  check<ValueError>(!tensors.empty(), "stack: needs at least one tensor");
  const int64_t along = normalize_dim(dim, tensors[0].rank() + 1, "stack");
  std::vector<Tensor> slices;
  std::vector<Derivative> derivatives;
  for (const Tensor& t : tensors) {
    check<ShapeError>(
        t.shape() == tensors[0].shape(),
        "stack: all tensors must have one shape, got {} and {}; cat joins along a dimension that is there",
        tensors[0].shape(), t.shape());
    derivatives.push_back(
        grad_of(t, [dim, i = std::ssize(slices)](const Tensor& dy) { return select(dy, dim, i); }));
    slices.push_back(no_grad([&] { return unsqueeze(t, along); }));
  }
  return call.result(joined(slices, along), std::move(derivatives));
}

std::vector<Tensor> split_with_sizes(const Tensor& x, const IntegerList& sizes, Integer dim) {
  const Call call("split", {x}, [&] { return Attributes{{"sizes", sizes.values()}, {"dim", dim}}; });
  const RecordOp range("split_with_sizes", x);
  const int64_t total = size_along("split_with_sizes", x, dim);
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    check<ShapeError>(size >= 0, "split_with_sizes: sizes must not be negative, got {}", sizes);
    sum = checked_add(sum, size, "split_with_sizes");
  }
  check<ShapeError>(sum == total, "split_with_sizes: the sizes {} add up to {}, dimension {} of {} has {}",
                    sizes, sum, dim, x.shape(), total);
  std::vector<Tensor> pieces;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    pieces.push_back(no_grad([&] { return narrow(x, dim, start, size); }));
    start += size;
  }
  // One node for all pieces, so that their gradients are put together once.
  const auto join = [dim, format = x.memory_format()](const Grads& dys, const Needs&) -> Grads {
    return {to_format(cat(dys, dim), format)};
  };
  pieces = record("split_with_sizes", std::move(pieces), {Derivative{{x}, join}});
  for (const Tensor& piece : pieces) autograd::follow(piece, x);
  return call.gives(pieces);
}

std::vector<Tensor> split(const Tensor& x, Integer size, Integer dim) {
  const int64_t total = size_along("split", x, dim);
  check<ValueError>(size >= 1, "split: the size of a piece must be at least 1, got {}", size);
  return equal_pieces("split", x, total, size, dim);
}

std::vector<Tensor> chunk(const Tensor& x, Integer chunks, Integer dim) {
  const int64_t total = size_along("chunk", x, dim);
  check<ValueError>(chunks >= 1, "chunk: needs at least 1 chunk, got {}", chunks);
  return equal_pieces("chunk", x, total, std::max<int64_t>(1, ceil_div(total, chunks)), dim);
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

}  // namespace pleat
