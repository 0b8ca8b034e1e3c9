// Private header: not installed.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "pleat/core/host_device.h"
#include "pleat/ops/elementwise/math_functors.h"

/// One element's share of an update. A functor is called with references to an element of each of its
/// `operands`, of which the second, if there is one, is only read: (parameter, gradient, states...). Formulas
/// are in the optimisers' headers.

namespace pleat::ops {

/// to = from: casts of many tensors.
struct CopyTo {
  static constexpr std::size_t operands = 2;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& to, T from) const {
    to = from;
  }
};

/// p -= rate * g + decay * p.
struct SgdStep {
  static constexpr std::size_t operands = 2;
  double rate, decay;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp) const {
    p -= T(rate) * dp + T(decay) * p;
  }
};

struct SgdMomentumStep {
  static constexpr std::size_t operands = 3;
  double sign, lr, momentum, decay;
  double dampening;
  double g_share, b_share;  ///< of the direction: with and without Nesterov one formula, without a branch
  int64_t first;            ///< step with this momentum, in which dampening has no part
  double fresh = 1;         ///< share of the gradient in the momentum

  PLEAT_HOST_DEVICE void at_step(int64_t step) { fresh = step == first ? 1 : 1 - dampening; }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& b) const {
    const T g = T(sign) * dp + T(decay) * p;
    b = T(momentum) * b + T(fresh) * g;
    p -= T(lr) * (T(g_share) * g + T(b_share) * b);
  }
};

struct AdamRule {
  double sign, beta1, beta2, eps;
  double l2;    ///< weight decay in the gradient
  double keep;  ///< of the parameter, before the update
  double lr;
  double rate = 0;     ///< lr / (1 - beta1^t)
  double v_scale = 0;  ///< 1 / sqrt(1 - beta2^t)

  PLEAT_HOST_DEVICE void at_step(int64_t step) {
    const auto t = static_cast<double>(step);
    rate = lr / (1 - std::pow(beta1, t));
    v_scale = 1 / std::sqrt(1 - std::pow(beta2, t));
  }

  template <class T>
  PLEAT_HOST_DEVICE void update_moments(T p, T dp, T& m, T& v) const {
    const T g = T(sign) * dp + T(l2) * p;
    m = T(beta1) * m + T(1 - beta1) * g;
    v = T(beta2) * v + T(1 - beta2) * g * g;
  }

  template <class T>
  PLEAT_HOST_DEVICE T moved(T p, T m, T v) const {
    return T(keep) * p - T(rate) * m / (std::sqrt(v) * T(v_scale) + T(eps));
  }
};

struct AdamStep {
  static constexpr std::size_t operands = 4;
  AdamRule rule;

  PLEAT_HOST_DEVICE void at_step(int64_t step) { rule.at_step(step); }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& v) const {
    rule.update_moments(p, dp, m, v);
    p = rule.moved(p, m, v);
  }
};

struct AmsgradStep {
  static constexpr std::size_t operands = 5;
  AdamRule rule;

  PLEAT_HOST_DEVICE void at_step(int64_t step) { rule.at_step(step); }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m, T& v, T& largest) const {
    rule.update_moments(p, dp, m, v);
    largest = largest < v ? v : largest;
    p = rule.moved(p, m, largest);
  }
};

struct RmspropRule {
  double sign, alpha, decay, eps;

  /// The direction, with the running averages brought up to date: of the square, and of the gradient where
  /// the variance is to be centred.
  template <class T, class... Average>
  PLEAT_HOST_DEVICE T direction(T p, T dp, T& s, Average&... a) const {
    const T g = T(sign) * dp + T(decay) * p;
    s = T(alpha) * s + T(1 - alpha) * g * g;
    T variance = s;
    // Rounding may make a variance of almost 0 negative.
    ((a = T(alpha) * a + T(1 - alpha) * g, variance = s - a * a, variance = variance > 0 ? variance : T(0)),
     ...);
    return g / (std::sqrt(variance) + T(eps));
  }
};

template <bool centered>
struct RmspropStep {
  static constexpr std::size_t operands = centered ? 4 : 3;
  RmspropRule rule;
  double lr;

  template <class T, class... Average>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& s, Average&... a) const {
    p -= T(lr) * rule.direction(p, dp, s, a...);
  }
};

template <bool centered>
struct RmspropMomentumStep {
  static constexpr std::size_t operands = centered ? 5 : 4;
  RmspropRule rule;
  double lr, momentum;

  template <class T, class... Average>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& s, T& b, Average&... a) const {
    b = T(momentum) * b + rule.direction(p, dp, s, a...);
    p -= T(lr) * b;
  }
};

struct AdagradStep {
  static constexpr std::size_t operands = 3;
  double sign, lr, lr_decay, decay, eps;
  double rate = 0;

  PLEAT_HOST_DEVICE void at_step(int64_t step) { rate = lr / (1 + static_cast<double>(step - 1) * lr_decay); }

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& s) const {
    const T g = T(sign) * dp + T(decay) * p;
    s += g * g;
    p -= T(rate) * g / (std::sqrt(s) + T(eps));
  }
};

struct LionStep {
  static constexpr std::size_t operands = 3;
  double sign, lr, beta1, beta2, decay;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T dp, T& m) const {
    const T g = T(sign) * dp;
    const T c = T(beta1) * m + T(1 - beta1) * g;
    const T direction = T(c > 0) - T(c < 0);
    p -= T(lr) * (direction + T(decay) * p);
    m = T(beta2) * m + T(1 - beta2) * g;
  }
};

/// Brings Muon's momentum b up to date and writes the direction u that is to be made orthogonal.
struct MuonMomentum {
  static constexpr std::size_t operands = 3;
  double sign, momentum, g_share, b_share;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& b, T dp, T& u) const {
    const T g = T(sign) * dp;
    b = T(momentum) * b + g;
    u = T(g_share) * g + T(b_share) * b;
  }
};

struct MuonStep {
  static constexpr std::size_t operands = 2;
  double keep, rate;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T u) const {
    p = T(keep) * p - T(rate) * u;
  }
};

struct ScaleBy {
  static constexpr std::size_t operands = 1;
  double factor;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& x) const {
    x *= T(factor);
  }
};

/// By a factor that is where the elements are.
struct ScaleByOf {
  static constexpr std::size_t operands = 1;
  const double* factor;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& x) const {
    x *= T(*factor);
  }
};

/// Scales by a factor that is where the elements are, and sets a flag where there is an infinity or a NaN.
struct Unscale {
  static constexpr std::size_t operands = 1;
  const double* factor;
  int32_t* found;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& x) const {
    if (!(x - x == 0)) mark();
    x *= T(*factor);
  }

 private:
  PLEAT_HOST_DEVICE void mark() const {
#if PLEAT_DEVICE_CODE
    *found = 1;  // whoever else writes writes the same
#else
    std::atomic_ref(*found).store(1, std::memory_order_relaxed);
#endif
  }
};

struct ClampTo {
  static constexpr std::size_t operands = 1;
  Clamp clamp;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& x) const {
    x = clamp(x);
  }
};

}  // namespace pleat::ops
