// Host and device.
#include "pleat/ops/loss/loss_formulas.h"

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/pointwise.h"
#include "pleat/ops/loss/loss.h"
#include "pleat/ops/loss/pair_sum.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat {
namespace {

/// The larger of x and a bound; a NaN stays.
template <class T>
PLEAT_HOST_DEVICE T at_least(const T& x, Weak bound) {
  return where(x < bound.as<T>(), bound.as<T>(), x);
}

struct Squared {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    return square(x - t);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& x, const T& t) const {
    return dy * ((x - t) * 2);
  }
};

struct Absolute {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    return abs(x - t);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& x, const T& t) const {
    const T d = x - t;
    return dy * where(d == d, sign(d), 0);
  }
};

/// At the width and beyond the gradient is the largest; a NaN stays.
struct SmoothAbsolute {
  Weak width;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    const T d = x - t;
    return where(abs(d) < width, d * d / (width.as<T>() * 2), abs(d) - width.as<T>() / 2);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& x, const T& t) const {
    return dy * within((x - t) / width, Weak(1));
  }
};

struct Huber {
  Weak width;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    const T d = x - t;
    return where(abs(d) < width, d * d / 2, (abs(d) - width.as<T>() / 2) * width);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& x, const T& t) const {
    return dy * within(x - t, width);
  }
};

/// Of logits; also with a weight of the positive part.
struct BinaryCrossEntropy {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    return (1 - t) * x + softplus(-x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t, const T& positive) const {
    return (1 - t) * x + ((positive - 1) * t + 1) * softplus(-x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& x, const T& t) const {
    return dy * ((1 - t) - sigmoid(-x));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& x, const T&) const {
    return -(dy * x);
  }
};
struct BinaryCrossEntropyByInput {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& dy, const T& x, const T& t, const T& positive) const {
    return dy * ((1 - t) - ((positive - 1) * t + 1) * sigmoid(-x));
  }
};
struct BinaryCrossEntropyByTarget {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& dy, const T& x, const T& positive) const {
    return dy * (where(positive == 1, 0, (positive - 1) * softplus(-x)) - x);
  }
};

/// 0 log 0 is 0.
struct Divergence {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    return t * (log(where(t == 0, 1, t)) - x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T&, const T& t) const {
    return -(dy * t);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& x, const T& t) const {
    return dy * (log(where(t == 0, 1, t)) - x) + where(t == 0, 0, dy);
  }
};
/// From the logarithm of the target.
struct DivergenceOfLogarithm {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    return exp(t) * (t - x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T&, const T& t) const {
    return -(dy * exp(t));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& x, const T& t) const {
    return dy * exp(t) * (t - x + 1);
  }
};

struct ProbabilityCrossEntropy {
  static constexpr double least = -100, least_square = 1e-12;  // PyTorch's

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& p, const T& t) const {
    return (t - 1) * at_least(log1p(-p), Weak(least)) - t * at_least(log(p), Weak(least));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& p, const T& t) const {
    return dy * (p - t) / at_least((1 - p) * p, Weak(least_square));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& p, const T&) const {
    return dy * (at_least(log1p(-p), Weak(least)) - at_least(log(p), Weak(least)));
  }
};

struct SoftMargin {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    return softplus(-(t * x));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& x, const T& t) const {
    return -(dy * t * sigmoid(-(t * x)));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& x, const T& t) const {
    return -(dy * x * sigmoid(-(t * x)));
  }
};

struct HingeEmbedding {
  Weak margin;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    const T near = where(t == -1, 0, x);
    const T rest = margin.as<T>() - x;
    return near + where(t == 1, 0, where(rest < 0, 0, rest));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& x, const T& t) const {
    const T near = where(t == -1, 0, dy);
    return near - where(t == 1, 0, where(margin.as<T>() - x < 0, 0, dy));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T&, const T&) const {
    return dy * 0;
  }
};

/// weight c m^gamma with the cross entropy c and m = 1 - p_t, the probability of the other class.
struct Focal {
  Weak alpha, gamma;
  bool weighted;

