#include "pleat/ops/index/scatter.h"

#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/index/scatter_fold.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

using ops::IndicesAreChecked;
using ops::ScatterFold;

/// A call after its checks: places in [0, size).
struct Scatter {
  int64_t dim;
  bool include_self;
  Tensor places;
};

/// The same kept for backward.
class SavedScatter {
 public:
  explicit SavedScatter(const Scatter& s) : dim_(s.dim), include_self_(s.include_self), places_(s.places) {}
  Scatter operator*() const { return {dim_, include_self_, *places_}; }

 private:
  int64_t dim_;
  bool include_self_;
  Saved places_;
};

/// Copies of `start` with what goes there folded in.
Tensor folded(const Tensor& start, const Scatter& s, const Tensor& source, ScatterFold fold) {
  const DType dtype = compute_dtype(start.dtype());
  const Tensor y = start.dtype() == dtype ? ops::copy(start) : ops::cast(start, dtype);
  ops::scatter_fold_into("scatter_reduce", y, static_cast<std::size_t>(s.dim), s.places,
                         ops::cast(source, dtype), fold);
  return ops::cast(y, start.dtype());
}

/// x, with a number where something goes to unless it takes part itself.
Tensor start_of(const Tensor& x, const Scatter& s, int64_t number) {
  return s.include_self ? x : scatter(x, s.dim, s.places, number);
}

Tensor sums(const Tensor& x, const Scatter& s, const Tensor& source) {
  return scatter_add(start_of(x, s, 0), s.dim, s.places, source);
}

Tensor means(const Tensor& x, const Scatter& s, const Tensor& source) {
  const DType dtype = is_floating(x.dtype()) ? compute_dtype(x.dtype()) : int64;
  const TensorOptions numbers{.dtype = dtype, .device = x.device()};
  const Tensor own = s.include_self ? ones(x.shape(), numbers) : zeros(x.shape(), numbers);
  const Tensor count = maximum(scatter_add(own, s.dim, s.places, ones(s.places.shape(), numbers)), 1);
  const Tensor sum = sums(cast(x, dtype), s, cast(source, dtype));
  return cast(is_floating(dtype) ? sum / count : floor_divide(sum, count), x.dtype());
}

/// Where b's elements are a's, or both are NaN.
Tensor is_same(const Tensor& a, const Tensor& b) {
  return logical_or(equal(a, b), logical_and(isnan(a), isnan(b)));
}

/// The largest or smallest ones.
Tensor extremes(const Tensor& x, const Scatter& given, const Tensor& source, ScatterFold fold) {
  const RecordOp range("scatter_extremes", x, source);
  const Tensor start = given.include_self ? x : ops::scatter(x, given.dim, given.places, source);
  const Tensor y = folded(start, given, source, fold);
  return record("scatter_extremes", y, {x, source},
                [kept = SavedScatter(given), x = saved(x), source = saved(source),
                 y = saved(y)](const Tensor& dy) -> Grads {
                  const IndicesAreChecked checked(IndicesAreChecked::Sign::not_negative);
                  const Scatter s = *kept;
                  Tensor is_own = is_same(*x, *y);
                  if (!s.include_self) is_own = scatter(is_own, s.dim, s.places, false);
                  const Tensor is_given = is_same(*source, ops::gather(*y, s.dim, s.places));
                  const Tensor count = scatter_add(ops::cast(is_own, dy.dtype()), s.dim, s.places,
                                                   ops::cast(is_given, dy.dtype()));
                  const Tensor share = dy / count;
                  return {where(is_own, share, 0), where(is_given, gather(share, s.dim, s.places), 0)};
                });
}

/// The products of all that meet with each element of the source, which are in the order of `dim`. Sorted by
/// their places those of one stand side by side: the product of those before one, and of those after it.
Tensor products_of_others(const Tensor& x, const Scatter& s, const Tensor& given) {
  const DType dtype = compute_dtype(given.dtype());
  const Tensor order = argsort(s.places, {.dim = s.dim});
  const Tensor at = ops::gather(s.places, s.dim, order);
  const Tensor sorted = gather(cast(given, dtype), s.dim, order);
  const Tensor is_first = not_equal(at, shifted(at, s.dim, 1, -1));
  const Tensor is_last = not_equal(at, shifted(at, s.dim, -1, -1));
  const Tensor own = s.include_self ? gather(cast(x, dtype), s.dim, at) : ops::cast(equal(at, at), dtype);
  const Tensor factors = where(is_first, 0, sorted);
  const Tensor running = linear_scan(factors, where(is_first, own * sorted, 0), s.dim);
  const Tensor before = where(is_first, own, shifted(running, s.dim, 1, 1));
  const Tensor after = linear_scan(factors, ops::cast(is_last, dtype), s.dim, true);
  return gather(before * after, s.dim, argsort(order, {.dim = s.dim}));
}

