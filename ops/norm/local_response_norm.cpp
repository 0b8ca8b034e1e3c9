#include <cmath>

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {

Tensor local_response_norm(const Tensor& x, const LocalResponseNormOptions& options) {
  constexpr const char* op = "local_response_norm";
  check<ShapeError>(x.rank() >= 3, "{}: input must be [N, C, spatial...], got {}", op, x);
  check<DTypeError>(is_floating(x.dtype()), "{}: input must be floating, got {}; convert it with to(float32)",
                    op, x);
  const int64_t size = options.size;
  check<ValueError>(size >= 1, "{}: size must be at least 1, got {}", op, size);
  for (const auto& [what, value] :
       {std::pair{"alpha", options.alpha}, {"beta", options.beta}, {"k", options.k}})
    check<ValueError>(std::isfinite(value), "{}: {} must be finite, got {}", op, what, value);
  const RecordOp range(op, x);
  if (x.numel() == 0) return x * 1;
  // The channels as the rows of an image. Half types have no room for squares.
  const Tensor squares = square(x.to(compute_dtype(x.dtype())));
  const Tensor image = reshape(squares, {x.size(0), 1, x.size(1), x.numel() / (x.size(0) * x.size(1))});
  const Tensor means = avg_pool2d(
      image, {.kernel_size = {size, 1}, .stride = 1, .padding = {{size / 2, (size - 1) / 2}, {0, 0}}});
  const Tensor scale = pow(reshape(means, x.shape()) * options.alpha + options.k, -options.beta);
  return (x * scale).to(x.dtype());
}

}  // namespace pleat
