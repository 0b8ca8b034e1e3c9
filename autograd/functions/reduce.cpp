#include "pleat/autograd/functions/reduce.h"

#include "pleat/autograd/functions/shape.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/format.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat {
namespace {

/// The shape with reduced dimensions kept as 1.
Shape keepdim_shape(const Tensor& x, const Dims& dims) {
  Shape shape = x.shape();
  if (dims.values.empty()) shape.assign(shape.size(), 1);
  for (const int64_t dim : dims.values)
    if (!shape.empty()) shape[static_cast<std::size_t>(normalize_dim(dim, x.rank(), "sum"))] = 1;
  return shape;
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  return record("sum", ops::sum(x, dims, keepdim),
                {grad_of(x, [shape = x.shape(), kept = keepdim_shape(x, dims)](const Tensor& dy) {
                  return expand(reshape(dy, kept), shape);
                })});
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  check<ShapeError>(x.shape().size() >= shape.size() && broadcast(shape, x.shape(), "sum_to") == x.shape(),
                    "sum_to: {} cannot come from {} by broadcasting", x.shape(), shape);
  const std::size_t added = x.shape().size() - shape.size();
  Dims dims;
  for (std::size_t d = 0; d < x.shape().size(); ++d)
    if (d < added || (shape[d - added] == 1 && x.shape()[d] != 1)) dims.values.push_back(static_cast<int64_t>(d));
  return reshape(sum(x, dims, true), shape);
}

}  // namespace pleat
