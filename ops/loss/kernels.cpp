#include "pleat/ops/loss/kernels.h"

#include <algorithm>
#include <array>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/map_arrays.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/loss/class_problem.h"
#include "pleat/ops/loss/kernels_cuda.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::ops {
namespace {

using Classes = ClassProblem::Classes;

/// Logits worth waking another thread for.
constexpr int64_t grain_elements = 8192;
/// Targets, of each of which a single logit is looked at.
constexpr int64_t grain_targets = 4096;
constexpr int64_t block_targets = 128;

int64_t grain(const ClassProblem& problem) {
  return std::max<int64_t>(1, grain_elements / (problem.classes() + 1));
}

template <class F>
decltype(auto) dispatch_problem(const ClassProblem& problem, F&& f) {
  return dispatch_floating("cross_entropy", problem.logits().dtype(), std::forward<F>(f));
}

/// The losses' gradient, one for each target: on the CPU in the logits' type.
Tensor plain_gradient(const char* op, const Tensor& dlosses, const ClassProblem& problem, bool mean = false) {
  check<ShapeError>(dlosses.shape() == (mean ? Shape{} : problem.target_shape()),
                    "{}: the gradient has shape {}, the losses {}", op, dlosses.shape(),
                    problem.target_shape());
  const bool is_read_as_it_is = problem.logits().device().is_cuda();
  return to_format(is_read_as_it_is ? dlosses : cast(dlosses, problem.logits().dtype()),
                   MemoryFormat::contiguous);
}

/// Takes the shares of target i times `scale` off the elements that belong to it.
template <class T>
void subtract_shares(const ClassView& view, T* x, int64_t i, double scale) {
  const int64_t own = view.class_of(i);
  if (own < 0) return;
  const int64_t inner = view.inner.divisor();
  T* const first = x + view.first_logit(i);
  first[own * inner] -= static_cast<T>(scale * view.own_share() * view.weight(own));
  const double common = scale * view.common_share();
  if (common == 0) return;
  for (int64_t c = 0; c < view.classes; ++c) first[c * inner] -= static_cast<T>(common * view.weight(c));
}

/// One number for each target, of the type computed in.
Tensor for_targets(const ClassProblem& problem) {
  return empty(problem.target_shape(),
               {.dtype = compute_dtype(problem.logits().dtype()), .device = problem.logits().device()});
}
/// Losses as kernels on a GPU write them: of the logits' type.
[[maybe_unused]] Tensor losses_of(const ClassProblem& problem, const Shape& shape) {
  return empty(shape, {.dtype = problem.logits().dtype(), .device = problem.logits().device()});
}

/// Sums and their quotient in separate passes: on the CPU, and where there is nothing to add up.
CrossEntropy with_mean(const CrossEntropy& each, const Tensor& logits, const Tensor& target,
                       const Tensor& weight, const ClassLossOptions& options) {
  const Tensor weights = reduce_sum(target_weights(logits, target, weight, options.ignore_index));
  return {divide(reduce_sum(each.losses), cast(weights, each.losses.dtype())), each.logsumexp,
          cast(weights, float64)};
}

bool is_on_gpu(const ClassProblem& problem) { return problem.logits().device().is_cuda(); }

}  // namespace

