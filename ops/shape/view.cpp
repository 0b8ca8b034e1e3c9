#include "pleat/ops/shape/view.h"

#include <algorithm>
#include <optional>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"

namespace pleat::ops {
namespace {

std::size_t at(int64_t dim) { return static_cast<std::size_t>(dim); }

/// The offset of x's element `index` along dimension d. A dimension without neighbours may have any stride.
int64_t moved(const Tensor& x, std::size_t d, int64_t index, const char* op) {
  return checked_add(x.offset(), checked_multiply(index, x.strides()[d], op), op);
}

/// Puts the size in that makes the number of elements right in place of -1.
Shape without_wildcard(const char* op, Shape shape, int64_t numel) {
  const auto wildcard = std::find(shape.begin(), shape.end(), -1);
  check<ShapeError>(wildcard == shape.end() || std::find(wildcard + 1, shape.end(), -1) == shape.end(),
                    "{}: only one size may be -1, got {}", op, shape);
  if (wildcard != shape.end()) {
    *wildcard = 1;
    const int64_t rest = count(shape);
    check<ShapeError>(rest != 0 && numel % rest == 0,
                      "{}: no size in place of -1 makes {} elements of the others' {}", op, numel, rest);
    *wildcard = numel / rest;
  }
  check<ShapeError>(
      count(shape) == numel,
      "{}: shape {} has {} elements, the tensor {}; one size may be -1, which is then worked out", op, shape,
      count(shape), numel);
  return shape;
}

/// Strides under which `shape` reads x's elements in row-major order, where there are such: dimensions of x
/// that step evenly form a block, and each block must be made of whole new dimensions.
std::optional<Strides> view_strides(const Tensor& x, const Shape& shape) {
  if (x.numel() == 0) return dense_strides(shape);
  Strides strides(shape.size());
  std::size_t next = shape.size();  // new dimensions below this are still to be placed
  const auto rank = x.shape().size();
  for (std::size_t d = rank; d-- > 0;) {
    if (x.shape()[d] == 1) continue;
    const int64_t base = x.strides()[d];
    int64_t block = x.shape()[d];
    while (d > 0 && (x.shape()[d - 1] == 1 || x.strides()[d - 1] == base * block)) block *= x.shape()[--d];
    int64_t placed = 1;
    while (next > 0 && (placed < block || shape[next - 1] == 1)) {
      strides[--next] = base * placed;
      placed *= shape[next];
    }
    if (placed != block) return std::nullopt;
  }
  while (next > 0) strides[--next] = 1;  // what is left has size 1
  return strides;
}

}  // namespace

Tensor view(const Tensor& x, Sizes shape) {
  const RecordOp range("view", x);
  shape = without_wildcard("view", std::move(shape), x.numel());
  const auto strides = view_strides(x, shape);
  check<ShapeError>(strides.has_value(), "view: {} cannot be seen as {} without a copy; use reshape", x,
                    shape);
  return x.as_strided(std::move(shape), *strides, x.offset());
}

Tensor reshape(const Tensor& x, Sizes shape) {
  const RecordOp range("reshape", x);
  shape = without_wildcard("reshape", std::move(shape), x.numel());
  if (const auto strides = view_strides(x, shape))
    return x.as_strided(std::move(shape), *strides, x.offset());
  const Tensor dense = empty(x.shape(), {.dtype = x.dtype(), .device = x.device()});
  copy_into(dense, x);
  Strides strides = dense_strides(shape);
  return dense.as_strided(std::move(shape), std::move(strides), 0);
}

Tensor permute(const Tensor& x, const Dims& order) {
  const RecordOp range("permute", x);
  const int64_t rank = x.rank();
  check<ShapeError>(static_cast<int64_t>(order.size()) == rank,
                    "permute: needs all {} dimensions in a new order, got {}", rank, order);
  Shape shape;
  Strides strides;
  std::vector<bool> seen(order.size());
  for (const int64_t dim : order) {
    const auto d = at(normalize_dim(dim, rank, "permute"));
    check<ShapeError>(!seen[d], "permute: dimension {} is named twice in {}", d, order);
    seen[d] = true;
    shape.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
  }
  return x.as_strided(std::move(shape), std::move(strides), x.offset());
}

Tensor transpose(const Tensor& x, Integer dim0, Integer dim1) {
  const RecordOp range("transpose", x);
  Shape shape = x.shape();
  Strides strides = x.strides();
  const auto a = at(normalize_dim(dim0, x.rank(), "transpose"));
  const auto b = at(normalize_dim(dim1, x.rank(), "transpose"));
  if (a == b) return x.as_strided(std::move(shape), std::move(strides), x.offset());
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  return x.as_strided(std::move(shape), std::move(strides), x.offset());
}

Tensor expand(const Tensor& x, const Sizes& shape) {
  const RecordOp range("expand", x);
  const auto rank = x.shape().size();
  check<ShapeError>(shape.size() >= rank, "expand: {} has more dimensions than {}", x.shape(), shape);
  const std::size_t added = shape.size() - rank;
  Shape sizes = shape;
  Strides strides(shape.size(), 0);
  for (std::size_t d = added; d < shape.size(); ++d) {
    const int64_t own = x.shape()[d - added];
    if (sizes[d] == -1) sizes[d] = own;
    check<ShapeError>(own == sizes[d] || own == 1,
                      "expand: {} cannot stretch to {}: size {} of dimension {} is not 1; repeat copies",
                      x.shape(), shape, own, d - added);
    strides[d] = own == sizes[d] ? x.strides()[d - added] : 0;
  }
  return x.as_strided(std::move(sizes), std::move(strides), x.offset());
}

Tensor slice(const Tensor& x, Integer dim, Integer start, Integer end, Integer step) {
  const RecordOp range("slice", x);
  check<ShapeError>(x.rank() > 0, "slice: a tensor of rank 0 has nothing to slice");
  check<ValueError>(step >= 1, "slice: step must be at least 1, got {}", step);
  const auto d = at(normalize_dim(dim, x.rank(), "slice"));
  const int64_t size = x.shape()[d];
  const auto bound = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t first = bound(start);
  const int64_t last = std::max(first, bound(end));
  Shape shape = x.shape();
  Strides strides = x.strides();
  const int64_t offset = moved(x, d, first < size ? first : 0, "slice");
  shape[d] = ceil_div(last - first, step);
  if (shape[d] > 1) strides[d] *= step;
  return x.as_strided(std::move(shape), std::move(strides), offset);
}

Tensor narrow(const Tensor& x, Integer dim, Integer start, Integer length) {
  const RecordOp range("narrow", x);
  check<ShapeError>(x.rank() > 0, "narrow: a tensor of rank 0 has nothing to narrow");
  const int64_t size = x.size(normalize_dim(dim, x.rank(), "narrow"));
  const int64_t first = start < 0 && start >= -size ? start + size : int64_t{start};
  check<IndexError>(first >= 0 && length >= 0 && first <= size && length <= size - first,
                    "narrow: {} elements from {} reach outside dimension {} of {}", length, start, dim,
                    x.shape());
  return slice(x, dim, first, first + length);
}

Tensor select(const Tensor& x, Integer dim, Integer index) {
  const RecordOp range("select", x);
  check<ShapeError>(x.rank() > 0, "select: a tensor of rank 0 has nothing to select");
  const auto d = at(normalize_dim(dim, x.rank(), "select"));
  const int64_t size = x.shape()[d];
  check<IndexError>(index >= -size && index < size, "select: index {} is outside dimension {} of {}", index,
                    dim, x.shape());
  Shape shape = x.shape();
  Strides strides = x.strides();
  const int64_t offset = moved(x, d, index < 0 ? index + size : int64_t{index}, "select");
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(d));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d));
  return x.as_strided(std::move(shape), std::move(strides), offset);
}

