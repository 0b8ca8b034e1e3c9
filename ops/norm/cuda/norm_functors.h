// Private header: not installed.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "pleat/ops/norm/cuda/reduce_groups.h"
#include "pleat/ops/norm/running_statistics.h"
#include "pleat/ops/spatial/limit.h"

/// What the reductions and maps of normalisations compute for their groups. T: the type computed in; S: the
/// type stored.

namespace pleat::ops {

/// y = (x - shift) scale + bias: the shift is apart, so that x - mean loses nothing.
template <class T>
struct AffineNumbers {
  T shift, scale, bias;

  PLEAT_HOST_DEVICE T of(T x) const { return (x - shift) * scale + bias; }
};

/// The numbers of a group: the bias takes the part of the mean that rounding it to T cuts off.
template <class T>
PLEAT_HOST_DEVICE AffineNumbers<T> affine_numbers(double mean, double rstd, double weight, double bias) {
  const double scale = weight * rstd;
  const T shift = static_cast<T>(mean);
  const double cut = static_cast<double>(shift) - mean;
  return {shift, static_cast<T>(scale), static_cast<T>(bias + cut * scale)};
}

/// A parameter of any floating type, or the same number for all.
struct Parameter {
  const std::byte* data = nullptr;
  DType dtype = float32;
  int64_t step = 1;
  double otherwise = 0;

  Parameter() = default;
  Parameter(const Tensor& t, double undefined) : otherwise(undefined) {
    if (!t.defined()) return;
    data = t.raw();
    dtype = t.dtype();
    step = t.strides()[0];
  }
  template <class T>
  PLEAT_HOST_DEVICE T as(int64_t i) const {
    return data != nullptr ? load_as<T>(data, i * step, dtype) : static_cast<T>(otherwise);
  }
  PLEAT_HOST_DEVICE double operator[](int64_t i) const { return as<double>(i); }
};

/// What groups are normalised with. A group is a channel of the batch or of an image; `joined`
/// groups, one behind the other, share mean and rstd.
struct Statistics {
  const double* mean;
  const double* rstd;
  Parameter weight, bias;
  FastDivider channels, joined;

  PLEAT_HOST_DEVICE int64_t channel(int64_t group) const {
    channels.divide(group);
    return group;
  }
  PLEAT_HOST_DEVICE int64_t statistic(int64_t group) const { return joined.divide(group); }
  template <class T>
  PLEAT_HOST_DEVICE AffineNumbers<T> affine(int64_t group) const {
    const int64_t c = channel(group);
    const int64_t s = statistic(group);
    return affine_numbers<T>(mean[s], rstd[s], weight[c], bias[c]);
  }
};

/// dx = dy scale - (x - shift) slope - offset.
template <class T>
struct GradientNumbers {
  T shift, scale, slope, offset;
};

/// Those of dx = weight rstd dy - rstd (a + (x - mean) rstd b) / n, where a and b are the sums of weight dy
/// and of weight dy (x - mean) rstd over the n values that share mean and rstd.
template <class T>
PLEAT_HOST_DEVICE GradientNumbers<T> gradient_numbers(double mean, double rstd, double weight, double a,
                                                      double b, double n) {
  const T shift = static_cast<T>(mean);
  const double cut = static_cast<double>(shift) - mean;
  const double slope = rstd * rstd * b / n;
  return {shift, static_cast<T>(weight * rstd), static_cast<T>(slope),
          static_cast<T>(rstd * a / n + slope * cut)};
}

/// Count, mean and sum of squared distances from it; merged after Chan, Golub and LeVeque (1979).
struct MomentState {
  double count = 0, mean = 0, squares = 0;

  PLEAT_HOST_DEVICE void merge(const MomentState& other) {
    if (other.count == 0) return;
    const double total = count + other.count;
    const double share = other.count / total;
    const double apart = other.mean - mean;
    mean += apart * share;
    squares += other.squares + apart * apart * share * count;
    count = total;
  }
  PLEAT_HOST_DEVICE double variance() const { return squares / count; }
};

/// Sums of dy and of dy times x's distance from a number.
struct GradientState {
  double dy = 0, dy_x = 0;

  PLEAT_HOST_DEVICE void merge(const GradientState& other) {
    dy += other.dy;
    dy_x += other.dy_x;
  }
};

/// Mean and variance in one reading. A thread sums distances from its first element, a few in T and the rest
/// in float64, so that neither a mean of 1e4 nor many elements cost digits.
template <class T, class S, std::size_t lanes>
struct MomentSums {
  static constexpr std::size_t width = lanes;
  using State = MomentState;
  using Raw = Vector<S, lanes>;
  struct Running {
    T from;
    double count, sum, squares;
  };
  struct Partial {
    T sum, squares;
  };