  template <class T>
  PLEAT_HOST_DEVICE T weight(const T& t) const {
    return weighted ? alpha.as<T>() * t + (1 - alpha.as<T>()) * (1 - t) : t * 0 + 1;
  }
  template <class T>
  PLEAT_HOST_DEVICE static T cross_entropy(const T& x, const T& t) {
    return (1 - t) * x + softplus(-x);
  }
  template <class T>
  PLEAT_HOST_DEVICE static T other(const T& p, const T& t) {
    return p * (1 - t) + (1 - p) * t;
  }
  /// m^gamma and its derivative by m; nothing where m has vanished.
  template <class T>
  struct Raised {
    T power, slope;
  };
  template <class T>
  PLEAT_HOST_DEVICE Raised<T> raised(const T& m) const {
#if PLEAT_DEVICE_CODE
    // All threads take one branch; on the CPU one would keep loops from becoming vector instructions.
    if (gamma.value == 2) return {m * m, m * 2};
#endif
    return {pow(m, gamma.as<T>()), where(m == 0, 0, gamma * pow(where(m == 0, 1, m), gamma.as<T>() - 1))};
  }

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    return weight(t) * cross_entropy(x, t) * raised(other(sigmoid(x), t)).power;
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& x, const T& t) const {
    const T p = sigmoid(x);
    const T m = other(p, t);
    const auto [power, slope] = raised(m);
    return dy * weight(t) * ((p - t) * power + cross_entropy(x, t) * slope * p * (1 - p) * (1 - 2 * t));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& x, const T& t) const {
    const T p = sigmoid(x);
    const T m = other(p, t);
    const T c = cross_entropy(x, t);
    const auto [power, slope] = raised(m);
    const T by_loss = weight(t) * (c * slope * (1 - 2 * p) - x * power);
    return dy * (weighted ? by_loss + (2 * alpha.as<T>() - 1) * (c * power) : by_loss);
  }
};

template <class F>
concept HasGradientByTarget = requires(const F& f, float a) {
  f.backward_second(a, a, a);
};

/// From the gradient of a sum of losses times `share`.
template <class F, bool by_target = false>
struct GradientOfSum {
  F formula;
  Weak share;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& dy, const T& x, const T& t) const {
    if constexpr (by_target)
      return formula.backward_second(dy * share, x, t);
    else
      return formula.backward_first(dy * share, x, t);
  }
};

/// Whether losses are added up in the pass that computes them.
bool is_one_pass(const Tensor& x, const Tensor& target, Reduction reduction) {
  return reduction != Reduction::none && x.device().is_cuda() && x.device() == target.device() &&
         is_floating(x.dtype()) && is_floating(target.dtype()) &&
         compute_dtype(promote(x.dtype(), target.dtype())) == float32 && x.numel() > 0;
}

template <class F>
Tensor sum_of_losses(const char* op, const Tensor& x, const Tensor& target, double share, const F& formula) {
  const Tensor a = x.is_dense() ? x : ops::copy(x);
  Tensor b = target;
  if (b.strides() != a.strides()) {
    b = empty_as(std::array{a}, a.shape(), target.dtype());
    ops::copy_into(b, target);
  }
  const Tensor y = empty({}, {.dtype = promote(x.dtype(), target.dtype()), .device = x.device()});
  ops::sum_of_pairs(op, y, a, b, share, formula);
  return y;
}

template <class F>
Tensor losses(const char* op, const Tensor& input, const Tensor& any_target, const F& formula,
              Reduction reduction) {
  check_pair(op, input, any_target);
  const bool sums = with_cuda && is_one_pass(input, any_target, reduction);
  const auto each = [&] {
    const Call call(op, {input, any_target}, {}, Autocasts::to_float32);
    const Tensor &x = call.input(0), &target = call.input(1);
    double share = 1;
    Tensor y;
    if constexpr (with_cuda)
      if (sums) {
        if (reduction == Reduction::mean) share = 1 / static_cast<double>(x.numel());
        if (reduction == Reduction::batch_mean && x.rank() > 0) share = 1 / static_cast<double>(x.size(0));
        y = sum_of_losses(op, x, target, share, formula);
      }
    if (!sums) y = ops::binary_floating(op, x, target, formula);
    const auto gradient = [&](const Tensor& of, const auto& backward) {
      return grad_of(of, [op, backward, x = saved(x), target = saved(target)](const Tensor& dy) {
        return detail::run_backward(op, backward, dy, *x, *target);
      });
    };
    // That of a distance by the target is the negative of that by x.
    constexpr bool own = HasGradientByTarget<F>;
    return call.result(y, gradient(x, GradientOfSum<F>{formula, Weak(share)}),
                       gradient(target, GradientOfSum<F, own>{formula, Weak(own ? share : -share)}));
  };
  return sums ? each() : reduced(each(), reduction);
}

