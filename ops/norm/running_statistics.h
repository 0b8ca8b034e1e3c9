// Private header: not installed.
#pragma once

#include "pleat/core/tensor.h"

/// Small numbers around a normalisation, on any device. Statistics are dense and float64, running ones [C]
/// dense and of any floating type.

namespace pleat::ops {

/// r <- (1 - momentum) r + momentum batch, in place; the variance of the batch [C] counts times
/// `variance_factor`.
void update_running(const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                    const Tensor& variance, double momentum, double variance_factor);
/// The same with the mean over images of statistics [N, C].
void update_running_by_images(const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                              const Tensor& variance, double momentum, double variance_factor);

/// mean and variance <- the running ones, rstd <- 1 / sqrt(variance + eps); all [C].
void read_running(const Tensor& running_mean, const Tensor& running_var, double eps, const Tensor& mean,
                  const Tensor& variance, const Tensor& rstd);

/// rstd <- 1 / sqrt(variance + eps).
void reciprocal_deviation(const Tensor& variance, double eps, const Tensor& rstd);
/// Back: variance <- 1 / rstd^2 - eps, but not below 0.
void variance_from_reciprocal(const Tensor& rstd, double eps, const Tensor& variance);

}  // namespace pleat::ops
