// Private header: not installed.
#pragma once

#include <cmath>
#include <limits>

#include "pleat/core/host_device.h"
#include "pleat/ops/reduce/fold.h"

namespace pleat::ops::reduction {

/// Sums a power of |x| in float64.
template <class T, class Power>
struct PowerStep {
  using In = T;
  using State = double;
  Power power{};
  PLEAT_HOST_DEVICE double start() const { return 0; }
  PLEAT_HOST_DEVICE double step(double total, T x) const {
    return total + power(std::abs(static_cast<double>(x)));
  }
  PLEAT_HOST_DEVICE double join(double a, double b) const { return a + b; }
};

struct First {
  PLEAT_HOST_DEVICE double operator()(double a) const { return a; }
};
struct Second {
  PLEAT_HOST_DEVICE double operator()(double a) const { return a * a; }
};
struct Zeroth {
  PLEAT_HOST_DEVICE double operator()(double a) const { return a != 0 ? 1 : 0; }
};
struct General {
  double p;
  PLEAT_HOST_DEVICE double operator()(double a) const { return std::pow(a, p); }
};
/// Any of these: where one kernel is worth more than a loop that never asks.
struct AnyPower {
  double p = 2;
  PLEAT_HOST_DEVICE double operator()(double a) const {
    if (p == 2) return Second{}(a);
    if (p == 1) return First{}(a);
    if (p == 0) return Zeroth{}(a);
    return General{p}(a);
  }
};

/// What the sum of powers becomes.
template <class T>
struct Root {
  double p;
  PLEAT_HOST_DEVICE T operator()(double total) const {
    if (p == 0 || p == 1) return static_cast<T>(total);
    return static_cast<T>(p == 2 ? std::sqrt(total) : std::pow(total, 1 / p));
  }
};

/// The largest or smallest |x|.
template <class T, bool larger>
struct MagnitudeStep : ExtremeStep<T, larger> {
  PLEAT_HOST_DEVICE T start() const { return larger ? T(0) : std::numeric_limits<T>::infinity(); }
  PLEAT_HOST_DEVICE T step(T best, T x) const { return ExtremeStep<T, larger>::better(best, std::abs(x)); }
};

}  // namespace pleat::ops::reduction
