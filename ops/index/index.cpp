#include "pleat/ops/index/index.h"

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "pleat/autograd/call.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

// What a backward takes up has been checked by its forward.
using ops::IndicesAreChecked;
using Sign = IndicesAreChecked::Sign;

/// Zeros for the gradient of a tensor of this shape.
Tensor zeros_for(const Tensor& dy, const Shape& shape, MemoryFormat format = MemoryFormat::contiguous) {
  return zeros(shape, {.dtype = dy.dtype(), .device = dy.device(), .format = format});
}

/// A copy of x in the type in which it is computed, changed by `into`, in x's type.
template <class F>
Tensor summed(const Tensor& x, const F& into) {
  const DType dtype = compute_dtype(x.dtype());
  const Tensor y = x.dtype() == dtype ? ops::copy(x) : ops::cast(x, dtype);
  into(y);
  return ops::cast(y, x.dtype());
}

/// The gradient of gather(x, dim, index), of x in this shape.
Tensor gather_backward(const Shape& shape, int64_t dim, const Tensor& index, const Tensor& dy) {
  const Tensor sum = autograd::gradient_so_far(dy, shape);
  const Tensor dx = sum.defined() ? sum : zeros_for(dy, shape);
  ops::scatter_add_into(dx, dim, index, dy);
  if (sum.defined()) return {};
  return record("scatter_add", dx, {grad_of(dy, [dim, index = saved(index)](const Tensor& d) {
                  const IndicesAreChecked checked;
                  return gather(d, dim, *index);
                })});
}

/// The gradient of index_select(x, dim, index), of x in this shape and format.
Tensor index_select_backward(const Shape& shape, int64_t dim, const Tensor& index, const Tensor& dy,
                             MemoryFormat format = MemoryFormat::contiguous) {
  const Tensor sum = autograd::gradient_so_far(dy, shape);
  const Tensor dx = sum.defined() ? sum : zeros_for(dy, shape, format);
  ops::index_add_into(dx, dim, index, dy);
  if (sum.defined()) return {};
  return record("index_add", dx,
                {grad_of(dy, [dim, index = saved(index), shape = dy.shape()](const Tensor& d) {
                  const IndicesAreChecked checked;
                  return d.rank() == 0 ? expand(d, shape) : index_select(d, dim, *index);
                })});
}

/// Values that were found along `dim`: their gradient goes back there.
Tensor record_gathered(const char* name, const Tensor& values, const Tensor& x, int64_t dim,
                       const Tensor& indices) {
  return record(name, values,
                {grad_of(x, [shape = x.shape(), dim, indices = saved(indices)](const Tensor& dy) {
                  const IndicesAreChecked checked;
                  return gather_backward(shape, dim, *indices, dy);
                })});
}

/// Where index's elements are the last along `dim` to name their place in a tensor of `shape`: those whose
/// values scatter leaves standing.
Tensor last_writers(const Shape& shape, int64_t dim, const Tensor& index) {
  if (index.rank() == 0) return ones({}, {.dtype = boolean, .device = index.device()});
  Shape line(index.shape().size(), 1);
  const auto along = static_cast<std::size_t>(dim < 0 ? dim + index.rank() : dim);
  line[along] = index.shape()[along];
  const TensorOptions numbers{.dtype = line[along] >> 31 == 0 ? int32 : int64, .device = index.device()};
  const Tensor count = arange(line[along], {.dtype = numbers.dtype, .device = numbers.device});
  const Tensor places = expand(reshape(count, line), index.shape());
  const Tensor winners = ops::scatter(zeros(shape, numbers), dim, index, places);
  return equal(ops::gather(winners, dim, index), places);
}

/// The same for a line of indices into `places`.
Tensor last_writers(int64_t places, const Tensor& index) {
  const int64_t n = index.numel();
  if (n == 0 || n > places / 16) return last_writers(Shape{places}, 0, index);
  // Few of many: sorted, the last of each place is the one before another place.
  const auto [values, order] =
      ops::sort_first("sort", ops::checked_places("index_copy", index, 0, {places}), 0, false, n);
  const Tensor changes = not_equal(narrow(values, 0, 1, n - 1), narrow(values, 0, 0, n - 1));
  const Tensor is_last = cat({changes, ones({1}, {.dtype = boolean, .device = index.device()})}, 0);
  return ops::scatter(is_last, 0, order, is_last);
}

