#include "pleat/models/next_token.h"

#include <algorithm>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/nn/option_checks.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/multinomial.h"
#include "pleat/ops/index/sort.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat::models {

Tensor next_token(const Tensor& logits, const NextTokenOptions& options, Generator& generator) {
  constexpr const char* name = "next_token";
  const NoGrad off_the_tape;
  check<ShapeError>(logits.rank() == 2 && logits.size(1) >= 1, "{}: logits must be [N, tokens], got {}", name,
                    logits);
  check<DTypeError>(is_floating(logits.dtype()), "{}: logits must be floating, got {}", name, logits);
  check_at_least_0(name, "temperature", options.temperature);
  check_at_least(name, "top_k", options.top_k, 0);
  check<ValueError>(options.top_p > 0 && options.top_p <= 1, "{}: top_p must be in (0, 1], got {}", name,
                    options.top_p);
  if (options.temperature == 0) return argmax(logits, 1);
  const int64_t tokens = logits.size(1);
  const auto [likeliest, places] =
      topk(logits, options.top_k == 0 ? tokens : std::min(options.top_k, tokens), {.dim = 1});
  Tensor weights = softmax(likeliest.to(float64) / options.temperature, 1);
  if (options.top_p < 1) weights = where(cumsum(weights, 1) - weights < options.top_p, weights, 0);
  return squeeze(gather(places, 1, multinomial(weights, 1, {}, generator)), {1});
}

}  // namespace pleat::models
