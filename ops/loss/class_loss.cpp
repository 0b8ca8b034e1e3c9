#include "pleat/ops/loss/class_loss.h"

#include <algorithm>
#include <array>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/core/parallel.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/loss/class_problem.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::ops {
namespace {

/// Logits worth waking another thread for.
constexpr int64_t grain_elements = 8192;
constexpr int64_t block_targets = 128;

int64_t grain(const ClassProblem& problem) {
  return std::max<int64_t>(1, grain_elements / (problem.classes() + 1));
}

template <class F>
decltype(auto) dispatch_problem(const ClassProblem& problem, F&& f) {
  return dispatch_floating("cross_entropy", problem.logits().dtype(), std::forward<F>(f));
}

/// The losses' gradient as plain T, one for each target.
template <class T>
Tensor plain_gradient(const char* op, const Tensor& dlosses, const ClassProblem& problem) {
  check<ShapeError>(dlosses.shape() == problem.target_shape(), "{}: the gradient has shape {}, the losses {}",
                    op, dlosses.shape(), problem.target_shape());
  return to_format(cast(dlosses, dtype_of<T>()), MemoryFormat::contiguous);
}

/// Takes the shares of target i times `scale` off the elements that belong to it.
template <class T>
void subtract_shares(const ClassProblem& problem, T* x, int64_t i, double scale) {
  const int64_t own = problem.class_of(i);
  if (own < 0) return;
  T* const first = x + problem.first_logit(i);
  first[own * problem.inner()] -= static_cast<T>(scale * problem.own_share() * problem.weight(own));
  const double common = scale * problem.common_share();
  if (common == 0) return;
  for (int64_t c = 0; c < problem.classes(); ++c)
    first[c * problem.inner()] -= static_cast<T>(common * problem.weight(c));
}

}  // namespace

CrossEntropy cross_entropy_forward(const Tensor& logits, const Tensor& target, const Tensor& weight,
                                   ClassLossOptions options) {
  const ClassProblem problem("cross_entropy", logits, target, weight, options);
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const Tensor normaliser =
        to_format(logsumexp(problem.logits(), problem.class_dim()), MemoryFormat::contiguous);
    const Tensor losses = empty(problem.target_shape(), {.dtype = dtype_of<T>()});
    const T* const x = problem.logits().data<T>();
    const T* const log_sum = normaliser.data<T>();
    T* const y = losses.data<T>();
    parallel_for(0, problem.targets(), grain(problem), [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const int64_t own = problem.class_of(i);
        const T* const first = x + problem.first_logit(i);
        const auto surprise = [&](int64_t c) {
          return problem.weight(c) *
                 (static_cast<double>(log_sum[i]) - static_cast<double>(first[c * problem.inner()]));
        };
        double loss = own < 0 ? 0 : problem.own_share() * surprise(own);
        if (own >= 0 && problem.common_share() > 0)
          for (int64_t c = 0; c < problem.classes(); ++c) loss += problem.common_share() * surprise(c);
        y[i] = static_cast<T>(loss);
      }
    });
    return CrossEntropy{cast(losses, logits.dtype()), normaliser};
  });
}