Tensor squeeze(const Tensor& x, const Dims& dims) {
  const RecordOp range("squeeze", x);
  std::vector<bool> chosen(x.shape().size(), dims.empty());
  for (const int64_t dim : dims)
    if (const auto d = at(normalize_dim(dim, x.rank(), "squeeze")); x.rank() > 0) chosen[d] = true;
  Shape shape;
  Strides strides;
  for (std::size_t d = 0; d < chosen.size(); ++d) {
    if (chosen[d] && x.shape()[d] == 1) continue;
    shape.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
  }
  return x.as_strided(std::move(shape), std::move(strides), x.offset());
}

Tensor unsqueeze(const Tensor& x, Integer dim) {
  const RecordOp range("unsqueeze", x);
  const auto d = static_cast<std::ptrdiff_t>(normalize_dim(dim, x.rank() + 1, "unsqueeze"));
  Shape shape = x.shape();
  Strides strides = x.strides();
  // Of a single place any stride will do; this one keeps dense tensors dense.
  const bool inside = d < static_cast<std::ptrdiff_t>(shape.size()) && x.numel() > 0;
  const int64_t step = inside ? checked_multiply(shape[at(d)], strides[at(d)], "unsqueeze") : 1;
  shape.insert(shape.begin() + d, 1);
  strides.insert(strides.begin() + d, step);
  return x.as_strided(std::move(shape), std::move(strides), x.offset());
}

