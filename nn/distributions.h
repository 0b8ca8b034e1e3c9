#pragma once

#include <utility>

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/tensor.h"

/// Probability distributions; names and formulas are those of torch.distributions:
///
///   distributions::Categorical policy{{.logits = net(state)}};
///   const Tensor action = policy.sample();
///   Tensor loss = -mean(policy.log_prob(action) * advantage);
///
/// Parameters, float32 or float64, broadcast to the batch's shape; each of their elements is a distribution
/// of its own. sample(shape) draws [shape..., batch...], off the tape; rsample is differentiable in the
/// parameters. log_prob(value) takes what broadcasts with the batch. All but draws is differentiable.
/// Constructors throw DTypeError, DeviceError, ShapeError where parameters do not fit each other, ValueError
/// where one is outside of its range; log_prob throws ValueError for a value outside of the support. For that
/// the host waits for a GPU.

namespace pleat::distributions {

/// exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi)); scale > 0.
struct Normal {
  Normal(const Tensor& loc, const Tensor& scale);
  Tensor sample(const Sizes& shape = {}, Generator& generator = default_generator()) const;
  Tensor rsample(const Sizes& shape = {}, Generator& generator = default_generator()) const;
  Tensor log_prob(const Tensor& value) const;
  Tensor entropy() const;
  Tensor mean() const { return loc; }
  Tensor variance() const;

  Tensor loc, scale;  ///< of the batch's shape
};

/// One of the two: probabilities, or their logarithms but for what is added to all (logits).
struct ProbabilityOptions {
  Tensor probs = {};
  Tensor logits = {};
};

/// 0 ... K - 1, int64, with the probabilities probs [..., K], which are divided by their sum; the batch is
/// [...]. Where probs are given, the logarithm of one below the type's epsilon is that of epsilon. There is
/// no mean.
struct Categorical {
  explicit Categorical(const ProbabilityOptions& options);
  Tensor sample(const Sizes& shape = {}, Generator& generator = default_generator()) const;
  /// Throws IndexError for a value outside of [0, K).
  Tensor log_prob(const Tensor& value) const;
  Tensor entropy() const;

  Tensor probs, logits;  ///< both normalised
};

/// 1 with the probability probs, else 0; logits are log(probs / (1 - probs)).
struct Bernoulli {
  explicit Bernoulli(const ProbabilityOptions& options);
  Tensor sample(const Sizes& shape = {}, Generator& generator = default_generator()) const;
  Tensor log_prob(const Tensor& value) const;
  Tensor entropy() const;
  Tensor mean() const { return probs; }
  Tensor variance() const;

  Tensor probs, logits;
};

/// x^(a - 1) (1 - x)^(b - 1) / B(a, b) on [0, 1], for concentration1 = a > 0 and concentration0 = b > 0.
/// Drawn by two of the gamma distribution: Marsaglia and Tsang, "A simple method for generating gamma
/// variables" (2000).
struct Beta {
  Beta(const Tensor& concentration1, const Tensor& concentration0);
  Tensor sample(const Sizes& shape = {}, Generator& generator = default_generator()) const;
  Tensor log_prob(const Tensor& value) const;
  Tensor entropy() const;
  Tensor mean() const;
  Tensor variance() const;

  Tensor concentration1, concentration0;
};

/// KL(p | q), the mean over p of p.log_prob - q.log_prob; batches broadcast.
Tensor kl_divergence(const Normal& p, const Normal& q);
Tensor kl_divergence(const Categorical& p, const Categorical& q);
Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q);
Tensor kl_divergence(const Beta& p, const Beta& q);

namespace detail {
/// The sum over the last dimension. Throws ValueError where there is none.
Tensor sum_last(const Tensor& x);
}  // namespace detail

/// Vectors of independent elements: the last dimension of a batch as one value. The multivariate normal
/// distribution with a diagonal covariance is
///
///   distributions::Independent normal{distributions::Normal(mu, sigma)};
template <class D>
struct Independent {
  explicit Independent(D base_) : base(std::move(base_)) {}
  Tensor sample(const Sizes& shape = {}, Generator& generator = default_generator()) const {
    return base.sample(shape, generator);
  }
  Tensor rsample(const Sizes& shape = {}, Generator& generator = default_generator()) const {
    return base.rsample(shape, generator);
  }
  Tensor log_prob(const Tensor& value) const { return detail::sum_last(base.log_prob(value)); }
  Tensor entropy() const { return detail::sum_last(base.entropy()); }
  Tensor mean() const { return base.mean(); }
  Tensor variance() const { return base.variance(); }

  D base;
};
template <class D>
Tensor kl_divergence(const Independent<D>& p, const Independent<D>& q) {
  return detail::sum_last(kl_divergence(p.base, q.base));
}

}  // namespace pleat::distributions
