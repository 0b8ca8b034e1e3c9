// Host and device.
#include "pleat/ops/loss/loss_formulas.h"

#include "pleat/autograd/autocast.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/pointwise.h"

namespace pleat {
namespace {

/// The larger of x and a bound; a NaN stays.
template <class T>
PLEAT_HOST_DEVICE T at_least(const T& x, Weak bound) {
  return where(x < bound.as<T>(), bound.as<T>(), x);
}

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
  return pointwise(op, autocast_to_float32(x), autocast_to_float32(target), formula);
}

}  // namespace

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