  struct Numbers {};

  const S* x;

  PLEAT_HOST_DEVICE Numbers numbers(int64_t) const { return {}; }
  PLEAT_HOST_DEVICE Running begin(const Numbers&, int64_t element) const {
    return {convert<T>(x[element]), 0, 0, 0};
  }
  PLEAT_HOST_DEVICE Raw load(int64_t vector) const { return reinterpret_cast<const Raw*>(x)[vector]; }
  PLEAT_HOST_DEVICE void add(const Running& running, Partial& partial, const Raw& raw,
                             std::size_t lane) const {
    const T d = convert<T>(raw.lane[lane]) - running.from;
    partial.sum += d;
    partial.squares += d * d;
  }
  PLEAT_HOST_DEVICE void take(Running& running, const Partial& partial, int64_t elements) const {
    running.count += static_cast<double>(elements);
    running.sum += static_cast<double>(partial.sum);
    running.squares += static_cast<double>(partial.squares);
  }
  PLEAT_HOST_DEVICE State state(const Running& r) const {
    const double squares = r.squares - r.sum * (r.sum / r.count);
    return {r.count, static_cast<double>(r.from) + r.sum / r.count, squares < 0 ? 0 : squares};
  }
};

/// dy and x of a vector.
template <class S, std::size_t lanes>
struct RawPair {
  Vector<S, lanes> dy, x;
};
template <class S, std::size_t lanes>
PLEAT_HOST_DEVICE RawPair<S, lanes> load_pair(const S* dy, const S* x, int64_t vector) {
  using Block = Vector<S, lanes>;
  return {reinterpret_cast<const Block*>(dy)[vector], reinterpret_cast<const Block*>(x)[vector]};
}

/// The sums of dy and dy (x - shift), where shift is the mean rounded to T. With a limit behind the
/// normalisation dy counts where it was open, which is worked out from x again, or read where
/// there is a `y`; what is open of dy, and of `more` of it, is then written down for those that come after.
template <class T, class S, std::size_t lanes>
struct ReduceGradients {
  static constexpr std::size_t width = lanes;
  using State = GradientState;
  using Raw = RawPair<S, lanes>;
  using Numbers = AffineNumbers<T>;
  struct Running {
    Numbers numbers;
    double dy, dy_x;
  };
  struct Partial {
    T dy, dy_x;
  };

  const S* dy;
  const S* x;
  Statistics of;
  Limit<T> limit;
  const S* y = nullptr;
  S* open = nullptr;
  const S* more = nullptr;  ///< with y

  PLEAT_HOST_DEVICE Numbers numbers(int64_t group) const { return of.affine<T>(group); }
  PLEAT_HOST_DEVICE Running begin(const Numbers& numbers, int64_t) const { return {numbers, 0, 0}; }
  PLEAT_HOST_DEVICE Raw load(int64_t vector) const {
    Raw raw = load_pair<S, lanes>(dy, x, vector);
    if (y == nullptr) return raw;
    const Vector<S, lanes> result = reinterpret_cast<const Vector<S, lanes>*>(y)[vector];
    if (more != nullptr) {
      const Vector<S, lanes> other = reinterpret_cast<const Vector<S, lanes>*>(more)[vector];
      PLEAT_UNROLL
      for (std::size_t lane = 0; lane < lanes; ++lane)
        raw.dy.lane[lane] = convert<S>(convert<T>(raw.dy.lane[lane]) + convert<T>(other.lane[lane]));
    }
    PLEAT_UNROLL
    for (std::size_t lane = 0; lane < lanes; ++lane)
      if (limit.is_closed(convert<T>(result.lane[lane]))) raw.dy.lane[lane] = convert<S>(T(0));
    reinterpret_cast<Vector<S, lanes>*>(open)[vector] = raw.dy;
    return raw;
  }
  PLEAT_HOST_DEVICE void add(const Running& running, Partial& partial, const Raw& raw,
                             std::size_t lane) const {
    const T value = convert<T>(raw.x.lane[lane]);
    T g = convert<T>(raw.dy.lane[lane]);
    if (y == nullptr && limit.is_closed(running.numbers.of(value))) g = T(0);
    partial.dy += g;
    partial.dy_x += g * (value - running.numbers.shift);
  }
  PLEAT_HOST_DEVICE void take(Running& running, const Partial& partial, int64_t) const {
    running.dy += static_cast<double>(partial.dy);
    running.dy_x += static_cast<double>(partial.dy_x);
  }
  PLEAT_HOST_DEVICE State state(const Running& r) const { return {r.dy, r.dy_x}; }
};

/// What is kept of each group's moments.
struct FinishMoments {
  double eps;
  double* mean;
  double* variance;
  double* rstd;
  RunningChannels running = {};  ///< of groups that are channels

