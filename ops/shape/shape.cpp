#include "pleat/ops/shape/shape.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "pleat/autograd/call.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat {
namespace {

std::size_t at(int64_t dim) { return static_cast<std::size_t>(dim); }

/// The dimension of x that a function named like what it does works along.
std::size_t dim_of(const char* op, const Tensor& x, int64_t dim) {
  check<ShapeError>(x.rank() > 0, "{}: a tensor of rank 0 has nothing to {}", op, op);
  return at(normalize_dim(dim, x.rank(), op));
}

/// Where the elements of a view of x lie: those of x at first.
struct Places {
  explicit Places(const Tensor& x) : shape(x.shape()), strides(x.strides()), offset(x.offset()) {}

  /// To the element `index` along dimension d. A dimension without neighbours may have any stride.
  void move(std::size_t d, int64_t index, const char* op) {
    offset = checked_add(offset, checked_multiply(index, strides[d], op), op);
  }
  void erase(std::size_t d) {
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(d));
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d));
  }
  Tensor of(const Tensor& x) { return x.as_strided(std::move(shape), std::move(strides), offset); }

  Shape shape;
  Strides strides;
  int64_t offset;
};

template <class F>
Tensor record_view(const Call& call, const Tensor& y, const Tensor& x, F backward) {
  Tensor result = call.result(y, grad_of(x, std::move(backward)));
  autograd::follow(result, x);
  return result;
}

/// Records y, the elements of x in another shape: a view, unless strides allowed none.
Tensor record_same_elements(const Call& call, const Tensor& y, const Tensor& x) {
  const auto backward = [shape = x.shape()](const Tensor& dy) { return reshape(dy, shape); };
  const bool shares = y.impl().storage == x.impl().storage;
  return shares ? record_view(call, y, x, backward) : call.result(y, grad_of(x, backward));
}

using View = std::function<Tensor(const Tensor&)>;
using Embed = std::function<void(const Tensor& frame, const Tensor& dy)>;

/// The adjoint of a view of some of the elements: zeros in the shape of the view's input, and `dy` in the
/// places that the view reads, put there by `put` where it reads some twice. Its own derivative is the view.
Tensor embed(const Tensor& dy, const Shape& shape, MemoryFormat format, const View& view, const Embed& put) {
  const RecordOp range("embed", dy);
  if (const Tensor sum = autograd::gradient_so_far(dy, shape); sum.defined()) {
    const Tensor part = put ? sum : view(sum);
    put ? put(sum, dy) : ops::add_into(part, part, dy);
    return {};
  }
  const Tensor dx = zeros(shape, {.dtype = dy.dtype(), .device = dy.device(), .format = format});
  no_grad([&] { put ? put(dx, dy) : ops::copy_into(view(dx), dy); });
  return record("embed", dx, {grad_of(dy, view)});
}

/// Records y = `view(x)`, a view of some of the elements of x.
Tensor record_part(const Call& call, const Tensor& y, const Tensor& x, View view, Embed put = {}) {
  return record_view(
      call, y, x,
      [shape = x.shape(), format = x.memory_format(), view = std::move(view),
       put = std::move(put)](const Tensor& dy) { return embed(dy, shape, format, view, put); });
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

/// x under a shape of as many elements; a copy where no strides fit.
Tensor reshaped(const Tensor& x, Shape shape) {
  if (auto strides = view_strides(x, shape))
    return x.as_strided(std::move(shape), *std::move(strides), x.offset());
  const Tensor dense = empty(x.shape(), {.dtype = x.dtype(), .device = x.device()});
  ops::copy_into(dense, x);
  Strides strides = dense_strides(shape);
  return dense.as_strided(std::move(shape), std::move(strides), 0);
}

/// x's shape with `parts` in place of the dimensions from `first` up to `last`.
Shape replaced(const Tensor& x, int64_t first, int64_t last, const Shape& parts) {
  Shape shape(x.shape().begin(), x.shape().begin() + first);
  shape.insert(shape.end(), parts.begin(), parts.end());
  shape.insert(shape.end(), x.shape().begin() + last, x.shape().end());
  return shape;
}

}  // namespace

Tensor view(const Tensor& x, Sizes shape) {
  const Call call("view", {x});
  shape = without_wildcard("view", std::move(shape), x.numel());
  auto strides = view_strides(x, shape);
  check<ShapeError>(strides.has_value(), "view: {} cannot be seen as {} without a copy; use reshape", x,
                    shape);
  return record_same_elements(call, x.as_strided(std::move(shape), *std::move(strides), x.offset()), x);
}

Tensor reshape(const Tensor& x, Sizes shape) {
  const Call call("reshape", {x});
  return record_same_elements(call, reshaped(x, without_wildcard("reshape", std::move(shape), x.numel())), x);
}

