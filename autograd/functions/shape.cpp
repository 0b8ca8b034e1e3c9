#include "pleat/autograd/functions/shape.h"

#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/tape.h"
#include "pleat/ops/shape/view.h"

namespace pleat {
namespace {

/// A reshape is a view only where strides allow it; then the tape has to know.
template <class F>
Tensor record_reshape(const char* name, const Tensor& y, const Tensor& x, F backward) {
  const bool shares = y.impl().storage == x.impl().storage;
  return shares ? record_view(name, y, x, std::move(backward)) : record(name, y, {grad_of(x, std::move(backward))});
}

}  // namespace

Tensor reshape(const Tensor& x, Shape shape) {
  return record_reshape("reshape", ops::reshape(x, std::move(shape)), x,
                        [shape = x.shape()](const Tensor& dy) { return reshape(dy, shape); });
}

Tensor flatten(const Tensor& x, int64_t first, int64_t last) {
  return record_reshape("flatten", ops::flatten(x, first, last), x,
                        [shape = x.shape()](const Tensor& dy) { return reshape(dy, shape); });
}

Tensor expand(const Tensor& x, const Shape& shape) {
  return record_view("expand", ops::expand(x, shape), x,
                     [shape = x.shape()](const Tensor& dy) { return sum_to(dy, shape); });
}

Tensor permute(const Tensor& x, const Dims& order) {
  std::vector<int64_t> inverse(order.values.size());
  const Tensor y = ops::permute(x, order);
  for (std::size_t i = 0; i < inverse.size(); ++i)
    inverse[static_cast<std::size_t>(normalize_dim(order.values[i], x.rank(), "permute"))] = static_cast<int64_t>(i);
  return record_view("permute", y, x, [inverse](const Tensor& dy) { return permute(dy, inverse); });
}

}  // namespace pleat
