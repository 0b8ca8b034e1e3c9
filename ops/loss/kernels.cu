#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "pleat/core/kernels/block.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/loss/kernels_cuda.h"
#include "pleat/ops/reduce/reduce_kernel.h"
#include "pleat/ops/reduce/team_lines.h"

namespace pleat::ops {
namespace {

using reduction::AsIs;

/// The smallest number of a target whose class is outside.
struct FirstOutside {
  using In = int64_t;
  using State = int64_t;
  using Running = State;
  int64_t classes;
  int64_t ignore_index;

  __device__ State empty() const { return std::numeric_limits<int64_t>::max(); }
  __device__ void merge(State& into, const State& other) const { into = other < into ? other : into; }
  __device__ Running begin() const { return empty(); }
  template <std::size_t n>
  __device__ void add(Running& first, const std::array<int64_t, n>& x, int64_t index, int64_t step) const {
    PLEAT_UNROLL
    for (std::size_t i = 0; i < n; ++i) {
      const bool outside = x[i] != ignore_index && (x[i] < 0 || x[i] >= classes);
      const int64_t number = index + static_cast<int64_t>(i) * step;
      if (outside && number < first) first = number;
    }
  }
  __device__ State state(const Running& first) const { return first; }
};

/// Of some targets: what a mean loss is made of.
struct LossSums {
  double losses = 0, weights = 0;

  __device__ void merge(const LossSums& other) {
    losses += other.losses;
    weights += other.weights;
  }
};

/// A team of threads takes one target's logits: their largest, the sum of exponentials, and with label
/// smoothing the sum of all classes' shares of the loss. Of a mean loss the last block adds up what all
/// found.
template <class T>
struct CrossEntropyLines {
  TeamLines lines;
  ClassView view;
  const T* x;
  T* losses;
  T* logsumexp;
  LossSums* sums = nullptr;  ///< of each block; null: no mean
  unsigned* counter = nullptr;
  double* weight_sum = nullptr;

  __device__ void operator()(int64_t b, const Block& block) const {
    T largest;
    double sum;
    line_exponentials(lines, b, block, largest, sum, [this](int64_t i) { return x[i]; });
    const T log_sum = static_cast<T>(static_cast<double>(largest) + std::log(sum));
    double shares = 0;
    const double common = view.common_share();
    if (common > 0) {
      lines.for_own(b, block, [&](int64_t i, int64_t c) { shares += common * surprise(log_sum, i, c); });
      block.combine(shares, lines.teams, AddNumber{});
    }
    LossSums found;
    const int64_t i = lines.line_of(b, block);
    if (lines.teams.lane_of(block.thread()) == 0 && i < lines.count) {
      logsumexp[i] = log_sum;
      const int64_t own = view.class_of(i);
      const int64_t at = lines.first_of(i) + own * lines.inner.divisor();
      const double loss = own < 0 ? 0 : view.own_share() * surprise(log_sum, at, own) + shares;
      if (sums == nullptr)
        losses[i] = static_cast<T>(loss);
      else
        found = {loss, own < 0 ? 0 : view.weight(own)};
    }
    if (sums != nullptr) add_up(b, block, found);
  }

 private:
  __device__ void add_up(int64_t b, const Block& block, LossSums& found) const {
    const Teams all{log_block_threads, true};
    const auto merge = [](LossSums& into, const LossSums& other) { into.merge(other); };
    block.combine(found, all, merge);
    if (block.thread() == 0) sums[b] = found;
    const int64_t blocks = lines.blocks();
    if (!block.last_of(counter, blocks)) return;
    found = {};
    for (int64_t i = block.thread(); i < blocks; i += block_threads) found.merge(sums[i]);
    block.combine(found, all, merge);
    if (block.thread() != 0) return;
    *losses = static_cast<T>(found.losses / found.weights);
    *weight_sum = found.weights;
  }

  __device__ double surprise(T log_sum, int64_t i, int64_t c) const {
    return view.weight(c) * (static_cast<double>(log_sum) - static_cast<double>(x[i]));
  }
};

/// One logit's gradient.
template <class T>
struct ClassGradients {
  ClassView view;
  FastDivider classes;
  const T* factors;
  const double* weight_sum;  ///< or null; else there is one factor
  double common_factor;
  const T* x;
  const T* logsumexp;
  T* dx;