/// The gradient of rows that were written at these indices [n] along `dim` of what `dy` is the gradient of.
Tensor written_gradient(const Tensor& dy, int64_t dim, const Tensor& index) {
  if (dy.rank() == 0) return written_gradient(reshape(dy, {1}), 0, index);
  const int64_t along = normalize_dim(dim, dy.rank(), "index_copy");
  Shape shape(static_cast<std::size_t>(dy.rank() - along), 1);
  shape[0] = index.numel();
  const Tensor flat = reshape(index, {index.numel()});
  return where(reshape(last_writers(dy.size(along), flat), shape), index_select(dy, along, flat), 0);
}

void check_holds(const char* op, const Tensor& x, Number value) {
  check<DTypeError>(promote_with_number(x.dtype(), value) == x.dtype(), "{}: a tensor of {} cannot hold {}",
                    op, x.dtype(), value);
}

Tensor record_put(const Tensor& x, const ops::IndexPlaces& places, const Tensor& values, Flag accumulate) {
  const RecordOp range("index_put", x, values);
  const Tensor y = x.is_contiguous() ? ops::copy(x) : ops::to_format(x, MemoryFormat::contiguous);
  ops::index_put_into(y, places, values, accumulate);
  return record(
      "index_put", y,
      {grad_of(x,
               [places, accumulate](const Tensor& dy) {
                 return accumulate ? dy : record_put(dy, places, ops::number_like(0, dy), false);
               }),
       grad_of(values, [places, accumulate](const Tensor& dy) {
         const IndicesAreChecked checked(Sign::not_negative);
         const Tensor rows = reshape(dy, {places.size, dy.numel() / std::max<int64_t>(places.size, 1)});
         return reshape(
             accumulate ? index_select(rows, 0, places.rows) : written_gradient(rows, 0, places.rows),
             places.shape);
       })});
}

/// The first k elements of each line in order, or all.
ValuesIndices in_order(const char* op, const Tensor& x, int64_t dim, bool descending,
                       std::optional<int64_t> k) {
  const int64_t along = normalize_dim(dim, x.rank(), op);
  const int64_t size = x.rank() == 0 ? 1 : x.size(along);
  check<IndexError>(!k || (*k >= 0 && *k <= size), "{}: k = {} is outside [0, {}], dimension {} of {}", op,
                    k.value_or(0), size, along, x.shape());
  const auto [values, indices] =
      x.rank() == 0 ? ValuesIndices{ops::copy(x), zeros({}, {.dtype = int64, .device = x.device()})}
                    : ops::sort_first(op, x, along, descending, k.value_or(size));
  return {record_gathered(op, values, x, along, indices), indices};
}

const Tensor& in_place(const char* op, const Tensor& x, std::initializer_list<Tensor> others,
                       const std::function<Tensor(const Tensor&)>& function,
                       const std::function<void()>& into) {
  const Call call(op, {x});
  if (changes_tape(x, others))
    replace_in_place(op, x, function);
  else
    into();
  return call.gives(x);
}

}  // namespace

Tensor gather(const Tensor& x, Integer dim, const Tensor& index) {
  const Call call("gather", {x, index}, {{"dim", dim}});
  return call.gives(record_gathered("gather", ops::gather(x, dim, index), x, dim, index));
}

