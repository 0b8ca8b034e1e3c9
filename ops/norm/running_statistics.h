// Private header: not installed.
#pragma once

#include "pleat/ops/norm/implementation.h"

/// Small numbers around a normalisation, on any device. Statistics are dense and float64, running ones [C]
/// dense and of any floating type.

namespace pleat::ops {

/// Updates them by the statistics of a batch [C], or by the mean over images of statistics [N, C].
void update_running(const RunningStatistics& running, const Tensor& mean, const Tensor& variance);

/// mean and variance <- the running ones, rstd <- 1 / sqrt(variance + eps); all [C].
void read_running(const Tensor& running_mean, const Tensor& running_var, double eps, const Tensor& mean,
                  const Tensor& variance, const Tensor& rstd);

/// rstd <- 1 / sqrt(variance + eps).
void reciprocal_deviation(const Tensor& variance, double eps, const Tensor& rstd);
/// Back: variance <- 1 / rstd^2 - eps, but not below 0.
void variance_from_reciprocal(const Tensor& rstd, double eps, const Tensor& variance);

}  // namespace pleat::ops