Tensor products(const Tensor& x, const Scatter& given, const Tensor& source) {
  const RecordOp range("scatter_products", x, source);
  const Tensor start = no_grad([&] { return start_of(x, given, 1); });
  return record(
      "scatter_products", folded(start, given, source, ScatterFold::prod),
      {grad_of(x,
               [kept = SavedScatter(given), source = saved(source), shape = x.shape()](const Tensor& dy) {
                 const IndicesAreChecked checked(IndicesAreChecked::Sign::not_negative);
                 const Scatter s = *kept;
                 if (!s.include_self) return scatter(dy, s.dim, s.places, 0);
                 const Tensor factors = *source;
                 const Tensor none = ones(shape, {.dtype = factors.dtype(), .device = factors.device()});
                 return dy * products(none, s, factors);
               }),
       grad_of(source, [kept = SavedScatter(given), x = saved(x), source = saved(source)](const Tensor& dy) {
         const IndicesAreChecked checked(IndicesAreChecked::Sign::not_negative);
         const Scatter s = *kept;
         return gather(dy, s.dim, s.places) * products_of_others(*x, s, *source);
       })});
}

Tensor reduced(ScatterReduction reduction, const Tensor& x, const Scatter& s, const Tensor& source) {
  switch (reduction) {
    case ScatterReduction::sum:
      return sums(x, s, source);
    case ScatterReduction::prod:
      return products(x, s, source);
    case ScatterReduction::mean:
      return means(x, s, source);
    case ScatterReduction::amax:
      return extremes(x, s, source, ScatterFold::amax);
    case ScatterReduction::amin:
      break;
  }
  return extremes(x, s, source, ScatterFold::amin);
}

void check_updates(const char* op, const Tensor& x, const char* what, const Tensor& updates) {
  check<DTypeError>(updates.dtype() == x.dtype(), "{}: the {} must be {} like the tensor, got {}", op, what,
                    x.dtype(), updates.dtype());
}

/// The indices along each dimension that the vectors [..., k] name.
std::vector<Tensor> components(const Tensor& indices) {
  std::vector<Tensor> each;
  for (int64_t j = 0; j < indices.size(-1); ++j) each.push_back(select(indices, -1, j));
  return each;
}

/// Vectors of indices, of at most as many as x has dimensions behind the batch's.
void check_vectors(const char* op, const Tensor& x, const Tensor& indices, int64_t batch_dims) {
  check<DeviceError>(indices.device() == x.device(), "{}: the indices must be on {} like the tensor, got {}",
                     op, x.device(), indices.device());
  check<DTypeError>(!is_floating(indices.dtype()) && indices.dtype() != boolean,
                    "{}: indices must be integers, got {}; convert them with to(int64)", op, indices.dtype());
  check<ShapeError>(
      indices.rank() > batch_dims && indices.size(-1) >= 1 && indices.size(-1) <= x.rank() - batch_dims,
      "{}: the indices must be vectors [..., k] for 1 to {} dimensions of the tensor {}, got {}", op,
      x.rank() - batch_dims, x.shape(), indices.shape());
}

/// As ONNX says it; "mean" is not among its.
const char* name_of(ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::sum:
      return "add";
    case ScatterReduction::prod:
      return "mul";
    case ScatterReduction::mean:
      return "mean";
    case ScatterReduction::amax:
      return "max";
    case ScatterReduction::amin:
      break;
  }
  return "min";
}

}  // namespace

