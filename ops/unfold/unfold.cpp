#include "pleat/ops/unfold/unfold.h"

#include "pleat/autograd/tape.h"

namespace pleat {

Tensor unfold(const Tensor& x, const UnfoldOptions& options) {
  const Tensor y = ops::unfold(x, options);  // checks the rank, which the closure relies on
  return record("unfold", y,
                {grad_of(x, [size = Shape(x.shape().begin() + 2, x.shape().end()),
                             options](const Tensor& dy) { return fold(dy, size, options); })});
}

Tensor fold(const Tensor& columns, const Sizes& output_size, const UnfoldOptions& options) {
  return record("fold", ops::fold(columns, output_size, options),
                {grad_of(columns, [options](const Tensor& dy) { return unfold(dy, options); })});
}

}  // namespace pleat
