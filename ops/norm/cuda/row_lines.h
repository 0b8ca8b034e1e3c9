// Private header: not installed.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "pleat/ops/norm/cuda/norm_functors.h"
#include "pleat/ops/softmax/team_lines.h"

/// Group normalisation of rows that teams of threads hold in registers (row_functors.h has that of longer
/// ones): one reading of x forward, and one of dy and x backward. T: the type computed in; S: the type
/// stored.

namespace pleat::ops {

/// The groups of rows as lines, and the parameters of their elements: dense, of the type computed in or of
/// that stored, or null. Where `mean` is null it counts as 0: what rows are in RMS norm.
struct NormLines {
  TeamLines lines;
  const std::byte* weight;
  const std::byte* bias;
  DType weight_type, bias_type;
  FastDivider groups;  ///< of a row

  /// Calls `f(k, parameter)` for what a thread holds of a line, unless there are no parameters.
  template <class S, class T, class F>
  __device__ void for_parameters(const OwnLine<T>& own, const std::byte* data, DType dtype,
                                 const F& f) const {
    if (data == nullptr) return;
    int64_t group = own.line;
    groups.divide(group);
    HeldLine<T> held;
    if (dtype == dtype_of<T>())
      own.load_row(held, reinterpret_cast<const T*>(data) + group * lines.size);
    else
      own.load_row(held, reinterpret_cast<const S*>(data) + group * lines.size);
    own.for_held(0, held, [&](int k) { f(k, held.of[k]); });
  }
};

/// Of half types float32 is exact enough for the few elements of a thread.
template <class S>
using ThreadSum = std::conditional_t<sizeof(S) == 2, float, double>;

template <class T, class S>
struct NormalizeLines {
  static constexpr bool keeps_registers = true;

  NormLines of;
  double eps;
  const S* x;
  double* mean;
  double* variance;
  double* rstd;
  S* y;

  __device__ void operator()(int64_t b, const Block& block) const {
    const OwnLine<T> own(of.lines, b, block);
    const auto add = [](double& into, double other) { into += other; };
    const auto n = static_cast<double>(of.lines.size);
    HeldLine<T> held;
    own.load(0, held, x, T(0));
    double sum = 0;
    if (mean != nullptr) {
      ThreadSum<S> few = 0;
      own.for_held(0, held, [&](int k) { few += held.of[k]; });
      sum = static_cast<double>(few);
      own.merge(sum, add);
    }
    const double middle = sum / n;
    // The mean in two parts: the second is what rounding to T cuts off the first.
    const T shift = static_cast<T>(middle), rest = static_cast<T>(middle - static_cast<double>(shift));
    ThreadSum<S> few_squares = 0;
    own.for_elements(held, [&](int k) {
      held.of[k] = held.of[k] - shift - rest;
      few_squares += ThreadSum<S>(held.of[k]) * ThreadSum<S>(held.of[k]);
    });
    auto squares = static_cast<double>(few_squares);
    own.merge(squares, add);
    const double spread = 1 / std::sqrt(squares / n + eps);
    if (own.is_first()) {
      rstd[own.line] = spread;
      if (mean != nullptr) {
        mean[own.line] = middle;
        variance[own.line] = squares / n;
      }
    }
    const T scale = static_cast<T>(spread);
    own.for_held(0, held, [&](int k) { held.of[k] *= scale; });
    of.template for_parameters<S>(own, of.weight, of.weight_type,
                                  [&](int k, T weight) { held.of[k] *= weight; });
    of.template for_parameters<S>(own, of.bias, of.bias_type, [&](int k, T bias) { held.of[k] += bias; });
    own.store(0, held, y);
  }
};

/// dx of a row's group.
template <class T, class S>
struct NormalizeBackwardLines {
  static constexpr bool keeps_registers = true;

  NormLines of;
  const S* dy;
  const S* x;
  const double* mean;
  const double* rstd;
  S* dx;

  __device__ void operator()(int64_t b, const Block& block) const {
    const OwnLine<T> own(of.lines, b, block);
    const double middle = mean != nullptr && own.exists() ? mean[own.line] : 0,
                 spread = own.exists() ? rstd[own.line] : 0;
    const T shift = static_cast<T>(middle);
    HeldLine<T> g, held;
    own.load(0, g, dy, T(0));
    own.load(0, held, x, T(0));
    of.template for_parameters<S>(own, of.weight, of.weight_type,
                                  [&](int k, T weight) { g.of[k] *= weight; });
    const T scale = static_cast<T>(spread);
    ThreadSum<S> dy_sum = 0, dy_x_sum = 0;
    own.for_held(0, g, [&](int k) {
      held.of[k] = (held.of[k] - shift) * scale;
      dy_sum += g.of[k];
      dy_x_sum += g.of[k] * held.of[k];
    });
    GradientState sums{static_cast<double>(dy_sum), static_cast<double>(dy_x_sum)};
    own.merge(sums, [](GradientState& into, const GradientState& other) { into.merge(other); });
    if (mean == nullptr) sums.dy = 0;
    const double factor = spread / static_cast<double>(of.lines.size);
    const double cut = (static_cast<double>(shift) - middle) * spread;
    const double slope = (sums.dy_x + cut * sums.dy) * factor;
    const T part = static_cast<T>(slope), offset = static_cast<T>(sums.dy * factor + slope * cut);
    own.for_held(0, g, [&](int k) { g.of[k] = g.of[k] * scale - held.of[k] * part - offset; });
    own.store(0, g, dx);
  }
};

}  // namespace pleat::ops
