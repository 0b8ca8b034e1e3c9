#include "pleat/autograd/functions/reduce.h"

#include <algorithm>
#include <utility>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/format.h"
#include "pleat/ops/reduce/shares.h"

namespace pleat {
namespace {

/// Turns what belongs to the results of a reduction into what belongs to its inputs, without copying.
class Spread {
 public:
  Spread(const Tensor& x, const Dims& dims, const char* op) : shape_(x.shape()), kept_(x.shape()) {
    if (dims.values.empty()) kept_.assign(kept_.size(), 1);
    for (const int64_t dim : dims.values)
      if (!kept_.empty()) kept_[static_cast<std::size_t>(normalize_dim(dim, x.rank(), op))] = 1;
  }

  /// The result with its reduced dimensions as 1.
  Tensor keepdim(const Tensor& y) const { return reshape(y, kept_); }
  Tensor operator()(const Tensor& y) const { return expand(keepdim(y), shape_); }
  /// Elements of x that make one result.
  double count() const {
    double n = 1;
    for (std::size_t d = 0; d < shape_.size(); ++d)
      n *= static_cast<double>(shape_[d]) / static_cast<double>(std::max<int64_t>(kept_[d], 1));
    return n;
  }

 private:
  Shape shape_;
  Shape kept_;
};

using ExtremeFunction = Tensor (*)(const Tensor&, const Dims&, bool);
using IndicesFunction = ValuesIndices (*)(const Tensor&, int64_t, bool);

Tensor extreme(const char* op, ExtremeFunction function, const Tensor& x, const Dims& dims, bool keepdim) {
  const Tensor y = function(x, dims, keepdim);
  return record(
      op, y, {grad_of(x, [spread = Spread(x, dims, op), x = saved(x), y = saved(y), dims](const Tensor& dy) {
        const Tensor shares = ops::shares_of_equals(*x, spread.keepdim((*y).detach()), dims);
        return spread(dy) * shares;
      })});
}

ValuesIndices with_indices(const char* op, IndicesFunction function, const Tensor& x, int64_t dim,
                           bool keepdim) {
  const ValuesIndices y = function(x, dim, keepdim);
  const int64_t size = x.rank() == 0 ? 1 : x.size(dim);
  const Tensor values = record(
      op, y.values,
      {grad_of(x, [spread = Spread(x, dim, op), indices = saved(y.indices), dim, size](const Tensor& dy) {
        return spread(dy) * ops::mask_of_index(spread.keepdim(*indices), dim, size, dy.dtype());
      })});
  return {values, y.indices};
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  return record("sum", ops::sum(x, dims, keepdim),
                {grad_of(x, [spread = Spread(x, dims, "sum")](const Tensor& dy) { return spread(dy); })});
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  check<ShapeError>(x.shape().size() >= shape.size() && broadcast(shape, x.shape(), "sum_to") == x.shape(),
                    "sum_to: {} cannot come from {} by broadcasting", x.shape(), shape);
  const std::size_t added = x.shape().size() - shape.size();
  Dims dims;
  for (std::size_t d = 0; d < x.shape().size(); ++d)
    if (d < added || (shape[d - added] == 1 && x.shape()[d] != 1))
      dims.values.push_back(static_cast<int64_t>(d));
  return reshape(sum(x, dims, true), shape);
}

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  return record("mean", ops::mean(x, dims, keepdim),
                {grad_of(x, [spread = Spread(x, dims, "mean")](const Tensor& dy) {
                  return spread(dy / spread.count());
                })});
}

Tensor max(const Tensor& x, const Dims& dims, bool keepdim) {
  return extreme("max", ops::max, x, dims, keepdim);
}
Tensor min(const Tensor& x, const Dims& dims, bool keepdim) {
  return extreme("min", ops::min, x, dims, keepdim);
}

ValuesIndices max_with_indices(const Tensor& x, int64_t dim, bool keepdim) {
  return with_indices("max_with_indices", ops::max_with_indices, x, dim, keepdim);
}
ValuesIndices min_with_indices(const Tensor& x, int64_t dim, bool keepdim) {
  return with_indices("min_with_indices", ops::min_with_indices, x, dim, keepdim);
}

Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return ops::argmax(x, dim, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return ops::argmin(x, dim, keepdim);
}

}  // namespace pleat