CrossEntropy cross_entropy_forward(const Tensor& logits, const Tensor& target, const Tensor& weight,
                                   ClassLossOptions options) {
  const ClassProblem problem("cross_entropy", logits, target, weight, options, Classes::check);
  const ClassView& view = problem.view();
  if (options.mean && (!is_on_gpu(problem) || problem.targets() == 0)) {
    ClassLossOptions each = options;
    each.mean = false;
    return with_mean(cross_entropy_forward(logits, target, weight, each), logits, target, weight, options);
  }
  if constexpr (with_cuda)
    if (is_on_gpu(problem)) {
      const CrossEntropy y{
          losses_of(problem, options.mean ? Shape{} : problem.target_shape()), for_targets(problem),
          options.mean ? empty({}, {.dtype = float64, .device = logits.device()}) : Tensor()};
      cross_entropy_cuda(y.losses, y.logsumexp, problem.logits(), view, y.weight_sum);
      return y;
    }
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const Tensor normaliser =
        to_format(reduce_logsumexp(problem.logits(), problem.class_dim(), false), MemoryFormat::contiguous);
    const Tensor losses = for_targets(problem);
    const T* const x = problem.logits().data<T>();
    const T* const log_sum = normaliser.data<T>();
    // Where classes count alike, what all of them add to the loss needs the sum of their logits alone.
    const bool alike = view.common_share() > 0 && view.weights == nullptr;
    const Tensor logit_sums = alike ? to_format(reduce_sum_float64(problem.logits(), {problem.class_dim()}),
                                                MemoryFormat::contiguous)
                                    : Tensor();
    const double* const logit_sum = alike ? logit_sums.data<double>() : nullptr;
    T* const y = losses.data<T>();
    parallel_for(0, problem.targets(), grain(problem), [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const int64_t own = view.class_of(i);
        const T* const first = x + view.first_logit(i);
        const auto from = static_cast<double>(log_sum[i]);
        const auto surprise = [&](int64_t c) {
          return view.weight(c) * (from - static_cast<double>(first[c * problem.inner()]));
        };
        double loss = own < 0 ? 0 : view.own_share() * surprise(own);
        if (own >= 0 && view.common_share() > 0) {
          // Four sums, which do not wait for each other.
          std::array<double, 4> sums{alike ? static_cast<double>(view.classes) * from - logit_sum[i] : 0};
          for (int64_t c = 0; c < problem.classes() && !alike; ++c)
            sums[static_cast<std::size_t>(c % 4)] += surprise(c);
          loss += view.common_share() * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
        }
        y[i] = static_cast<T>(loss);
      }
    });
    return CrossEntropy{cast(losses, logits.dtype()), normaliser, {}};
  });
}

Tensor cross_entropy_backward(const Tensor& dlosses, const Tensor& logits, const Tensor& logsumexp,
                              const Tensor& target, const Tensor& weight, ClassLossOptions options,
                              const Tensor& weight_sum) {
  const ClassProblem problem("cross_entropy_backward", logits, target, weight, options);
  check<ShapeError>(logsumexp.shape() == problem.target_shape(),
                    "cross_entropy_backward: logsumexp has shape {}, the targets {}", logsumexp.shape(),
                    problem.target_shape());
  check<ShapeError>(!options.mean || (weight_sum.defined() && weight_sum.shape().empty()),
                    "cross_entropy_backward: a mean needs its weight_sum");
  if (options.mean && !is_on_gpu(problem)) {
    ClassLossOptions each = options;
    each.mean = false;
    const Tensor share = divide(dlosses, cast(weight_sum, dlosses.dtype()));
    return cross_entropy_backward(expand(share, problem.target_shape()), logits, logsumexp, target, weight,
                                  each);
  }
  const ClassView& view = problem.view();
  const Tensor gradient = plain_gradient("cross_entropy_backward", dlosses, problem, options.mean);
  const Tensor normaliser =
      to_format(cast(logsumexp, compute_dtype(problem.logits().dtype())), MemoryFormat::contiguous);
  const Tensor dx = empty_like(problem.logits());
  if constexpr (with_cuda)
    if (is_on_gpu(problem)) {
      class_gradient_cuda("cross_entropy_backward", dx,
                          {.factors = gradient,
                           .weight_sum = options.mean ? weight_sum : Tensor(),
                           .logits = problem.logits(),
                           .logsumexp = normaliser},
                          view);
      return dx;
    }
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const T* const x = problem.logits().data<T>();
    const T* const g = gradient.data<T>();
    const T* const log_sum = normaliser.data<T>();
    T* const to = dx.data<T>();
    const int64_t classes = problem.classes();
    const int64_t inner = problem.inner();
    /// The gradient of a target's loss by its logit c is share_sum p[c] - share[c].
    const auto scale = [&](int64_t i) {
      const int64_t own = view.class_of(i);
      return own < 0 ? T(0) : static_cast<T>(static_cast<double>(g[i]) * view.share_sum(own));
    };
    const int64_t width = std::min(inner, block_targets);
    const int64_t blocks = ceil_div(inner, width);
    const int64_t items = problem.targets() / inner * blocks;
    parallel_for(0, items, std::max<int64_t>(1, grain(problem) / width), [&](int64_t item, int64_t end) {
      std::array<T, block_targets> scales;
      for (; item < end; ++item) {
        const int64_t column = item % blocks * width;
        const int64_t n = std::min(width, inner - column);
        const int64_t i = item / blocks * inner + column;
        const int64_t at = view.first_logit(i);
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
        for (int64_t k = 0; k < n; ++k) subtract_shares(view, to, i + k, static_cast<double>(g[i + k]));
      }
    });
    return cast(dx, logits.dtype());
  });
}