Tensor scatter_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  const Call call("scatter_add", {x, index, source}, {{"dim", dim}});
  const Tensor y = summed(x, [&](const Tensor& sums) { ops::scatter_add_into(sums, dim, index, source); });
  return call.result(y, grad_of(x, [](const Tensor& dy) { return dy; }),
                     grad_of(source, [dim, index = saved(index)](const Tensor& dy) {
                       const IndicesAreChecked checked;
                       return gather(dy, dim, *index);
                     }));
}

Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  const Call call("scatter", {x, index, source}, {{"dim", dim}});
  return call.result(ops::scatter(x, dim, index, source),
                     grad_of(x,
                             [dim, index = saved(index)](const Tensor& dy) {
                               const IndicesAreChecked checked;
                               return scatter(dy, dim, *index, 0);
                             }),
                     grad_of(source, [dim, index = saved(index)](const Tensor& dy) {
                       const IndicesAreChecked checked;
                       return where(last_writers(dy.shape(), dim, *index), gather(dy, dim, *index), 0);
                     }));
}

Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, Scalar value) {
  const RecordOp range("scatter", x, index);
  check_holds("scatter", x, value);
  const Tensor number = ops::number_like(value, x, "scatter");
  const Tensor each = number.as_strided(index.shape(), Strides(index.shape().size(), 0), 0);
  return record("scatter", ops::scatter(x, dim, index, each),
                {grad_of(x, [dim, index = saved(index)](const Tensor& dy) {
                  const IndicesAreChecked checked;
                  return scatter(dy, dim, *index, 0);
                })});
}

Tensor index_select(const Tensor& x, Integer dim, const Tensor& index) {
  const Call call("index_select", {x, index}, {{"dim", dim}});
  return call.result(ops::index_select(x, dim, index),
                     grad_of(x, [shape = x.shape(), format = x.memory_format(), dim,
                                 index = saved(index)](const Tensor& dy) {
                       const IndicesAreChecked checked;
                       return index_select_backward(shape, dim, *index, dy, format);
                     }));
}

Tensor index_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  const Tensor y = summed(x, [&](const Tensor& sums) { ops::index_add_into(sums, dim, index, source); });
  return record("index_add", y,
                {grad_of(x, [](const Tensor& dy) { return dy; }),
                 grad_of(source, [dim, index = saved(index), shape = source.shape()](const Tensor& dy) {
                   const IndicesAreChecked checked;
                   return dy.rank() == 0 ? expand(dy, shape) : index_select(dy, dim, *index);
                 })});
}

Tensor index_copy(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  const Tensor y = ops::copy(x);
  ops::index_copy_into(y, dim, index, source);
  return record("index_copy", y,
                {grad_of(x,
                         [dim, index = saved(index)](const Tensor& dy) {
                           const IndicesAreChecked checked;
                           return index_fill(dy, dim, *index, 0);
                         }),
                 grad_of(source, [dim, index = saved(index)](const Tensor& dy) {
                   const IndicesAreChecked checked;
                   return written_gradient(dy, dim, *index);
                 })});
}

Tensor index_fill(const Tensor& x, Integer dim, const Tensor& index, Scalar value) {
  check_holds("index_fill", x, value);
  return index_copy(x, dim, index, ops::number_like(value, x));
}

Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values, Flag accumulate) {
  return record_put(x, ops::index_places("index_put", x.shape(), indices), values, accumulate);
}

Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, Scalar value, Flag accumulate) {
  check_holds("index_put", x, value);
  return index_put(x, indices, ops::number_like(value, x), accumulate);
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check<DTypeError>(mask.dtype() == boolean,
                    "masked_select: the mask must be bool, got {}; compare it first (mask != 0)",
                    mask.dtype());
  const Shape shape = broadcast(x.shape(), mask.shape(), "masked_select");
  const IndicesAreChecked checked(Sign::not_negative);
  return index_select(reshape(expand(x, shape), {count(shape)}), 0, ops::flat_nonzero(expand(mask, shape)));
}

