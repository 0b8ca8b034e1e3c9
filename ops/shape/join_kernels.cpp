#include "pleat/ops/shape/join_kernels.h"

#include <algorithm>
#include <numeric>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

/// channels_last when all tensors are, and one of them is nothing else.
MemoryFormat common_format(const std::vector<Tensor>& tensors) {
  bool all = true;
  bool clearly = false;
  for (const Tensor& t : tensors) {
    all = all && t.is_contiguous(MemoryFormat::channels_last);
    clearly = clearly || !t.is_contiguous();
  }
  return all && clearly ? MemoryFormat::channels_last : MemoryFormat::contiguous;
}

int64_t size_along(const char* op, const Tensor& x, int64_t dim) {
  check<ShapeError>(x.rank() > 0, "{}: a tensor of rank 0 cannot be split", op);
  return x.shape()[static_cast<std::size_t>(normalize_dim(dim, x.rank(), op))];
}

/// Pieces of `size` that make `total`; one empty piece for 0.
std::vector<int64_t> equal_pieces(const char* op, int64_t total, int64_t size) {
  const int64_t pieces = std::max<int64_t>(1, ceil_div(total, size));
  constexpr int64_t bytes_each = 512;  // of a view
  check_host_memory(op, checked_multiply(pieces, bytes_each, op));
  std::vector<int64_t> sizes(static_cast<std::size_t>(pieces), size);
  sizes.back() = total - static_cast<int64_t>(sizes.size() - 1) * size;
  return sizes;
}

}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, Integer dim) {
  const RecordOp range("cat", tensors);
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
    copy_into(narrow(out, static_cast<int64_t>(along), start, length), t);
    start += length;
  }
  return out;
}

Tensor stack(const std::vector<Tensor>& tensors, Integer dim) {
  const RecordOp range("stack", tensors);
  check<ValueError>(!tensors.empty(), "stack: needs at least one tensor");
  const int64_t along = normalize_dim(dim, tensors[0].rank() + 1, "stack");
  std::vector<Tensor> slices;
  for (const Tensor& t : tensors) {
    check<ShapeError>(
        t.shape() == tensors[0].shape(),
        "stack: all tensors must have one shape, got {} and {}; cat joins along a dimension that is there",
        tensors[0].shape(), t.shape());
    slices.push_back(unsqueeze(t, along));
  }
  return cat(slices, along);
}

std::vector<int64_t> split_sizes(const Tensor& x, int64_t size, int64_t dim) {
  const int64_t total = size_along("split", x, dim);
  check<ValueError>(size >= 1, "split: the size of a piece must be at least 1, got {}", size);
  return equal_pieces("split", total, size);
}

std::vector<int64_t> chunk_sizes(const Tensor& x, int64_t chunks, int64_t dim) {
  const int64_t total = size_along("chunk", x, dim);
  check<ValueError>(chunks >= 1, "chunk: needs at least 1 chunk, got {}", chunks);
  return equal_pieces("chunk", total, std::max<int64_t>(1, ceil_div(total, chunks)));
}

std::vector<Tensor> split_with_sizes(const Tensor& x, const IntegerList& sizes, Integer dim) {
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
    pieces.push_back(narrow(x, dim, start, size));
    start += size;
  }
  return pieces;
}

}  // namespace pleat::ops
