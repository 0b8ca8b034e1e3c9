#include "pleat/nn/distributions.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/multinomial.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"

namespace pleat::distributions {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// NaN is in no range.
void check_range(const char* name, const char* what, const char* range, const Tensor& within) {
  const NoGrad off_the_tape;
  check<ValueError>(all(within).item<bool>(), "{}: {} must be {}", name, what, range);
}
void check_positive(const char* name, const char* what, const Tensor& x) {
  check_range(name, what, "above 0 and finite", x > 0 && x < infinity);
}

void check_type(const char* name, const Tensor& x) {
  check<DTypeError>(x.dtype() == float32 || x.dtype() == float64,
                    "{}: parameters must be float32 or float64, got {}", name, x);
}

/// Checks that parameters fit each other; gives the batch's shape.
Shape batch_of(const char* name, const Tensor& a, const Tensor& b) {
  check_type(name, a);
  ops::check_one_type(name, "one parameter", b, "the other", a);
  check<DeviceError>(a.device() == b.device(), "{}: parameters must be on one device, got {} and {}", name, a,
                     b);
  return broadcast(a.shape(), b.shape(), name);
}

TensorOptions like(const Tensor& x) { return {.dtype = x.dtype(), .device = x.device()}; }

/// [shape..., that of the batch...].
Shape drawn(const Sizes& shape, const Tensor& batch) {
  Shape all = shape;
  all.insert(all.end(), batch.shape().begin(), batch.shape().end());
  return all;
}

/// x away from 0 and 1 by the type's epsilon.
Tensor inside(const Tensor& x) {
  const double epsilon = x.dtype() == float64 ? 0x1p-52 : 0x1p-23;
  return clamp(x, {.min = epsilon, .max = 1 - epsilon});
}

const Tensor& given(const char* name, const ProbabilityOptions& options) {
  check<ValueError>(options.probs.defined() != options.logits.defined(),
                    "{}: needs probs or logits, one of the two", name);
  const Tensor& x = options.probs.defined() ? options.probs : options.logits;
  check_type(name, x);
  return x;
}

/// The logarithms of draws from the gamma distribution with shape parameter a and scale 1.
Tensor log_gamma_draws(const Tensor& a, Generator& generator) {
  // A draw for a + 1 times u^(1 / a) is one for a.
  const Tensor boost = where(a < 1, log(1 - rand(a.shape(), like(a), generator)) / a, 0);
  const Tensor d = where(a < 1, a + 1, a) - 1 / 3.0, c = rsqrt(9 * d);
  Tensor result = zeros(a.shape(), like(a)), left = a > 0;
  while (any(left).item<bool>()) {
    const Tensor x = randn(a.shape(), like(a), generator), u = rand(a.shape(), like(a), generator);
    const Tensor v = 1 + c * x, log_cube = 3 * log(v);  // NaN below 0, which is refused
    const Tensor accepted = log(u) < square(x) / 2 + d * (1 - v * v * v + log_cube);
    result = where(left && accepted, log(d) + log_cube, result);
    left = left && !accepted;
  }
  return result + boost;
}

/// log B(a, b).
Tensor log_beta(const Tensor& a, const Tensor& b) { return lgamma(a) + lgamma(b) - lgamma(a + b); }

}  // namespace

Normal::Normal(const Tensor& loc_, const Tensor& scale_) {
  const Shape shape = batch_of("Normal", loc_, scale_);
  check_range("Normal", "loc", "a number", loc_ == loc_);
  check_positive("Normal", "scale", scale_);
  loc = expand(loc_, shape);
  scale = expand(scale_, shape);
}

Tensor Normal::sample(const Sizes& shape, Generator& generator) const {
  const NoGrad off_the_tape;
  return rsample(shape, generator);
}

Tensor Normal::rsample(const Sizes& shape, Generator& generator) const {
  return loc + scale * randn(drawn(shape, loc), like(loc), generator);
}

Tensor Normal::log_prob(const Tensor& value) const {
  return -square((value - loc) / scale) / 2 - log(scale) - std::log(2 * std::numbers::pi) / 2;
}

Tensor Normal::entropy() const { return log(scale) + (std::log(2 * std::numbers::pi) + 1) / 2; }

Tensor Normal::variance() const { return square(scale); }

Categorical::Categorical(const ProbabilityOptions& options) {
  const Tensor& x = given("Categorical", options);
  check<ShapeError>(x.rank() >= 1 && x.size(-1) >= 1, "Categorical: needs probabilities [..., K], got {}", x);
  if (options.logits.defined()) {
    const Tensor most = max(x, -1);
    check_range("Categorical", "logits", "below infinity, and finite for one of each row",
                abs(most) < infinity);
    logits = log_softmax(x, -1);
    probs = softmax(x, -1);
    return;
  }
  const Tensor total = sum(x, {-1}, true);
  check_range("Categorical", "probs", "at least 0 and finite, with a sum above 0",
              x >= 0 && total > 0 && total < infinity);
  probs = x / total;
  logits = log(inside(probs));
}