Tensor embedding(const Tensor& index, const Tensor& weight, EmbeddingOptions options) {
  const Call call("embedding", {index, weight});
  check<ShapeError>(weight.rank() == 2, "embedding: the weight must be [rows, width], got {}",
                    weight.shape());
  check<DeviceError>(index.device() == weight.device(),
                     "embedding: the indices must be on {} like the weight, got {}", weight.device(),
                     index.device());
  std::optional<int64_t> padding = options.padding_idx;
  const int64_t rows_of_weight = weight.size(0);
  check<IndexError>(!padding || (*padding >= -rows_of_weight && *padding < rows_of_weight),
                    "embedding: padding_idx {} is outside [{}, {})", padding.value_or(0), -rows_of_weight,
                    rows_of_weight);
  if (padding && *padding < 0) *padding += rows_of_weight;
  // The message about a wrong index should show where it is in `index`, not in the flattened one.
  const Tensor indices = ops::checked_indices("embedding", index, 0, weight.shape());
  Shape shape_of_y = index.shape();
  shape_of_y.push_back(weight.size(1));
  const Tensor y = no_grad([&] {
    const IndicesAreChecked checked(Sign::not_negative);
    return reshape(ops::index_select(weight, 0, reshape(indices, {-1})), shape_of_y);
  });
  return call.result(
      y, grad_of(weight, [shape = weight.shape(), padding, index = saved(index)](const Tensor& dy) {
        const Tensor places = ops::to_format(ops::cast(*index, int64), MemoryFormat::contiguous);
        const Tensor flat = view(places, {places.numel()});
        const Tensor rows = reshape(dy, {flat.numel(), shape[1]});
        const IndicesAreChecked checked(Sign::not_negative);
        if (!padding) return index_select_backward(shape, 0, flat, rows);
        const Tensor used = reshape(not_equal(flat, *padding), {flat.numel(), 1});
        return index_select_backward(shape, 0, flat, where(used, rows, 0));
      }));
}

const Tensor& scatter_(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  return in_place(
      "scatter_", x, {source}, [&](const Tensor& before) { return scatter(before, dim, index, source); },
      [&] { ops::copy_into(x, ops::scatter(x, dim, index, source)); });
}

const Tensor& scatter_add_(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  return in_place(
      "scatter_add_", x, {source},
      [&](const Tensor& before) { return scatter_add(before, dim, index, source); },
      [&] { ops::scatter_add_into(x, dim, index, source); });
}

const Tensor& index_add_(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  return in_place(
      "index_add_", x, {source}, [&](const Tensor& before) { return index_add(before, dim, index, source); },
      [&] { ops::index_add_into(x, dim, index, source); });
}

const Tensor& index_copy_(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source) {
  return in_place(
      "index_copy_", x, {source},
      [&](const Tensor& before) { return index_copy(before, dim, index, source); },
      [&] { ops::index_copy_into(x, dim, index, source); });
}

const Tensor& index_fill_(const Tensor& x, Integer dim, const Tensor& index, Scalar value) {
  check_holds("index_fill_", x, value);
  return index_copy_(x, dim, index, ops::number_like(value, x));
}

const Tensor& index_put_(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                         Flag accumulate) {
  return in_place(
      "index_put_", x, {values},
      [&](const Tensor& before) { return index_put(before, indices, values, accumulate); },
      [&] {
        ops::index_put_into(x, ops::index_places("index_put", x.shape(), indices), values, accumulate);
      });
}

const Tensor& index_put_(const Tensor& x, const std::vector<Tensor>& indices, Scalar value, Flag accumulate) {
  check_holds("index_put_", x, value);
  return index_put_(x, indices, ops::number_like(value, x), accumulate);
}

ValuesIndices sort(const Tensor& x, SortOptions options) {
  const Call call("sort", {x}, {{"dim", options.dim}, {"descending", Flag(options.descending)}});
  const ValuesIndices found = in_order("sort", x, options.dim, options.descending, {});
  call.gives(std::vector{found.values, found.indices});
  return found;
}

Tensor argsort(const Tensor& x, SortOptions options) {
  const Call call("argsort", {x}, {{"dim", options.dim}, {"descending", Flag(options.descending)}});
  const NoGrad off_the_tape;
  return call.gives(in_order("argsort", x, options.dim, options.descending, {}).indices);
}

ValuesIndices topk(const Tensor& x, Integer k, TopkOptions options) {
  const Call call("topk", {x}, {{"k", k}, {"dim", options.dim}, {"largest", Flag(options.largest)}});
  const ValuesIndices found = in_order("topk", x, options.dim, options.largest, k);
  call.gives(std::vector{found.values, found.indices});
  return found;
}

}  // namespace pleat