Tensor nll_forward(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight,
                   int64_t ignore_index) {
  const ClassProblem problem("nll_loss", log_probabilities, target, weight, {.ignore_index = ignore_index},
                             Classes::check);
  const ClassView& view = problem.view();
  if constexpr (with_cuda)
    if (is_on_gpu(problem)) {
      const Tensor losses = losses_of(problem, problem.target_shape());
      nll_cuda(losses, problem.logits(), view);
      return losses;
    }
  const Tensor losses = for_targets(problem);
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const T* const x = problem.logits().data<T>();
    T* const y = losses.data<T>();
    parallel_for(0, problem.targets(), grain_targets, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const int64_t own = view.class_of(i);
        y[i] = own < 0 ? T(0)
                       : static_cast<T>(-view.weight(own)) * x[view.first_logit(i) + own * problem.inner()];
      }
    });
    return cast(losses, log_probabilities.dtype());
  });
}

Tensor nll_backward(const Tensor& dlosses, const Tensor& log_probabilities, const Tensor& target,
                    const Tensor& weight, int64_t ignore_index) {
  const ClassProblem problem("nll_backward", log_probabilities, target, weight,
                             {.ignore_index = ignore_index});
  const Tensor gradient = plain_gradient("nll_backward", dlosses, problem);
  if constexpr (with_cuda)
    if (is_on_gpu(problem)) {
      const Tensor dx = empty_like(problem.logits());
      class_gradient_cuda("nll_backward", dx, {.factors = gradient}, problem.view());
      return dx;
    }
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const Tensor dx = zeros_like(problem.logits());
    const T* const g = gradient.data<T>();
    T* const to = dx.data<T>();
    parallel_for(0, problem.targets(), grain_targets, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) subtract_shares(problem.view(), to, i, static_cast<double>(g[i]));
    });
    return cast(dx, log_probabilities.dtype());
  });
}

Tensor class_shares(const Tensor& logits, const Tensor& target, const Tensor& weight,
                    ClassLossOptions options) {
  const RecordOp range("class_shares", logits, target, weight);
  const ClassProblem problem("class_shares", logits, target, weight, options);
  if constexpr (with_cuda)
    if (is_on_gpu(problem)) {
      const Tensor shares = empty_like(problem.logits());
      class_gradient_cuda("class_shares", shares, {.common_factor = -1}, problem.view());
      return shares;
    }
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    const Tensor shares = zeros_like(problem.logits());
    T* const to = shares.data<T>();
    parallel_for(0, problem.targets(), grain(problem), [&](int64_t i, int64_t end) {
      for (; i < end; ++i) subtract_shares(problem.view(), to, i, -1.0);
    });
    return cast(shares, logits.dtype());
  });
}

Tensor target_weights(const Tensor& logits, const Tensor& target, const Tensor& weight,
                      int64_t ignore_index) {
  const RecordOp range("target_weights", logits, target, weight);
  const ClassProblem problem("target_weights", logits, target, weight, {.ignore_index = ignore_index});
  const ClassView& view = problem.view();
  const Tensor weights = for_targets(problem);
  if constexpr (with_cuda)
    if (is_on_gpu(problem)) {
      target_weights_cuda(weights, view);
      return weights;
    }
  return dispatch_problem(problem, [&]<class T>(Type<T>) {
    T* const to = weights.data<T>();
    parallel_for(0, problem.targets(), grain_targets, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const int64_t own = view.class_of(i);
        to[i] = own < 0 ? T(0) : static_cast<T>(view.weight(own));
      }
    });
    return weights;
  });
}

}  // namespace pleat::ops
