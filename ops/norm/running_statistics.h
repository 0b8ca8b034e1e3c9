// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pleat/core/kernels/load_as.h"
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

/// Running statistics as a kernel sees them.
class RunningChannels {
 public:
  RunningChannels() = default;
  explicit RunningChannels(const RunningStatistics& running)
      : momentum_(running.momentum.value_or(-1)), variance_factor_(running.variance_factor) {
    if (!running.defined()) return;
    mean_ = running.mean.raw();
    mean_type_ = running.mean.dtype();
    var_ = running.var.raw();
    var_type_ = running.var.dtype();
    if (running.count.defined()) count_ = running.count.data<int64_t>();
  }

  /// Takes in what a batch has in channel c.
  PLEAT_HOST_DEVICE void update(int64_t c, double mean, double variance) const {
    if (mean_ == nullptr) return;
    double share = momentum_;
    // The average reads the count in all channels, so that it is left to RunningStatistics::updated.
    if (share < 0)
      share = count_ != nullptr ? 1 / (static_cast<double>(*count_) + 1) : 1;
    else if (c == 0 && count_ != nullptr)
      ++*count_;
    move(mean_, c, mean_type_, share, mean);
    move(var_, c, var_type_, share, variance * variance_factor_);
  }

 private:
  PLEAT_HOST_DEVICE static void move(std::byte* data, int64_t c, DType dtype, double share, double batch) {
    const double r = load_as<double>(data, c, dtype);
    store_as<double>(data, c, dtype, r + share * (batch - r));
  }

  std::byte* mean_ = nullptr;
  std::byte* var_ = nullptr;
  DType mean_type_ = float32, var_type_ = float32;
  int64_t* count_ = nullptr;
  double momentum_ = 0, variance_factor_ = 1;  // momentum below 0: the average of all batches
};

}  // namespace pleat::ops
