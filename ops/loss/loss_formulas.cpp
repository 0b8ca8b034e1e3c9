// Host and device.
#include "pleat/ops/loss/loss_formulas.h"

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/pointwise.h"
#include "pleat/ops/loss/distance_sum.h"
#include "pleat/ops/loss/loss.h"

namespace pleat {
namespace {

/// The larger of x and a bound; a NaN stays.
template <class T>
PLEAT_HOST_DEVICE T at_least(const T& x, Weak bound) {
  return where(x < bound.as<T>(), bound.as<T>(), x);
}

// Of a distance: the gradient by the target is the negative of that by x.

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

struct BinaryCrossEntropy {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t, const T& positive) const {
    return (1 - t) * x + ((positive - 1) * t + 1) * softplus(-x);
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
  /// The derivative of m^gamma by m; nothing where m has vanished.
  template <class T>
  PLEAT_HOST_DEVICE T slope(const T& m) const {
    return where(m == 0, 0, gamma * pow(where(m == 0, 1, m), gamma.as<T>() - 1));
  }

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& t) const {
    return weight(t) * cross_entropy(x, t) * pow(other(sigmoid(x), t), gamma.as<T>());
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& x, const T& t) const {
    const T p = sigmoid(x);
    const T m = other(p, t);
    return dy * weight(t) *
           ((p - t) * pow(m, gamma.as<T>()) + cross_entropy(x, t) * slope(m) * p * (1 - p) * (1 - 2 * t));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& x, const T& t) const {
    const T p = sigmoid(x);
    const T m = other(p, t);
    const T c = cross_entropy(x, t);
    const T power = pow(m, gamma.as<T>());
    const T by_loss = weight(t) * (c * slope(m) * (1 - 2 * p) - x * power);
    return dy * (weighted ? by_loss + (2 * alpha.as<T>() - 1) * (c * power) : by_loss);
  }
};

template <class F>
Tensor losses(const char* op, const Tensor& x, const Tensor& target, const F& formula) {
  return pointwise(op, x, target, formula, Autocasts::to_float32);
}

/// From the gradient of a sum of distances times `share`.
template <class F>
struct GradientOfDistance {
  F formula;
  Weak share;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& dy, const T& x, const T& t) const {
    return formula.backward_first(dy * share, x, t);
  }
};

template <class F>
Tensor with_gradients(const Call& call, const char* op, const Tensor& y, const Tensor& x,
                      const Tensor& target, const F& formula, double share) {
  const GradientOfDistance<F> backward{formula, Weak(share)};
  const auto gradients = [op, backward, x = saved(x), target = saved(target)](const Grads& dys,
                                                                              const Needs& needs) -> Grads {
    const std::array in{dys[0], *x, *target};
    Tensor dx;
    if (grad_enabled()) {
      dx = backward(widened(in[0]), widened(in[1]), widened(in[2]));
    } else {
      const RecordOp range(op, "_backward", in[0], in[1], in[2]);
      const DType dtype = ops::floating_result(promote(in[0].dtype(), promote(in[1].dtype(), in[2].dtype())));
      dx = empty_as(std::span(in).subspan(1), in[1].shape(), dtype);
      ops::map_into<ops::Floating>(op, dtype, dx, in, backward);
    }
    return {dx, needs[1] ? -dx : Tensor()};
  };
  return call.result(y, Derivative{{x, target}, gradients});
}

template <class F>
Tensor distances(const char* op, const Tensor& input, const Tensor& any_target, const F& formula) {
  const Call call(op, {input, any_target}, {}, Autocasts::to_float32);
  const Tensor &x = call.input(0), &target = call.input(1);
  check_pair(op, x, target);
  return with_gradients(call, op, ops::binary_floating(op, x, target, formula), x, target, formula, 1);
}

/// The sum of the distances, or their mean, on a GPU.
template <class F>
Tensor sum_of_distances(const char* op, const Tensor& input, const Tensor& any_target, const F& formula,
                        bool mean) {
  const Call call(op, {input, any_target}, {}, Autocasts::to_float32);
  const Tensor &x = call.input(0), &target = call.input(1);
  check_pair(op, x, target);
  const Tensor a = x.is_dense() ? x : ops::copy(x);
  Tensor b = target;
  if (b.strides() != a.strides()) {
    b = empty_as(std::array{a}, a.shape(), target.dtype());
    ops::copy_into(b, target);
  }
  const double share = mean ? 1 / static_cast<double>(x.numel()) : 1;
  const Tensor y = empty({}, {.dtype = promote(x.dtype(), target.dtype()), .device = x.device()});
  ops::sum_of_pairs(op, y, a, b, share, formula);
  return with_gradients(call, op, y, x, target, formula, share);
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

void check_pair(const char* op, const Tensor& input, const Tensor& target) {
  check<ShapeError>(input.shape() == target.shape(),
                    "{}: input and target must have one shape, got {} and {}; reshape or expand one of them",
                    op, input, target);
}

Tensor distance_losses(const char* op, const Tensor& x, const Tensor& target, DistanceLoss loss) {
  return with_formula(loss, [&](const auto& formula) { return distances(op, x, target, formula); });
}

Tensor sum_of_distance_losses(const char* op, const Tensor& x, const Tensor& target, DistanceLoss loss,
                              bool mean) {
  if constexpr (with_cuda)
    if (x.device().is_cuda() && x.device() == target.device() && is_floating(x.dtype()) &&
        is_floating(target.dtype()) && x.numel() > 0)
      return with_formula(
          loss, [&](const auto& formula) { return sum_of_distances(op, x, target, formula, mean); });
  return {};
}

Tensor binary_cross_entropies(const Tensor& input, const Tensor& any_target, const Tensor& pos_weight) {
  constexpr const char* op = "bce_with_logits";
  const Call call(op, {input, any_target, pos_weight}, {}, Autocasts::to_float32);
  const Tensor &x = call.input(0), &target = call.input(1);
  check_pair(op, x, target);
  const DType dtype = ops::floating_result(promote(x.dtype(), target.dtype()));
  const Tensor positive =
      pos_weight.defined() ? call.input(2) : full({}, 1.0, {.dtype = dtype, .device = x.device()});
  const Tensor y = ops::binary_result(op, x, target, dtype);
  ops::map_into<ops::Floating>(op, dtype, y, std::array{x, target, positive}, BinaryCrossEntropy{});
  return call.result(
      y,
      grad_of(x,
              [x = saved(x), target = saved(target), positive = saved(positive)](const Tensor& dy) {
                return detail::run_backward(op, BinaryCrossEntropyByInput{}, dy, *x, *target, *positive);
              }),
      grad_of(target, [x = saved(x), positive = saved(positive)](const Tensor& dy) {
        return detail::run_backward(op, BinaryCrossEntropyByTarget{}, dy, *x, *positive);
      }));
}

Tensor probability_cross_entropies(const Tensor& p, const Tensor& target) {
  return losses("binary_cross_entropy", p, target, ProbabilityCrossEntropy{});
}

Tensor soft_margin_losses(const Tensor& x, const Tensor& target) {
  return losses("soft_margin_loss", x, target, SoftMargin{});
}

Tensor hinge_embedding_losses(const Tensor& x, const Tensor& target, double margin) {
  return losses("hinge_embedding_loss", x, target, HingeEmbedding{Weak(margin)});
}

Tensor focal_losses(const Tensor& x, const Tensor& target, double alpha, double gamma) {
  return losses("sigmoid_focal_loss", x, target, Focal{Weak(alpha), Weak(gamma), alpha >= 0});
}

}  // namespace pleat
