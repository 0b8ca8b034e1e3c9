#include "pleat/ops/reduce/reduce.h"

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  const auto rank = x.shape().size();
  std::vector<bool> reduced(rank, dims.values.empty());
  for (const int64_t dim : dims.values)
    if (rank > 0) reduced[static_cast<std::size_t>(normalize_dim(dim, x.rank(), "sum"))] = true;
  std::vector<int64_t> order;
  Shape kept;
  Shape result_shape;
  int64_t inner = 1;
  for (std::size_t d = 0; d < rank; ++d)
    if (!reduced[d]) {
      order.push_back(static_cast<int64_t>(d));
      kept.push_back(x.shape()[d]);
    }
  for (std::size_t d = 0; d < rank; ++d) {
    if (reduced[d]) {
      order.push_back(static_cast<int64_t>(d));
      inner *= x.shape()[d];
    }
    if (!reduced[d] || keepdim) result_shape.push_back(reduced[d] ? 1 : x.shape()[d]);
  }
  const int64_t outer = count(kept);
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : int64;
  const auto rows = reshape(cast(permute(x, order), is_floating(dtype) ? float64 : int64), {outer, inner});
  return dispatch(rows.dtype(), [&]<class T>(Type<T>) {
    std::vector<int64_t> dummy;
    const Tensor out = zeros(result_shape, {.dtype = rows.dtype()});
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int64_t>) {
      const Tensor dense = to_format(rows, MemoryFormat::contiguous);
      for (int64_t i = 0; i < outer; ++i)
        for (int64_t j = 0; j < inner; ++j) out.data<T>()[i] += dense.data<T>()[i * inner + j];
    }
    return cast(out, dtype);
  });
}

}  // namespace pleat::ops
