#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "pleat/core/kernels/block.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/loss/kernels_cuda.h"
#include "pleat/ops/reduce/fold.h"
#include "pleat/ops/reduce/reduce_kernel.h"
#include "pleat/ops/softmax/line_exponentials.h"
#include "pleat/ops/softmax/short_lines.h"

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

}  // namespace

/// A team of threads takes one target's logits: their largest, the sum of exponentials, and with label
/// smoothing the sum of all classes' shares of the loss. Of a mean loss the last block adds up what all
/// found.
template <class T, class Stored, class Own>
struct CrossEntropyLines {
  static constexpr bool keeps_registers = true;

  ShortLines lines;
  ClassView view;
  const Stored* x;
  Stored* losses;
  T* logsumexp;
  LossSums* sums = nullptr;  ///< of each block; null: no mean
  unsigned* counter = nullptr;
  double* weight_sum = nullptr;

  __device__ void operator()(int64_t b, const Block& block) const {
    const Own own(lines, b, block);
    double shares = 0;
    const double common = view.common_share();
    const auto found =
        sum_exponentials<T>(own, x, true, [&](int64_t start, const auto& held, const LineSum<T>& line) {
          if (common == 0) return;
          const double log_sum = log_of<Stored>(line.sum);
          own.for_numbered(start, held, [&](int k, int64_t c) {
            if (c < view.classes)
              shares += common * view.weight(c) * (log_sum - static_cast<double>(held.of[k]));
          });
        });
    if (common > 0) own.merge(shares, [](double& into, double other) { into += other; });
    finish(b, own, static_cast<T>(static_cast<double>(found.shift) + log_of<Stored>(found.sum)), shares);
  }

 private:
  __device__ void finish(int64_t b, const Own& own, T log_sum, double shares) const {
    LossSums found;
    if (own.is_first()) {
      logsumexp[own.line] = log_sum;
      const int64_t c = view.class_of(own.line);
      double loss = 0;
      if (c >= 0) {
        const double surprise = static_cast<double>(log_sum) - static_cast<double>(own.element(x, c));
        loss = view.own_share() * view.weight(c) * surprise + shares;
      }
      if (sums == nullptr)
        losses[own.line] = convert<Stored>(loss);
      else
        found = {loss, c < 0 ? 0 : view.weight(c)};
    }
    if (sums != nullptr) add_up(b, own.block, found);
  }

  __device__ void add_up(int64_t b, const Block& block, LossSums& found) const {
    const Teams all{log_block_threads, true}, same_lanes{log_block_threads - 5, false};
    const auto merge = [](LossSums& into, const LossSums& other) { into.merge(other); };
    if (lines.teams.adjacent && lines.teams.log_lanes >= 5)  // first threads of warps alone have found any
      block.combine(found, same_lanes, merge);
    else
      block.combine(found, all, merge);
    if (block.thread() == 0) sums[b] = found;
    const int64_t blocks = lines.blocks();
    if (!block.last_of(counter, blocks)) return;
    found = {};
    for (int64_t i = block.thread(); i < blocks; i += block_threads) found.merge(sums[i]);
    block.combine(found, all, merge);
    if (block.thread() != 0) return;
    *losses = convert<Stored>(found.losses / found.weights);
    *weight_sum = found.weights;
  }
};

/// One target's logits' gradient.
template <class T, class Stored, class Own>
struct ClassGradients {
  static constexpr bool keeps_registers = true;

  ShortLines lines;
  ClassView view;
  const std::byte* factors;  ///< of type factor_type
  DType factor_type;
  const double* weight_sum;  ///< or null; else there is one factor
  double common_factor;
  const Stored* x;
  const T* logsumexp;
  Stored* dx;