Tensor flatten(const Tensor& x, Integer first, Integer last) {
  const Call call("flatten", {x});
  const int64_t a = normalize_dim(first, x.rank(), "flatten");
  const int64_t b = normalize_dim(last, x.rank(), "flatten");
  if (x.rank() == 0) return record_same_elements(call, reshaped(x, {1}), x);
  check<ShapeError>(a <= b, "flatten: the first dimension {} comes after the last {}", first, last);
  const int64_t all = count(std::span(x.shape()).subspan(at(a), at(b - a + 1)));
  return record_same_elements(call, reshaped(x, replaced(x, a, b + 1, {all})), x);
}

Tensor unflatten(const Tensor& x, Integer dim, const Sizes& sizes) {
  const Call call("unflatten", {x});
  const std::size_t d = dim_of("unflatten", x, dim);
  const Shape parts = without_wildcard("unflatten", sizes, x.shape()[d]);
  const auto place = static_cast<int64_t>(d);
  return record_same_elements(call, reshaped(x, replaced(x, place, place + 1, parts)), x);
}

Tensor squeeze(const Tensor& x, const Dims& dims) {
  const Call call("squeeze", {x});
  std::vector<bool> chosen(x.shape().size(), dims.empty());
  for (const int64_t dim : dims)
    if (const auto d = at(normalize_dim(dim, x.rank(), "squeeze")); x.rank() > 0) chosen[d] = true;
  Places places(x);
  for (std::size_t d = chosen.size(); d-- > 0;)
    if (chosen[d] && x.shape()[d] == 1) places.erase(d);
  return record_same_elements(call, places.of(x), x);
}

Tensor unsqueeze(const Tensor& x, Integer dim) {
  const Call call("unsqueeze", {x});
  const auto d = static_cast<std::ptrdiff_t>(normalize_dim(dim, x.rank() + 1, "unsqueeze"));
  Places places(x);
  // Of a single place any stride will do; this one keeps dense tensors dense.
  const bool inside = d < x.rank() && x.numel() > 0;
  const int64_t step = inside ? checked_multiply(x.shape()[at(d)], x.strides()[at(d)], "unsqueeze") : 1;
  places.shape.insert(places.shape.begin() + d, 1);
  places.strides.insert(places.strides.begin() + d, step);
  return record_same_elements(call, places.of(x), x);
}

Tensor expand(const Tensor& x, const Sizes& shape) {
  const Call call("expand", {x});
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
  return record_view(call, x.as_strided(std::move(sizes), std::move(strides), x.offset()), x,
                     [own = x.shape()](const Tensor& dy) { return sum_to(dy, own); });
}

Tensor permute(const Tensor& x, const Dims& order) {
  const Call call("permute", {x}, [&] { return Attributes{{"order", order.values()}}; });
  const int64_t rank = x.rank();
  check<ShapeError>(static_cast<int64_t>(order.size()) == rank,
                    "permute: needs all {} dimensions in a new order, got {}", rank, order);
  Places places(x);
  std::vector<int64_t> inverse(order.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto d = at(normalize_dim(order[i], rank, "permute"));
    check<ShapeError>(inverse[d] < 0, "permute: dimension {} is named twice in {}", d, order);
    inverse[d] = static_cast<int64_t>(i);
    places.shape[i] = x.shape()[d];
    places.strides[i] = x.strides()[d];
  }
  return record_view(call, places.of(x), x, [inverse](const Tensor& dy) { return permute(dy, inverse); });
}

Tensor transpose(const Tensor& x, Integer dim0, Integer dim1) {
  const Call call("transpose", {x}, {{"dim0", dim0}, {"dim1", dim1}});
  const auto a = at(normalize_dim(dim0, x.rank(), "transpose"));
  const auto b = at(normalize_dim(dim1, x.rank(), "transpose"));
  Places places(x);
  if (a != b) {
    std::swap(places.shape[a], places.shape[b]);
    std::swap(places.strides[a], places.strides[b]);
  }
  return record_view(call, places.of(x), x,
                     [dim0, dim1](const Tensor& dy) { return transpose(dy, dim0, dim1); });
}

Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination) {
  check<ShapeError>(source.size() == destination.size(),
                    "movedim: needs a place for each dimension, got dimensions {} and places {}", source,
                    destination);
  std::vector<int64_t> order(x.shape().size(), -1);
  std::vector<bool> moved(order.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    const auto from = at(normalize_dim(source[i], x.rank(), "movedim"));
    const auto to = at(normalize_dim(destination[i], x.rank(), "movedim"));
    if (x.rank() == 0) continue;
    check<ValueError>(!moved[from] && order[to] < 0, "movedim: one is named twice in {} or {}", source,
                      destination);
    moved[from] = true;
    order[to] = static_cast<int64_t>(from);
  }
  std::size_t next = 0;
  for (int64_t& place : order) {
    if (place >= 0) continue;
    while (moved[next]) ++next;
    place = static_cast<int64_t>(next++);
  }
  return permute(x, order);
}