Tensor cross_entropy_backward(const Tensor& dlosses, const Tensor& logits, const Tensor& logsumexp,
                              const Tensor& target, const Tensor& weight, ClassLossOptions options) {
  const ClassProblem problem("cross_entropy_backward", logits, target, weight, options);
  check<ShapeError>(logsumexp.shape() == problem.target_shape(),
                    "cross_entropy_backward: logsumexp has shape {}, the targets {}", logsumexp.shape(),
                    problem.target_shape());
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const Tensor gradient = plain_gradient<T>("cross_entropy_backward", dlosses, problem);
    const Tensor normaliser = to_format(cast(logsumexp, dtype_of<T>()), MemoryFormat::contiguous);
    const Tensor dx = empty_like(problem.logits());
    const T* const x = problem.logits().data<T>();
    const T* const g = gradient.data<T>();
    const T* const log_sum = normaliser.data<T>();
    T* const to = dx.data<T>();
    const int64_t classes = problem.classes();
    const int64_t inner = problem.inner();
    /// The gradient of a target's loss by its logit c is share_sum p[c] - share[c].
    const auto scale = [&](int64_t i) {
      const int64_t own = problem.class_of(i);
      if (own < 0) return T(0);
      const double share_sum =
          problem.own_share() * problem.weight(own) + problem.common_share() * problem.weight_sum();
      return static_cast<T>(static_cast<double>(g[i]) * share_sum);
    };
    const int64_t width = std::min(inner, block_targets);
    const int64_t blocks = (inner + width - 1) / width;
    const int64_t items = problem.targets() / inner * blocks;
    parallel_for(0, items, std::max<int64_t>(1, grain(problem) / width), [&](int64_t item, int64_t end) {
      std::array<T, block_targets> scales;
      for (; item < end; ++item) {
        const int64_t column = item % blocks * width;
        const int64_t n = std::min(width, inner - column);
        const int64_t i = item / blocks * inner + column;
        const int64_t at = problem.first_logit(i);
        if (inner == 1) {
          const T factor = scale(i);
          const T from = log_sum[i];
          // 0 times an infinite exponential is no 0.
          if (factor == 0)
            std::fill_n(to + at, classes, T(0));
          else
            map(to + at, x + at, classes, [=](T value) { return factor * vmath::exp(value - from); });
        } else {
          for (int64_t k = 0; k < n; ++k) scales[static_cast<std::size_t>(k)] = scale(i + k);
          for (int64_t c = 0; c < classes; ++c)
            map(to + at + c * inner, x + at + c * inner, log_sum + i, scales.data(), n,
                [](T value, T from, T factor) {
                  const T product = factor * vmath::exp(value - from);
                  return factor == 0 ? T(0) : product;
                });
        }
        for (int64_t k = 0; k < n; ++k) subtract_shares(problem, to, i + k, static_cast<double>(g[i + k]));
      }
    });
    return cast(dx, logits.dtype());
  });
}

Tensor nll_forward(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight,
                   int64_t ignore_index) {
  const ClassProblem problem("nll_loss", log_probabilities, target, weight, {.ignore_index = ignore_index});
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const Tensor losses = empty(problem.target_shape(), {.dtype = dtype_of<T>()});
    const T* const x = problem.logits().data<T>();
    T* const y = losses.data<T>();
    for (int64_t i = 0; i < problem.targets(); ++i) {
      const int64_t own = problem.class_of(i);
      y[i] = own < 0
                 ? T(0)
                 : static_cast<T>(-problem.weight(own)) * x[problem.first_logit(i) + own * problem.inner()];
    }
    return cast(losses, log_probabilities.dtype());
  });
}

Tensor nll_backward(const Tensor& dlosses, const Tensor& log_probabilities, const Tensor& target,
                    const Tensor& weight, int64_t ignore_index) {
  const ClassProblem problem("nll_backward", log_probabilities, target, weight,
                             {.ignore_index = ignore_index});
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const Tensor gradient = plain_gradient<T>("nll_backward", dlosses, problem);
    const Tensor dx = zeros_like(problem.logits());
    const T* const g = gradient.data<T>();
    T* const to = dx.data<T>();
    for (int64_t i = 0; i < problem.targets(); ++i)
      subtract_shares(problem, to, i, static_cast<double>(g[i]));
    return cast(dx, log_probabilities.dtype());
  });
}

Tensor class_shares(const Tensor& logits, const Tensor& target, const Tensor& weight,
                    ClassLossOptions options) {
  const ClassProblem problem("class_shares", logits, target, weight, options);
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const Tensor shares = zeros_like(problem.logits());
    T* const to = shares.data<T>();
    for (int64_t i = 0; i < problem.targets(); ++i) subtract_shares(problem, to, i, -1.0);
    return cast(shares, logits.dtype());
  });
}

Tensor target_weights(const Tensor& logits, const Tensor& target, const Tensor& weight,
                      int64_t ignore_index) {
  const ClassProblem problem("target_weights", logits, target, weight, {.ignore_index = ignore_index});
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const Tensor weights = empty(problem.target_shape(), {.dtype = dtype_of<T>()});
    T* const to = weights.data<T>();
    for (int64_t i = 0; i < problem.targets(); ++i) {
      const int64_t own = problem.class_of(i);
      to[i] = own < 0 ? T(0) : static_cast<T>(problem.weight(own));
    }
    return weights;
  });
}

}  // namespace pleat::ops