  __device__ void operator()(int64_t at) const {
    int64_t within = at;
    int64_t c = view.inner.divide(within);
    const int64_t i = classes.divide(c) * view.inner.divisor() + within;
    dx[at] = gradient(at, i, c);
  }

 private:
  __device__ T gradient(int64_t at, int64_t i, int64_t c) const {
    const int64_t own = view.class_of(i);
    if (own < 0) return 0;
    const double factor = factors == nullptr      ? common_factor
                          : weight_sum == nullptr ? static_cast<double>(factors[i])
                                                  : static_cast<double>(*factors) / *weight_sum;
    T d = 0;
    if (x != nullptr) {
      const T scale = static_cast<T>(factor * view.share_sum(own));
      // 0 times an infinite exponential is no 0.
      if (scale != 0) d = scale * vmath::exp(x[at] - logsumexp[i]);
    }
    if (c == own) d -= static_cast<T>(factor * view.own_share() * view.weight(own));
    const double common = factor * view.common_share();
    return common == 0 ? d : d - static_cast<T>(common * view.weight(c));
  }
};

template <class T>
struct NegativeLogLikelihoods {
  ClassView view;
  const T* x;
  T* losses;

  __device__ void operator()(int64_t i) const {
    const int64_t own = view.class_of(i);
    losses[i] = own < 0
                    ? T(0)
                    : static_cast<T>(-view.weight(own)) * x[view.first_logit(i) + own * view.inner.divisor()];
  }
};

template <class T>
struct TargetWeights {
  ClassView view;
  T* weights;

  __device__ void operator()(int64_t i) const {
    const int64_t own = view.class_of(i);
    weights[i] = own < 0 ? T(0) : static_cast<T>(view.weight(own));
  }
};

template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

}  // namespace

int64_t first_outside_cuda(const char* op, const Tensor& indices, const ClassView& view) {
  const reduction::Plan plan = reduction::make_plan(op, indices, {}, false);
  const Tensor first = reduction::empty_result(plan, int64);
  reduction::reduce_kernel(op, FirstOutside{view.classes, view.ignore_index}, AsIs<int64_t>{}, plan, indices,
                           {first, {}});
  return std::min(first.item<int64_t>(), view.targets);
}

void cross_entropy_cuda(const Tensor& losses, const Tensor& logsumexp, const Tensor& logits,
                        const ClassView& view, const Tensor& weight_sum) {
  Lines lines;
  lines.inner = view.inner.divisor();
  lines.outer = view.targets / lines.inner;
  lines.size = view.classes;
  const TeamLines teams(lines);
  Floating::dispatch(logits.dtype(), [&]<class T>(Type<T>) {
    CrossEntropyLines<T> all{teams, view, logits.data<T>(), losses.data<T>(), logsumexp.data<T>()};
    if (!weight_sum.defined()) return launch_blocks("cross_entropy", logits.device(), teams.blocks(), all);
    const Tensor sums = empty({2 * teams.blocks()}, {.dtype = float64, .device = logits.device()});
    all.sums = reinterpret_cast<LossSums*>(sums.data<double>());
    all.counter = block_counters(logits.device());
    all.weight_sum = weight_sum.data<double>();
    launch_blocks("cross_entropy", logits.device(), teams.blocks(), all);
  });
}

void class_gradient_cuda(const char* op, const Tensor& dx, const ClassGradient& gradient,
                         const ClassView& view) {
  Floating::dispatch(dx.dtype(), [&]<class T>(Type<T>) {
    launch_indices(op, dx.device(), dx.numel(),
                   ClassGradients<T>{view, FastDivider(view.classes), data_or_null<T>(gradient.factors),
                                     data_or_null<double>(gradient.weight_sum), gradient.common_factor,
                                     data_or_null<T>(gradient.logits), data_or_null<T>(gradient.logsumexp),
                                     dx.data<T>()});
  });
}

void nll_cuda(const Tensor& losses, const Tensor& x, const ClassView& view) {
  Floating::dispatch(x.dtype(), [&]<class T>(Type<T>) {
    launch_indices("nll_loss", x.device(), view.targets,
                   NegativeLogLikelihoods<T>{view, x.data<T>(), losses.data<T>()});
  });
}

void target_weights_cuda(const Tensor& weights, const ClassView& view) {
  Floating::dispatch(weights.dtype(), [&]<class T>(Type<T>) {
    launch_indices("target_weights", weights.device(), view.targets,
                   TargetWeights<T>{view, weights.data<T>()});
  });
}

}  // namespace pleat::ops
