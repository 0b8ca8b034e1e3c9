// Private header: not installed.
#pragma once

#include <cmath>
#include <cstdint>

#include "pleat/core/host_device.h"

/// The index arithmetic of batch normalisation, one value (or one channel) a call: what a CPU loop and a grid
/// of GPU threads both run. Sums are in float64.

namespace pleat::ops {

/// Steps in elements of a view [images, channels, pixels] of either layout.
struct ChannelSteps {
  int64_t images, channels, pixels;
  bool channels_last;

  PLEAT_HOST_DEVICE int64_t at(int64_t n, int64_t c, int64_t p) const {
    return channels_last ? (n * pixels + p) * channels + c : (n * channels + c) * pixels + p;
  }
  PLEAT_HOST_DEVICE int64_t channel_of(int64_t element) const {
    return channels_last ? element % channels : element / pixels % channels;
  }
  PLEAT_HOST_DEVICE int64_t values() const { return images * pixels; }
};

/// mean[c], variance[c] (biased) and rstd[c] = 1 / sqrt(variance + eps) of channel c. T: element type, float
/// or double.
template <class T>
struct ChannelStatistics {
  ChannelSteps steps;
  const T* x;
  double eps;
  double* mean;
  double* variance;
  double* rstd;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    double sum = 0;
    for (int64_t n = 0; n < steps.images; ++n)
      for (int64_t p = 0; p < steps.pixels; ++p) sum += static_cast<double>(x[steps.at(n, c, p)]);
    const double middle = sum / static_cast<double>(steps.values());
    double squares = 0;
    for (int64_t n = 0; n < steps.images; ++n)
      for (int64_t p = 0; p < steps.pixels; ++p) {
        const double d = static_cast<double>(x[steps.at(n, c, p)]) - middle;
        squares += d * d;
      }
    mean[c] = middle;
    variance[c] = squares / static_cast<double>(steps.values());
    rstd[c] = 1 / std::sqrt(variance[c] + eps);
  }
};

/// (x - mean) rstd weight + bias.
struct ChannelNumbers {
  const double* mean;
  const double* rstd;
  const double* weight;
  const double* bias;

  PLEAT_HOST_DEVICE double normalized(int64_t c, double x) const {
    return (x - mean[c]) * rstd[c] * weight[c] + bias[c];
  }
};

/// y[i] is x[i] normalised, plus residual[i] where there is one, or the relu of that.
template <class T>
struct Normalize {
  ChannelSteps steps;
  bool relu;
  const T* x;
  ChannelNumbers numbers;
  const T* residual;  ///< or null
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    double value = numbers.normalized(steps.channel_of(i), static_cast<double>(x[i]));
    if (residual != nullptr) value += static_cast<double>(residual[i]);
    y[i] = static_cast<T>(relu && value < 0 ? 0 : value);
  }
};

/// dy[i] where the relu behind the normalisation let x[i] through, else 0.
template <class T>
struct ReluGradient {
  ChannelSteps steps;
  const T* dy;
  const T* x;
  ChannelNumbers numbers;
  T* to;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const bool open = numbers.normalized(steps.channel_of(i), static_cast<double>(x[i])) > 0;
    to[i] = open ? dy[i] : T(0);
  }
};

/// dbias[c] = sum dy, dweight[c] = sum dy (x - mean) rstd.
template <class T>
struct ChannelGradients {
  ChannelSteps steps;
  const T* dy;
  const T* x;
  const double* mean;
  const double* rstd;
  double* dweight;
  double* dbias;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    double sum = 0;
    double product = 0;
    for (int64_t n = 0; n < steps.images; ++n)
      for (int64_t p = 0; p < steps.pixels; ++p) {
        const int64_t i = steps.at(n, c, p);
        sum += static_cast<double>(dy[i]);
        product += static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - mean[c]);
      }
    dbias[c] = sum;
    dweight[c] = product * rstd[c];
  }
};

/// dx[i] = weight rstd (dy[i] - (dbias + (x[i] - mean) rstd dweight) / values); without training only the
/// first term.
template <class T>
struct NormalizeBackward {
  ChannelSteps steps;
  bool training;
  const T* dy;
  const T* x;
  const double* mean;
  const double* rstd;
  const double* weight;
  const double* dweight;
  const double* dbias;
  T* dx;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t c = steps.channel_of(i);
    double gradient = static_cast<double>(dy[i]);
    if (training)
      gradient -= (dbias[c] + (static_cast<double>(x[i]) - mean[c]) * rstd[c] * dweight[c]) /
                  static_cast<double>(steps.values());
    dx[i] = static_cast<T>(weight[c] * rstd[c] * gradient);
  }
};

}  // namespace pleat::ops