  PLEAT_HOST_DEVICE void operator()(int64_t group, const MomentState& state) const {
    mean[group] = state.mean;
    variance[group] = state.variance();
    rstd[group] = 1 / std::sqrt(state.variance() + eps);
    running.update(group, state.mean, state.variance());
  }
};

/// y = (x - shift) scale + bias, plus a residual where there is one, limited.
template <class T, class S, std::size_t lanes>
struct ApplyAffine {
  static constexpr std::size_t width = lanes;
  using Numbers = AffineNumbers<T>;
  struct Raw {
    Vector<S, lanes> x, residual;
  };
  using Result = S;

  const S* x;
  Statistics of;
  Limit<T> limit;
  S* result;
  const S* residual = nullptr;

  PLEAT_HOST_DEVICE Numbers numbers(int64_t group) const { return of.affine<T>(group); }
  PLEAT_HOST_DEVICE Raw load(int64_t vector) const {
    Raw raw;
    raw.x = reinterpret_cast<const Vector<S, lanes>*>(x)[vector];
    if (residual != nullptr) raw.residual = reinterpret_cast<const Vector<S, lanes>*>(residual)[vector];
    return raw;
  }
  PLEAT_HOST_DEVICE S value(const Numbers& k, const Raw& raw, std::size_t lane) const {
    T y = k.of(convert<T>(raw.x.lane[lane]));
    if (residual != nullptr) y += convert<T>(raw.residual.lane[lane]);
    return convert<S>(limit.limited(y));
  }
};

/// dx from the sums of each group; with a limit dy counts where ReduceGradients counts it.
template <class T, class S, std::size_t lanes>
struct ApplyGradient {
  static constexpr std::size_t width = lanes;
  struct Numbers {
    GradientNumbers<T> gradient;
    AffineNumbers<T> affine;
  };
  using Raw = RawPair<S, lanes>;
  using Result = S;

  const S* dy;
  const S* x;
  Statistics of;
  /// Of each statistic the sums a, b of gradient_numbers; null: mean and rstd do not depend on x.
  const GradientState* sums;
  double values;  ///< that share a statistic
  Limit<T> limit;
  S* result;

  PLEAT_HOST_DEVICE Numbers numbers(int64_t group) const {
    const int64_t s = of.statistic(group);
    const GradientState sum = sums != nullptr ? sums[s] : GradientState{};
    return {
        gradient_numbers<T>(of.mean[s], of.rstd[s], of.weight[of.channel(group)], sum.dy, sum.dy_x, values),
        of.affine<T>(group)};
  }
  PLEAT_HOST_DEVICE Raw load(int64_t vector) const { return load_pair<S, lanes>(dy, x, vector); }
  PLEAT_HOST_DEVICE S value(const Numbers& k, const Raw& raw, std::size_t lane) const {
    const T from = convert<T>(raw.x.lane[lane]);
    T g = convert<T>(raw.dy.lane[lane]);
    if (limit.is_closed(k.affine.of(from))) g = T(0);
    return convert<S>(g * k.gradient.scale - (from - k.gradient.shift) * k.gradient.slope -
                      k.gradient.offset);
  }
};

/// dy where (x - shift) scale + bias is open, else 0.
template <class T, class S, std::size_t lanes>
struct ApplyOpen {
  static constexpr std::size_t width = lanes;
  using Numbers = AffineNumbers<T>;
  using Raw = RawPair<S, lanes>;
  using Result = S;

  const S* dy;
  const S* x;
  Statistics of;
  Limit<T> limit;
  S* result;

  PLEAT_HOST_DEVICE Numbers numbers(int64_t group) const { return of.affine<T>(group); }
  PLEAT_HOST_DEVICE Raw load(int64_t vector) const { return load_pair<S, lanes>(dy, x, vector); }
  PLEAT_HOST_DEVICE S value(const Numbers& k, const Raw& raw, std::size_t lane) const {
    return limit.is_closed(k.of(convert<T>(raw.x.lane[lane]))) ? S(0) : raw.dy.lane[lane];
  }
};

}  // namespace pleat::ops