Tensor flatten(const Tensor& x, Integer first, Integer last) {
  const RecordOp range("flatten", x);
  const int64_t a = normalize_dim(first, x.rank(), "flatten");
  const int64_t b = normalize_dim(last, x.rank(), "flatten");
  if (x.rank() == 0) return reshape(x, {1});
  check<ShapeError>(a <= b, "flatten: the first dimension {} comes after the last {}", first, last);
  Shape shape(x.shape().begin(), x.shape().begin() + a);
  shape.push_back(count(std::span(x.shape()).subspan(at(a), at(b - a + 1))));
  shape.insert(shape.end(), x.shape().begin() + b + 1, x.shape().end());
  return reshape(x, std::move(shape));
}

Tensor unflatten(const Tensor& x, Integer dim, const Sizes& sizes) {
  const RecordOp range("unflatten", x);
  check<ShapeError>(x.rank() > 0, "unflatten: a tensor of rank 0 has nothing to unflatten");
  const int64_t d = normalize_dim(dim, x.rank(), "unflatten");
  const Shape parts = without_wildcard("unflatten", sizes, x.shape()[at(d)]);
  Shape shape(x.shape().begin(), x.shape().begin() + d);
  shape.insert(shape.end(), parts.begin(), parts.end());
  shape.insert(shape.end(), x.shape().begin() + d + 1, x.shape().end());
  return view(x, std::move(shape));
}

Tensor unfold_dimension(const Tensor& x, Integer dim, Integer size, Integer step) {
  const RecordOp range("unfold_dimension", x);
  if (x.rank() == 0) return select(unfold_dimension(unsqueeze(x, 0), dim, size, step), 0, 0);
  const auto d = at(normalize_dim(dim, x.rank(), "unfold_dimension"));
  const int64_t extent = x.shape()[d];
  check<ValueError>(step >= 1, "unfold_dimension: step must be at least 1, got {}", step);
  check<ShapeError>(size >= 0 && size <= extent,
                    "unfold_dimension: windows of {} do not fit dimension {} of {}", size, dim, x.shape());
  Shape shape = x.shape();
  Strides strides = x.strides();
  const int64_t own = strides[d];
  shape[d] = (extent - size) / step + 1;
  strides[d] = shape[d] > 1 ? own * step : own;
  shape.push_back(size);
  strides.push_back(own);
  return x.as_strided(std::move(shape), std::move(strides), x.offset());
}

Tensor diagonal(const Tensor& x, Integer offset, Integer dim0, Integer dim1) {
  const RecordOp range("diagonal", x);
  const auto a = at(normalize_dim(dim0, x.rank(), "diagonal"));
  const auto b = at(normalize_dim(dim1, x.rank(), "diagonal"));
  check<ShapeError>(a != b, "diagonal: needs two different dimensions, got {} and {}", dim0, dim1);
  const int64_t rows = x.shape()[a];
  const int64_t columns = x.shape()[b];
  const bool inside = offset > -rows && offset < columns;
  const int64_t length =
      inside ? std::min(offset < 0 ? rows + offset : rows, offset < 0 ? columns : columns - offset) : 0;
  const int64_t start = length == 0  ? x.offset()
                        : offset < 0 ? moved(x, a, -offset, "diagonal")
                                     : moved(x, b, offset, "diagonal");
  Shape shape;
  Strides strides;
  for (std::size_t d = 0; d < x.shape().size(); ++d) {
    if (d == a || d == b) continue;
    shape.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
  }
  shape.push_back(length);
  strides.push_back(checked_add(x.strides()[a], x.strides()[b], "diagonal"));
  return x.as_strided(std::move(shape), std::move(strides), start);
}

}  // namespace pleat::ops
