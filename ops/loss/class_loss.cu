#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "pleat/core/create.h"
#include "pleat/core/grid_block.h"
#include "pleat/ops/elementwise/grid_map.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/loss/grid_class_loss.h"
#include "pleat/ops/reduce/fold.h"
#include "pleat/ops/reduce/grid_exponentials.h"
#include "pleat/ops/reduce/grid_lines.h"
#include "pleat/ops/reduce/grid_reduce_instances.h"
#include "pleat/ops/reduce/logsumexp_functors.h"

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

  PLEAT_HOST_DEVICE State empty() const { return std::numeric_limits<int64_t>::max(); }
  PLEAT_HOST_DEVICE void merge(State& into, const State& other) const { into = other < into ? other : into; }
  PLEAT_HOST_DEVICE Running begin() const { return empty(); }
  template <std::size_t n>
  PLEAT_HOST_DEVICE void add(Running& first, const std::array<int64_t, n>& x, int64_t index,
                             int64_t step) const {
    PLEAT_UNROLL
    for (std::size_t i = 0; i < n; ++i) {
      const bool outside = x[i] != ignore_index && (x[i] < 0 || x[i] >= classes);
      const int64_t number = index + static_cast<int64_t>(i) * step;
      if (outside && number < first) first = number;
    }
  }
  PLEAT_HOST_DEVICE State state(const Running& first) const { return first; }
};

/// Of some targets: what a mean loss is made of.
struct LossSums {
  double losses = 0, weights = 0;

  PLEAT_HOST_DEVICE void merge(const LossSums& other) {
    losses += other.losses;
    weights += other.weights;
  }
};

/// A team of threads takes one target's logits: their largest, the sum of exponentials, and with label
/// smoothing the sum of all classes' shares of the loss. Of a mean loss the last block adds up what all
/// found.
template <class T>
struct CrossEntropyLines {
  GridLines lines;
  ClassView view;
  const T* x;
  T* losses;
  T* logsumexp;
  LossSums* sums = nullptr;  ///< of each block; null: no mean
  unsigned* counter = nullptr;
  double* weight_sum = nullptr;

  template <class Block>
  PLEAT_HOST_DEVICE void operator()(int64_t b, Block& block) const {
    typename Block::template Own<T> largest;
    typename Block::template Own<double> sum;
    line_exponentials(lines, b, block, largest, sum, [this](int64_t i) { return x[i]; });
    block.each([&](int thread) {
      largest[thread] = static_cast<T>(static_cast<double>(largest[thread]) + std::log(sum[thread]));
      sum[thread] = 0;
    });

    const double common = view.common_share();
    if (common > 0) {
      block.each([&](int thread) {
        double total = 0;
        lines.for_own(b, thread,
                      [&](int64_t i, int64_t c) { total += common * surprise(largest[thread], i, c); });
        sum[thread] = total;
      });
      block.combine(sum, lines.teams, AddNumber{});
    }
    typename Block::template Own<LossSums> found;
    block.each([&](int thread) {
      found[thread] = LossSums{};
      const int64_t i = lines.line_of(b, thread);
      if (lines.teams.lane_of(thread) != 0 || i >= lines.count) return;
      logsumexp[i] = largest[thread];
      const int64_t own = view.class_of(i);
      const int64_t at = lines.first_of(i) + own * lines.inner.divisor();
      const double loss = own < 0 ? 0 : view.own_share() * surprise(largest[thread], at, own) + sum[thread];
      if (sums == nullptr)
        losses[i] = static_cast<T>(loss);
      else
        found[thread] = {loss, own < 0 ? 0 : view.weight(own)};
    });
    if (sums != nullptr) add_up(b, block, found);
  }

