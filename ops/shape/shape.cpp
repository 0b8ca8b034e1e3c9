#include "pleat/ops/shape/shape.h"

#include <functional>

#include "pleat/autograd/call.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/view.h"

namespace pleat {
namespace {

/// A reshape is a view only where strides allow it; then the tape has to know.
template <class F>
Tensor record_reshape(const char* name, const Tensor& y, const Tensor& x, F backward) {
  const bool shares = y.impl().storage == x.impl().storage;
  return shares ? record_view(name, y, x, std::move(backward))
                : record(name, y, {grad_of(x, std::move(backward))});
}

/// Functions whose gradient is the same elements in the shape of the input.
Tensor record_same_elements(const char* name, const Tensor& y, const Tensor& x) {
  return record_reshape(name, y, x, [shape = x.shape()](const Tensor& dy) { return reshape(dy, shape); });
}

/// What a gradient is embedded in.
struct Frame {
  Shape shape;
  MemoryFormat format;
};

using View = std::function<Tensor(const Tensor&)>;
using Embed = std::function<void(const Tensor& frame, const Tensor& dy)>;

/// The adjoint of a view of some of the elements: zeros in the shape of the view's input, and `dy` in the
/// places that the view reads. Its own derivative is the view.
Tensor embed(const Tensor& dy, const Frame& frame, const Embed& put, const View& view) {
  const RecordOp range("embed", dy);
  const Tensor dx = zeros(frame.shape, {.dtype = dy.dtype(), .device = dy.device(), .format = frame.format});
  put(dx, dy);
  return record("embed", dx, {grad_of(dy, view)});
}

/// Records `view(x)` = `raw`, a view of some of the elements of x.
Tensor record_part(const char* name, const Tensor& raw, const Tensor& x, Embed put, View view) {
  return record_view(name, raw, x,
                     [frame = Frame{x.shape(), x.memory_format()}, put = std::move(put),
                      view = std::move(view)](const Tensor& dy) { return embed(dy, frame, put, view); });
}

/// `put` for a view that reads no element twice.
template <class RawView>
Embed copy_to(RawView raw_view) {
  return [raw_view](const Tensor& frame, const Tensor& dy) { ops::copy_into(raw_view(frame), dy); };
}

}  // namespace

Tensor view(const Tensor& x, Sizes shape) {
  return record_same_elements("view", ops::view(x, std::move(shape)), x);
}

Tensor reshape(const Tensor& x, Sizes shape) {
  return record_same_elements("reshape", ops::reshape(x, std::move(shape)), x);
}

Tensor flatten(const Tensor& x, Integer first, Integer last) {
  return record_same_elements("flatten", ops::flatten(x, first, last), x);
}

Tensor unflatten(const Tensor& x, Integer dim, const Sizes& sizes) {
  return record_same_elements("unflatten", ops::unflatten(x, dim, sizes), x);
}

Tensor squeeze(const Tensor& x, const Dims& dims) {
  return record_same_elements("squeeze", ops::squeeze(x, dims), x);
}

Tensor unsqueeze(const Tensor& x, Integer dim) {
  return record_same_elements("unsqueeze", ops::unsqueeze(x, dim), x);
}

Tensor expand(const Tensor& x, const Sizes& shape) {
  return record_view("expand", ops::expand(x, shape), x,
                     [shape = x.shape()](const Tensor& dy) { return sum_to(dy, shape); });
}

Tensor permute(const Tensor& x, const Dims& order) {
  const Call call("permute", {x}, [&] { return Attributes{{"order", order.values()}}; });
  std::vector<int64_t> inverse(order.size());
  const Tensor y = ops::permute(x, order);
  for (std::size_t i = 0; i < inverse.size(); ++i)
    inverse[static_cast<std::size_t>(normalize_dim(order[i], x.rank(), "permute"))] = static_cast<int64_t>(i);
  return call.gives(
      record_view("permute", y, x, [inverse](const Tensor& dy) { return permute(dy, inverse); }));
}

Tensor transpose(const Tensor& x, Integer dim0, Integer dim1) {
  const Call call("transpose", {x}, {{"dim0", dim0}, {"dim1", dim1}});
  return call.gives(record_view("transpose", ops::transpose(x, dim0, dim1), x,
                                [dim0, dim1](const Tensor& dy) { return transpose(dy, dim0, dim1); }));
}

Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination) {
  check<ShapeError>(source.size() == destination.size(),
                    "movedim: needs a place for each dimension, got dimensions {} and places {}", source,
                    destination);
  std::vector<int64_t> order(x.shape().size(), -1);
  std::vector<bool> moved(order.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    const auto from = static_cast<std::size_t>(normalize_dim(source[i], x.rank(), "movedim"));
    const auto to = static_cast<std::size_t>(normalize_dim(destination[i], x.rank(), "movedim"));
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
  return call.gives(
      record_part("slice", ops::slice(x, dim, start, end, step), x,
                  copy_to([=](const Tensor& t) { return ops::slice(t, dim, start, end, step); }),
                  [=](const Tensor& t) { return slice(t, dim, start, end, step); }));
}

Tensor narrow(const Tensor& x, Integer dim, Integer start, Integer length) {
  const Call call("narrow", {x}, {{"dim", dim}, {"start", start}, {"length", length}});
  return call.gives(record_part("narrow", ops::narrow(x, dim, start, length), x,
                                copy_to([=](const Tensor& t) { return ops::narrow(t, dim, start, length); }),
                                [=](const Tensor& t) { return narrow(t, dim, start, length); }));
}

Tensor select(const Tensor& x, Integer dim, Integer index) {
  const Call call("select", {x}, {{"dim", dim}, {"index", index}});
  return call.gives(record_part("select", ops::select(x, dim, index), x,
                                copy_to([=](const Tensor& t) { return ops::select(t, dim, index); }),
                                [=](const Tensor& t) { return select(t, dim, index); }));
}

Tensor unfold_dimension(const Tensor& x, Integer dim, Integer size, Integer step) {
  if (x.rank() == 0) return select(unfold_dimension(unsqueeze(x, 0), dim, size, step), 0, 0);
  const int64_t along = normalize_dim(dim, x.rank(), "unfold_dimension");
  // Windows overlap, but the elements at one place of all windows do not.
  const auto put = [=](const Tensor& frame, const Tensor& dy) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t end = i + (dy.size(along) - 1) * step + 1;
      const Tensor place = ops::slice(frame, along, i, end, step);
      ops::add_into(place, place, ops::select(dy, -1, i));
    }
  };
  return record_part("unfold_dimension", ops::unfold_dimension(x, dim, size, step), x, put,
                     [=](const Tensor& t) { return unfold_dimension(t, along, size, step); });
}

Tensor diagonal(const Tensor& x, Integer offset, Integer dim0, Integer dim1) {
  return record_part("diagonal", ops::diagonal(x, offset, dim0, dim1), x,
                     copy_to([=](const Tensor& t) { return ops::diagonal(t, offset, dim0, dim1); }),
                     [=](const Tensor& t) { return diagonal(t, offset, dim0, dim1); });
}

}  // namespace pleat