  __device__ void operator()(int64_t b, const Block& block) const {
    const Own own(lines, b, block);
    int64_t own_class = -1;
    T scale = 0, own_part = 0, log_sum = 0;
    double common = 0;
    if (own.exists()) own_class = view.class_of(own.line);
    if (own_class >= 0) {
      const double factor = factors == nullptr      ? common_factor
                            : weight_sum == nullptr ? load_as<double>(factors, own.line, factor_type)
                                                    : load_as<double>(factors, 0, factor_type) / *weight_sum;
      if (x != nullptr) {
        scale = static_cast<T>(factor * view.share_sum(own_class));
        log_sum = logsumexp[own.line];
      }
      own_part = static_cast<T>(factor * view.own_share() * view.weight(own_class));
      common = factor * view.common_share();
    }
    own.for_parts([&](int64_t start, auto& held) {
      if (x == nullptr) {
        own.for_held(start, held, [&](int k) { held.of[k] = T(0); });
      } else {
        own.load(start, held, x, T(0));
        const bool counts = scale != 0;  // 0 times an infinite exponential is no 0
        own.for_held(start, held, [&](int k) {
          const T share = scale * exp_of<Stored>(held.of[k] - log_sum);
          held.of[k] = counts ? share : T(0);
        });
      }
      own.for_numbered(start, held, [&](int k, int64_t c) {
        if (c == own_class) held.of[k] -= own_part;
      });
      if (common != 0)
        own.for_numbered(start, held, [&](int k, int64_t c) {
          held.of[k] -= static_cast<T>(common * view.weight(c < view.classes ? c : 0));
        });
      own.store(start, held, dx);
    });
  }
};

namespace {

/// Of the logits' type.
struct NegativeLogLikelihoods {
  ClassView view;
  const std::byte* x;
  std::byte* losses;
  DType dtype;

  __device__ void operator()(int64_t i) const {
    const int64_t own = view.class_of(i);
    const double loss =
        own < 0
            ? 0
            : -view.weight(own) * load_as<double>(x, view.first_logit(i) + own * view.inner.divisor(), dtype);
    store_as<double>(losses, i, dtype, loss);
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

Lines lines_of(const ClassView& view) {
  Lines lines;
  lines.inner = view.inner.divisor();
  lines.outer = view.targets / lines.inner;
  lines.size = view.classes;
  return lines;
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
  const ShortLines lines(lines_of(view), {logits}, 64);
  dispatch_lines(logits.dtype(), lines,
                 [&]<class T, class Stored, class Own>(Type<T>, Type<Stored>, Type<Own>) {
                   CrossEntropyLines<T, Stored, Own> all{lines, view, logits.data<Stored>(),
                                                         losses.data<Stored>(), logsumexp.data<T>()};
                   const int64_t blocks = all.lines.blocks();
                   if (!weight_sum.defined())
                     return launch_blocks("cross_entropy", logits.device(), blocks, all);
                   const Tensor sums = empty({2 * blocks}, {.dtype = float64, .device = logits.device()});
                   all.sums = reinterpret_cast<LossSums*>(sums.data<double>());
                   all.counter = block_counters(logits.device());
                   all.weight_sum = weight_sum.data<double>();
                   launch_blocks("cross_entropy", logits.device(), blocks, all);
                 });
}

void class_gradient_cuda(const char* op, const Tensor& dx, const ClassGradient& gradient,
                         const ClassView& view) {
  const Tensor& factors = gradient.factors;
  const ShortLines lines(lines_of(view), {dx, gradient.logits.defined() ? gradient.logits : dx});
  dispatch_lines(dx.dtype(), lines, [&]<class T, class Stored, class Own>(Type<T>, Type<Stored>, Type<Own>) {
    const ClassGradients<T, Stored, Own> all{lines,
                                             view,
                                             factors.defined() ? factors.raw() : nullptr,
                                             factors.defined() ? factors.dtype() : float64,
                                             data_or_null<double>(gradient.weight_sum),
                                             gradient.common_factor,
                                             data_or_null<Stored>(gradient.logits),
                                             data_or_null<T>(gradient.logsumexp),
                                             dx.data<Stored>()};
    launch_blocks(op, dx.device(), all.lines.blocks(), all);
  });
}

void nll_cuda(const Tensor& losses, const Tensor& x, const ClassView& view) {
  launch_indices("nll_loss", x.device(), view.targets,
                 NegativeLogLikelihoods{view, x.raw(), losses.raw(), x.dtype()});
}

void target_weights_cuda(const Tensor& weights, const ClassView& view) {
  Floating::dispatch(weights.dtype(), [&]<class T>(Type<T>) {
    launch_indices("target_weights", weights.device(), view.targets,
                   TargetWeights<T>{view, weights.data<T>()});
  });
}

}  // namespace pleat::ops