 private:
  template <class Block, class Own>
  PLEAT_HOST_DEVICE void add_up(int64_t b, Block& block, Own& found) const {
    const Teams all{log_block_threads, true};
    const auto merge = [](LossSums& into, const LossSums& other) { into.merge(other); };
    block.combine(found, all, merge);
    block.each([&](int thread) {
      if (thread == 0) sums[b] = found[thread];
    });
    const int64_t blocks = lines.blocks();
    if (!block.last_of(counter, blocks)) return;
    block.each([&](int thread) {
      found[thread] = LossSums{};
      for (int64_t i = thread; i < blocks; i += block_threads) found[thread].merge(sums[i]);
    });
    block.combine(found, all, merge);
    block.each([&](int thread) {
      if (thread != 0) return;
      *losses = static_cast<T>(found[thread].losses / found[thread].weights);
      *weight_sum = found[thread].weights;
    });
  }

  PLEAT_HOST_DEVICE double surprise(T log_sum, int64_t i, int64_t c) const {
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

  PLEAT_HOST_DEVICE void operator()(int64_t at) const {
    int64_t within = at;
    int64_t c = view.inner.divide(within);
    const int64_t i = classes.divide(c) * view.inner.divisor() + within;
    dx[at] = gradient(at, i, c);
  }

 private:
  PLEAT_HOST_DEVICE T gradient(int64_t at, int64_t i, int64_t c) const {
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

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
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

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t own = view.class_of(i);
    weights[i] = own < 0 ? T(0) : static_cast<T>(view.weight(own));
  }
};

template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

}  // namespace

int64_t grid_first_outside(const char* op, const Tensor& indices, const ClassView& view) {
  const reduction::Plan plan = reduction::make_plan(op, indices, {}, false);
  const Tensor first = reduction::empty_result(plan, int64);
  reduction::grid_reduce(op, FirstOutside{view.classes, view.ignore_index}, AsIs<int64_t>{}, plan, indices,
                         {first, {}});
  return std::min(first.item<int64_t>(), view.targets);
}

void grid_cross_entropy(const Tensor& losses, const Tensor& logsumexp, const Tensor& logits,
                        const ClassView& view, const Tensor& weight_sum) {
  Lines lines;
  lines.inner = view.inner.divisor();
  lines.outer = view.targets / lines.inner;
  lines.size = view.classes;
  const GridLines grid(lines);
  Floating::dispatch(logits.dtype(), [&]<class T>(Type<T>) {
    CrossEntropyLines<T> all{grid, view, logits.data<T>(), losses.data<T>(), logsumexp.data<T>()};
    if (!weight_sum.defined()) return grid_blocks("cross_entropy", logits.device(), grid.blocks(), all);
    const Tensor sums = empty({2 * grid.blocks()}, {.dtype = float64, .device = logits.device()});
    const BlockCounters counters(logits.device(), 1);
    all.sums = reinterpret_cast<LossSums*>(sums.data<double>());
    all.counter = counters.data();
    all.weight_sum = weight_sum.data<double>();
    grid_blocks("cross_entropy", logits.device(), grid.blocks(), all);
  });
}

void grid_class_gradient(const char* op, const Tensor& dx, const ClassGradient& gradient,
                         const ClassView& view) {
  Floating::dispatch(dx.dtype(), [&]<class T>(Type<T>) {
    grid_for(op, dx.device(), dx.numel(),
             ClassGradients<T>{view, FastDivider(view.classes), data_or_null<T>(gradient.factors),
                               data_or_null<double>(gradient.weight_sum), gradient.common_factor,
                               data_or_null<T>(gradient.logits), data_or_null<T>(gradient.logsumexp),
                               dx.data<T>()});
  });
}

void grid_nll(const Tensor& losses, const Tensor& x, const ClassView& view) {
  Floating::dispatch(x.dtype(), [&]<class T>(Type<T>) {
    grid_for("nll_loss", x.device(), view.targets,
             NegativeLogLikelihoods<T>{view, x.data<T>(), losses.data<T>()});
  });
}

void grid_target_weights(const Tensor& weights, const ClassView& view) {
  Floating::dispatch(weights.dtype(), [&]<class T>(Type<T>) {
    grid_for("target_weights", weights.device(), view.targets, TargetWeights<T>{view, weights.data<T>()});
  });
}

}  // namespace pleat::ops