Tensor slice(const Tensor& x, Integer dim, Integer start, Integer end, Integer step) {
  const Call call("slice", {x}, {{"dim", dim}, {"start", start}, {"end", end}, {"step", step}});
  const std::size_t d = dim_of("slice", x, dim);
  check<ValueError>(step >= 1, "slice: step must be at least 1, got {}", step);
  const int64_t size = x.shape()[d];
  const auto bound = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t first = bound(start);
  const int64_t last = std::max(first, bound(end));
  Places places(x);
  places.move(d, first < size ? first : 0, "slice");
  places.shape[d] = ceil_div(last - first, step);
  if (places.shape[d] > 1) places.strides[d] *= step;
  return record_part(call, places.of(x), x, [=](const Tensor& t) { return slice(t, dim, start, end, step); });
}

Tensor narrow(const Tensor& x, Integer dim, Integer start, Integer length) {
  const Call call("narrow", {x}, {{"dim", dim}, {"start", start}, {"length", length}});
  const std::size_t d = dim_of("narrow", x, dim);
  const int64_t size = x.shape()[d];
  const int64_t first = start < 0 && start >= -size ? start + size : int64_t{start};
  check<IndexError>(first >= 0 && length >= 0 && first <= size && length <= size - first,
                    "narrow: {} elements from {} reach outside dimension {} of {}", length, start, dim,
                    x.shape());
  Places places(x);
  places.move(d, first < size ? first : 0, "narrow");
  places.shape[d] = length;
  return record_part(call, places.of(x), x, [=](const Tensor& t) { return narrow(t, dim, start, length); });
}

Tensor select(const Tensor& x, Integer dim, Integer index) {
  const Call call("select", {x}, {{"dim", dim}, {"index", index}});
  const std::size_t d = dim_of("select", x, dim);
  const int64_t size = x.shape()[d];
  check<IndexError>(index >= -size && index < size, "select: index {} is outside dimension {} of {}", index,
                    dim, x.shape());
  Places places(x);
  places.move(d, index < 0 ? index + size : int64_t{index}, "select");
  places.erase(d);
  return record_part(call, places.of(x), x, [=](const Tensor& t) { return select(t, dim, index); });
}

Tensor unfold_dimension(const Tensor& x, Integer dim, Integer size, Integer step) {
  if (x.rank() == 0) return select(unfold_dimension(unsqueeze(x, 0), dim, size, step), 0, 0);
  const Call call("unfold_dimension", {x});
  const int64_t along = normalize_dim(dim, x.rank(), "unfold_dimension");
  const int64_t extent = x.shape()[at(along)];
  check<ValueError>(step >= 1, "unfold_dimension: step must be at least 1, got {}", step);
  check<ShapeError>(size >= 0 && size <= extent,
                    "unfold_dimension: windows of {} do not fit dimension {} of {}", size, dim, x.shape());
  Places places(x);
  const int64_t own = x.strides()[at(along)];
  const int64_t windows = (extent - size) / step + 1;
  places.shape[at(along)] = windows;
  if (windows > 1) places.strides[at(along)] = own * step;
  places.shape.push_back(size);
  places.strides.push_back(own);
  // Windows overlap, but the elements at one place of all windows do not.
  const auto put = [=](const Tensor& frame, const Tensor& dy) {
    for (int64_t i = 0; i < size; ++i) {
      const Tensor place = slice(frame, along, i, i + (windows - 1) * step + 1, step);
      ops::add_into(place, place, select(dy, -1, i));
    }
  };
  return record_part(
      call, places.of(x), x, [=](const Tensor& t) { return unfold_dimension(t, along, size, step); }, put);
}

Tensor diagonal(const Tensor& x, Integer offset, Integer dim0, Integer dim1) {
  const Call call("diagonal", {x});
  const auto a = at(normalize_dim(dim0, x.rank(), "diagonal"));
  const auto b = at(normalize_dim(dim1, x.rank(), "diagonal"));
  check<ShapeError>(a != b, "diagonal: needs two different dimensions, got {} and {}", dim0, dim1);
  const int64_t rows = x.shape()[a];
  const int64_t columns = x.shape()[b];
  const bool inside = offset > -rows && offset < columns;
  const int64_t length =
      inside ? std::min(offset < 0 ? rows + offset : rows, offset < 0 ? columns : columns - offset) : 0;
  Places places(x);
  if (length > 0) offset < 0 ? places.move(a, -offset, "diagonal") : places.move(b, offset, "diagonal");
  places.erase(std::max(a, b));
  places.erase(std::min(a, b));
  places.shape.push_back(length);
  places.strides.push_back(checked_add(x.strides()[a], x.strides()[b], "diagonal"));
  return record_part(call, places.of(x), x, [=](const Tensor& t) { return diagonal(t, offset, dim0, dim1); });
}

}  // namespace pleat