/// Calls `f(formula)`.
template <class F>
Tensor with_formula(const DistanceLoss& loss, const F& f) {
  using Kind = DistanceLoss::Kind;
  switch (loss.width == 0 && loss.kind == Kind::smooth_absolute ? Kind::absolute : loss.kind) {
    case Kind::squared:
      return f(Squared{});
    case Kind::absolute:
      return f(Absolute{});
    case Kind::smooth_absolute:
      return f(SmoothAbsolute{Weak(loss.width)});
    case Kind::huber:
      break;
  }
  return f(Huber{Weak(loss.width)});
}

}  // namespace

Tensor reduced(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return losses;
    case Reduction::mean:
      return mean(losses);
    case Reduction::sum:
      return sum(losses);
    case Reduction::batch_mean:
      break;
  }
  return sum(losses) / static_cast<double>(losses.rank() == 0 ? 1 : losses.size(0));
}

void check_pair(const char* op, const Tensor& input, const Tensor& target) {
  check<ShapeError>(input.shape() == target.shape(),
                    "{}: input and target must have one shape, got {} and {}; reshape or expand one of them",
                    op, input, target);
}

Tensor distance_losses(const char* op, const Tensor& x, const Tensor& target, DistanceLoss loss,
                       Reduction reduction) {
  return with_formula(loss, [&](const auto& formula) { return losses(op, x, target, formula, reduction); });
}

Tensor binary_cross_entropies(const Tensor& input, const Tensor& any_target, const Tensor& pos_weight,
                              Reduction reduction) {
  constexpr const char* op = "bce_with_logits";
  if (!pos_weight.defined()) return losses(op, input, any_target, BinaryCrossEntropy{}, reduction);
  const Call call(op, {input, any_target, pos_weight}, {}, Autocasts::to_float32);
  const Tensor &x = call.input(0), &target = call.input(1), &positive = call.input(2);
  check_pair(op, x, target);
  const DType dtype = ops::floating_result(promote(x.dtype(), target.dtype()));
  const Tensor y = ops::binary_result(op, x, target, dtype);
  ops::map_into<ops::Floating>(op, dtype, y, std::array{x, target, positive}, BinaryCrossEntropy{});
  return reduced(
      call.result(
          y,
          grad_of(x,
                  [x = saved(x), target = saved(target), positive = saved(positive)](const Tensor& dy) {
                    return detail::run_backward(op, BinaryCrossEntropyByInput{}, dy, *x, *target, *positive);
                  }),
          grad_of(target,
                  [x = saved(x), positive = saved(positive)](const Tensor& dy) {
                    return detail::run_backward(op, BinaryCrossEntropyByTarget{}, dy, *x, *positive);
                  })),
      reduction);
}

Tensor divergences(const Tensor& x, const Tensor& target, bool log_target, Reduction reduction) {
  if (!is_half(promote(x.dtype(), target.dtype())) && !is_one_pass(x, target, reduction)) return {};
  return log_target ? losses("kl_div", x, target, DivergenceOfLogarithm{}, reduction)
                    : losses("kl_div", x, target, Divergence{}, reduction);
}

Tensor probability_cross_entropies(const Tensor& p, const Tensor& target, Reduction reduction) {
  return losses("binary_cross_entropy", p, target, ProbabilityCrossEntropy{}, reduction);
}

Tensor soft_margin_losses(const Tensor& x, const Tensor& target, Reduction reduction) {
  return losses("soft_margin_loss", x, target, SoftMargin{}, reduction);
}

Tensor hinge_embedding_losses(const Tensor& x, const Tensor& target, double margin, Reduction reduction) {
  return losses("hinge_embedding_loss", x, target, HingeEmbedding{Weak(margin)}, reduction);
}

Tensor focal_losses(const Tensor& x, const Tensor& target, double alpha, double gamma, Reduction reduction) {
  return losses("sigmoid_focal_loss", x, target, Focal{Weak(alpha), Weak(gamma), alpha >= 0}, reduction);
}

}  // namespace pleat