Tensor Categorical::sample(const Sizes& shape, Generator& generator) const {
  const NoGrad off_the_tape;
  const Shape wanted = drawn(shape, select(probs, -1, 0));
  int64_t count = 1;
  for (const int64_t size : shape) count = checked_multiply(count, size, "Categorical");
  if (count == 0 || probs.numel() == 0) return zeros(wanted, {.dtype = int64, .device = probs.device()});
  const Tensor rows = reshape(probs, {-1, probs.size(-1)});
  return reshape(transpose(multinomial(rows, count, {.replacement = true}, generator), 0, 1), wanted);
}

Tensor Categorical::log_prob(const Tensor& value) const {
  check<DTypeError>(value.dtype() == int64, "Categorical: the value must be int64, got {}", value);
  Shape shape = broadcast(value.shape(), select(logits, -1, 0).shape(), "Categorical");
  const Tensor index = unsqueeze(expand(value, shape), -1);
  shape.push_back(logits.size(-1));
  return squeeze(gather(expand(logits, shape), -1, index), {-1});
}

Tensor Categorical::entropy() const {
  // A logarithm of 0 counts as a finite one, so that its product with 0, and that of their gradients, is 0.
  return -sum(probs * nan_to_num(logits), {-1});
}

Bernoulli::Bernoulli(const ProbabilityOptions& options) {
  const Tensor& x = given("Bernoulli", options);
  if (options.logits.defined()) {
    check_range("Bernoulli", "logits", "finite", abs(x) < infinity);
    logits = x;
    probs = sigmoid(x);
  } else {
    check_range("Bernoulli", "probs", "in [0, 1]", x >= 0 && x <= 1);
    probs = x;
    logits = logit(inside(x));
  }
}

Tensor Bernoulli::sample(const Sizes& shape, Generator& generator) const {
  const NoGrad off_the_tape;
  return (rand(drawn(shape, probs), like(probs), generator) < probs).to(probs.dtype());
}

Tensor Bernoulli::log_prob(const Tensor& value) const {
  check_range("Bernoulli", "the value", "0 or 1", value == 0 || value == 1);
  return log_sigmoid(where(value == 1, logits, -logits));
}

Tensor Bernoulli::entropy() const { return -log_sigmoid(-logits) - probs * logits; }

Tensor Bernoulli::variance() const { return probs * (1 - probs); }

Beta::Beta(const Tensor& a, const Tensor& b) {
  const Shape shape = batch_of("Beta", a, b);
  check_positive("Beta", "concentration1", a);
  check_positive("Beta", "concentration0", b);
  concentration1 = expand(a, shape);
  concentration0 = expand(b, shape);
}

Tensor Beta::sample(const Sizes& shape, Generator& generator) const {
  const NoGrad off_the_tape;
  const Shape wanted = drawn(shape, concentration1);
  const Tensor a = log_gamma_draws(expand(concentration1, wanted), generator);
  const Tensor b = log_gamma_draws(expand(concentration0, wanted), generator);
  const Tensor x = sigmoid(a - b);
  return where(x < 0.5, maximum(x, std::numeric_limits<float>::min()), inside(x));  // not 0 or 1 by rounding
}

Tensor Beta::log_prob(const Tensor& value) const {
  check_range("Beta", "the value", "in [0, 1]", value >= 0 && value <= 1);
  return xlogy(concentration1 - 1, value) + xlogy(concentration0 - 1, 1 - value) -
         log_beta(concentration1, concentration0);
}

Tensor Beta::entropy() const {
  const Tensor total = concentration1 + concentration0;
  return log_beta(concentration1, concentration0) - (concentration1 - 1) * digamma(concentration1) -
         (concentration0 - 1) * digamma(concentration0) + (total - 2) * digamma(total);
}

Tensor Beta::mean() const { return concentration1 / (concentration1 + concentration0); }

Tensor Beta::variance() const { return mean() * (1 - mean()) / (concentration1 + concentration0 + 1); }

Tensor kl_divergence(const Normal& p, const Normal& q) {
  const Tensor ratio = square(p.scale / q.scale);
  return (ratio + square((p.loc - q.loc) / q.scale) - 1 - log(ratio)) / 2;
}

Tensor kl_divergence(const Categorical& p, const Categorical& q) {
  const Tensor each = p.probs * (nan_to_num(p.logits) - nan_to_num(q.logits));
  return sum(where(p.probs > 0 && q.probs == 0, infinity, each), {-1});
}

Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q) {
  return p.probs * (log_sigmoid(p.logits) - log_sigmoid(q.logits)) +
         (1 - p.probs) * (log_sigmoid(-p.logits) - log_sigmoid(-q.logits));
}

Tensor kl_divergence(const Beta& p, const Beta& q) {
  const Tensor a = p.concentration1 - q.concentration1, b = p.concentration0 - q.concentration0;
  return log_beta(q.concentration1, q.concentration0) - log_beta(p.concentration1, p.concentration0) +
         a * digamma(p.concentration1) + b * digamma(p.concentration0) -
         (a + b) * digamma(p.concentration1 + p.concentration0);
}

Tensor detail::sum_last(const Tensor& x) {
  check<ValueError>(x.rank() > 0, "Independent: the batch must have a dimension, that of the vectors");
  return sum(x, {-1});
}

}  // namespace pleat::distributions
