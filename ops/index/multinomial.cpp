#include "pleat/ops/index/multinomial.h"

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {

Tensor multinomial(const Tensor& weights, Integer num_samples, MultinomialOptions options,
                   Generator& generator) {
  constexpr const char* op = "multinomial";
  const RecordOp range(op, weights);
  const NoGrad off_the_tape;
  const int64_t samples = num_samples;
  check<ShapeError>((weights.rank() == 1 || weights.rank() == 2) && weights.size(-1) >= 1,
                    "{}: the weights must be [K] or [N, K] with K of at least 1, got {}", op, weights);
  check<DTypeError>(is_floating(weights.dtype()),
                    "{}: the weights must be floating, got {}; convert them with to(float32)", op, weights);
  check<ValueError>(samples >= 1, "{}: num_samples must be at least 1, got {}", op, samples);
  check<ValueError>(options.replacement || samples <= weights.size(-1),
                    "{}: {} places cannot be drawn from {} without .replacement = true", op, samples,
                    weights.size(-1));
  if (weights.rank() == 1)
    return squeeze(multinomial(unsqueeze(weights, 0), samples, options, generator), {0});
  if (weights.size(0) == 0) return zeros({0, samples}, {.dtype = int64, .device = weights.device()});

  const Tensor w = weights.to(float64);
  check<ValueError>(all(logical_and(w >= 0, isfinite(w))).item<bool>(),
                    "{}: a weight is negative, infinite or NaN; of logits take softmax(logits, -1)", op);
  const int64_t drawable = min(sum((w > 0).to(int64), 1)).item<int64_t>();
  check<ValueError>(drawable >= 1, "{}: a row has no weight above 0", op);
  const TensorOptions doubles{.dtype = float64, .device = weights.device()};
  if (options.replacement) {
    // The place whose part of the sum the number falls into.
    const Tensor ends = cumsum(w / max(w, 1, true), 1);
    const Tensor total = narrow(ends, 1, w.size(1) - 1, 1);
    return searchsorted(ends, rand({w.size(0), samples}, doubles, generator) * total, {.right = true});
  }
  check<ValueError>(
      samples <= drawable,
      "{}: {} places cannot be drawn without .replacement = true where {} have a weight above 0", op, samples,
      drawable);
  // The largest of log(w) and Gumbel noise (Yellott, "The relationship between Luce's choice axiom,
  // Thurstone's theory of comparative judgment, and the double exponential distribution", 1977): exponential
  // waiting times.
  // No time of 0, after which even what has no weight might come.
  const Tensor uniform = maximum(rand(w.shape(), doubles, generator), 0x1p-54);
  const Tensor noise = -log(-log1p(-uniform));
  return topk(log(w) + noise, samples).indices;
}

}  // namespace pleat