Tensor scatter_reduce(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source,
                      const ScatterReduceOptions& options) {
  constexpr const char* op = "scatter_reduce";
  const Call call(
      op, {x, index, source},
      {{"dim", dim}, {"reduction", name_of(options.reduce)}, {"include_self", Flag(options.include_self)}});
  ops::check_source(op, x, index, source);
  check<DTypeError>(x.dtype() != boolean, "{}: needs numbers, got bool", op);
  check_updates(op, x, "source", source);
  if (x.rank() == 0 || index.rank() == 0) {
    const auto line = [](const Tensor& t) { return t.rank() == 0 ? unsqueeze(t, 0) : t; };
    const int64_t along = static_cast<int64_t>(ops::index_dim(op, dim, x, index));
    const Tensor places = ops::checked_places(op, line(index), along, line(x).shape());
    const IndicesAreChecked checked(IndicesAreChecked::Sign::not_negative);
    ops::check_index_shape(op, line(x), 0, places);
    return call.gives(reshape(
        reduced(options.reduce, line(x), {along, options.include_self, places}, line(source)), x.shape()));
  }
  const std::size_t along = ops::index_dim(op, dim, x, index);
  ops::check_index_shape(op, x, along, index);
  const Tensor places = ops::checked_places(op, index, static_cast<int64_t>(along), x.shape());
  const IndicesAreChecked checked(IndicesAreChecked::Sign::not_negative);
  return call.gives(
      reduced(options.reduce, x, {static_cast<int64_t>(along), options.include_self, places}, source));
}

const Tensor& scatter_reduce_(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source,
                              const ScatterReduceOptions& options) {
  if (changes_tape(x, {source}))
    replace_in_place("scatter_reduce_", x, [&](const Tensor& before) {
      return scatter_reduce(before, dim, index, source, options);
    });
  else
    ops::copy_into(x, scatter_reduce(x, dim, index, source, options));
  return x;
}

Tensor gather_nd(const Tensor& x, const Tensor& indices, GatherNdOptions options) {
  constexpr const char* op = "gather_nd";
  const int64_t batch_dims = options.batch_dims;
  const Call call(op, {x, indices}, {{"batch_dims", batch_dims}});
  check<ValueError>(batch_dims >= 0 && batch_dims < x.rank(),
                    "{}: batch_dims must be at least 0 and below {} for the tensor {}, got {}", op, x.rank(),
                    x.shape(), batch_dims);
  check_vectors(op, x, indices, batch_dims);
  std::vector<Tensor> places;
  for (int64_t d = 0; d < batch_dims; ++d) {
    check<ShapeError>(indices.size(d) == x.size(d),
                      "{}: tensor and indices must have the same first {} sizes, got {} and {}", op,
                      batch_dims, x.shape(), indices.shape());
    Shape line(static_cast<std::size_t>(indices.rank() - 1), 1);
    line[static_cast<std::size_t>(d)] = x.size(d);
    places.push_back(reshape(arange(x.size(d), {.device = x.device()}), line));
  }
  for (const Tensor& component : components(indices)) places.push_back(component);
  const ops::IndexPlaces at = ops::index_places(op, x.shape(), places);
  const IndicesAreChecked checked(IndicesAreChecked::Sign::not_negative);
  const Tensor rows = reshape(x, {at.size, x.numel() / std::max<int64_t>(at.size, 1)});
  return call.gives(reshape(index_select(rows, 0, at.rows), at.shape));
}

Tensor scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& updates, ScatterNdOptions options) {
  constexpr const char* op = "scatter_nd";
  const Call call(op, {x, indices, updates},
                  {{"reduction", options.reduction ? name_of(*options.reduction) : "none"}});
  check_vectors(op, x, indices, 0);
  check_updates(op, x, "updates", updates);
  check<DeviceError>(updates.device() == x.device(), "{}: the updates must be on {} like the tensor, got {}",
                     op, x.device(), updates.device());
  check<DTypeError>(!options.reduction || x.dtype() != boolean, "{}: a reduction needs numbers, got bool",
                    op);
  const ops::IndexPlaces at = ops::index_places(op, x.shape(), components(indices));
  check<ShapeError>(updates.shape() == at.shape, "{}: the updates must be {}, got {}", op, at.shape,
                    updates.shape());
  const IndicesAreChecked checked(IndicesAreChecked::Sign::not_negative);
  const int64_t inner = x.numel() / std::max<int64_t>(at.size, 1);
  const Tensor rows = reshape(x, {at.size, inner});
  const Tensor values = reshape(updates, {at.rows.numel(), inner});
  if (!options.reduction) return call.gives(reshape(index_copy(rows, 0, at.rows, values), x.shape()));
  const Tensor places =
      ops::to_format(expand(unsqueeze(at.rows, 1), {at.rows.numel(), inner}), MemoryFormat::contiguous);
  return call.gives(reshape(reduced(*options.reduction, rows, {0, true, places}, values), x.shape()));
}

}  // namespace pleat
