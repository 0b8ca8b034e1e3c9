#include <algorithm>
#include <span>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/copy_bytes.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/trace.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::ops {
namespace {

void check_values(const char* op, const Tensor& x, const Tensor& values) {
  check<DTypeError>(values.dtype() == x.dtype(), "{}: the values must be {} like the tensor, got {}", op,
                    x.dtype(), values.dtype());
  check<DeviceError>(values.device() == x.device(), "{}: the values must be on {} like the tensor, got {}",
                     op, x.device(), values.device());
}

/// The values in this shape; of their own, where they may lie in what is written.
Tensor spread(const char* op, const Tensor& x, const Tensor& values, const Shape& shape) {
  bool fits = values.shape().size() <= shape.size();
  for (std::size_t d = 0; fits && d < values.shape().size(); ++d) {
    const int64_t size = values.shape()[values.shape().size() - 1 - d];
    fits = size == 1 || size == shape[shape.size() - 1 - d];
  }
  check<ShapeError>(fits, "{}: the values {} do not broadcast to {}", op, values.shape(), shape);
  const bool shared = values.impl().storage == x.impl().storage;
  return expand(shared ? copy(values) : values, shape);
}

bool is_one_number(const Tensor& values) {
  return std::all_of(values.strides().begin(), values.strides().end(),
                     [](int64_t step) { return step == 0; });
}

/// x[:, indices[i], :] = values[:, i, :], with row-major x and values, or one number as these. Each thread
/// has some columns: of rows that are named twice the last one stays.
template <class T>
void put_rows(const Tensor& x, std::size_t along, const Tensor& indices, const Tensor& values) {
  const std::span<const int64_t> shape = x.shape();
  const int64_t outer = count(shape.first(along));
  const int64_t inner = count(shape.subspan(along + 1));
  const int64_t rows = indices.numel();
  const int64_t* const at = indices.data<int64_t>();
  const bool fills = is_one_number(values);
  const T* const from = values.data<T>();
  T* const to = x.data<T>();
  parallel_for(0, inner, 1 + 32768 / std::max<int64_t>(1, outer * rows), [&](int64_t first, int64_t last) {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < rows; ++i) {
        T* const row = to + (o * shape[along] + at[i]) * inner;
        if (fills)
          std::fill(row + first, row + last, *from);
        else
          detail::copy_bytes(reinterpret_cast<std::byte*>(row + first),
                             reinterpret_cast<const std::byte*>(from + (o * rows + i) * inner + first),
                             static_cast<std::size_t>(last - first) * sizeof(T));
      }
  });
}

}  // namespace

void index_copy_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const TracedCall range("index_copy", {x, index, source});
  const NoGrad off_the_tape;
  const std::size_t along = index_dim("index_copy", dim, x, index);
  if (x.rank() == 0) return index_copy_into(at_least_1d(x), dim, at_least_1d(index), at_least_1d(source));
  check<ShapeError>(index.rank() <= 1, "index_copy: the index must have rank 1, got {}", index.shape());
  check_values("index_copy", x, source);
  Shape shape = x.shape();
  shape[along] = index.numel();
  const Tensor values = spread("index_copy", x, source, shape);
  const Tensor indices = checked_places("index_copy", index, static_cast<int64_t>(along), x.shape());
  if (x.device().is_cpu() && x.is_contiguous() && along + 1 < shape.size() && values.numel() > 0 &&
      (values.is_contiguous() || is_one_number(values))) {
    x.begin_write();
    return dispatch(x.dtype(), [&]<class T>(Type<T>) { put_rows<T>(x, along, indices, values); });
  }
  Strides strides(shape.size(), 0);
  strides[along] = 1;
  scatter_checked_into(x, along, indices.as_strided(shape, std::move(strides), indices.offset()), values);
}

IndexPlaces index_places(const char* op, const Shape& shape, const std::vector<Tensor>& indices) {
  check<ShapeError>(!indices.empty(), "{}: needs an index for at least one dimension", op);
  if (indices[0].dtype() == boolean) {
    check<ShapeError>(indices.size() == 1, "{}: a mask must be the only index, got {}", op, indices.size());
    const Shape& mask = indices[0].shape();
    const auto rank = static_cast<std::ptrdiff_t>(mask.size());
    check<ShapeError>(mask.size() <= shape.size() && std::equal(mask.begin(), mask.end(), shape.begin()),
                      "{}: the mask {} must have the first sizes of the tensor {}", op, mask, shape);
    const Tensor rows = flat_nonzero(indices[0]);
    Shape result(shape.begin() + rank, shape.end());
    result.insert(result.begin(), rows.numel());
    return {rows, count(mask), std::move(result)};
  }
  check<ShapeError>(indices.size() <= shape.size(), "{}: {} indices for a tensor of {} dimensions, {}", op,
                    indices.size(), shape.size(), shape);
  Shape common;
  for (const Tensor& index : indices) common = broadcast(common, index.shape(), op);
  IndexPlaces places{{}, 1, common};
  const std::vector<Tensor> checked = checked_places(op, indices, shape);
  for (std::size_t d = 0; d < indices.size(); ++d) {
    const Tensor& index = checked[d];
    places.rows = d == 0 ? index : places.rows * shape[d] + index;
    places.size = checked_multiply(places.size, shape[d], op);
  }
  places.rows = reshape(expand(places.rows, common), {count(common)});
  places.shape.insert(places.shape.end(), shape.begin() + static_cast<std::ptrdiff_t>(indices.size()),
                      shape.end());
  return places;
}

void index_put_into(const Tensor& x, const IndexPlaces& places, const Tensor& values, bool accumulate) {
  const TracedCall range("index_put", {x, values});
  const NoGrad off_the_tape;
  check_values("index_put", x, values);
  check<DeviceError>(places.rows.device() == x.device(),
                     "index_put: the indices must be on {} like the tensor, got {}", x.device(),
                     places.rows.device());
  if (!x.is_contiguous()) {
    const Tensor y = to_format(x, MemoryFormat::contiguous);
    index_put_into(y, places, values, accumulate);
    return copy_into(x, y);
  }
  const IndicesAreChecked checked(IndicesAreChecked::Sign::not_negative);
  // Rows of what lies behind the named dimensions.
  const int64_t width = x.numel() / std::max<int64_t>(places.size, 1);
  const Tensor rows = view(x, {places.size, width});
  const Tensor each = reshape(spread("index_put", x, values, places.shape), {places.rows.numel(), width});
  (accumulate ? index_add_into : index_copy_into)(rows, 0, places.rows, each);
}

}  // namespace pleat::ops
