// Host and device.
#include "pleat/ops/norm/running_statistics.h"

#include <cmath>

#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/kernels/load_as.h"

namespace pleat::ops {
namespace {

constexpr const char* op = "batch_norm";

struct Running {
  std::byte* data;
  DType dtype;

  explicit Running(const Tensor& t) : data(t.raw()), dtype(t.dtype()) {}
};

struct UpdateRunning {
  RunningChannels running;
  const double* mean;
  const double* variance;
  int64_t images, channels;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    double mean_sum = 0;
    double variance_sum = 0;
    for (int64_t n = 0; n < images; ++n) {
      mean_sum += mean[n * channels + c];
      variance_sum += variance[n * channels + c];
    }
    const auto count = static_cast<double>(images);
    running.update(c, mean_sum / count, variance_sum / count);
  }
};

struct CountUp {
  int64_t* count;
  PLEAT_HOST_DEVICE void operator()(int64_t) const { ++*count; }
};

struct ReadRunning {
  Running running_mean, running_var;
  double eps;
  double* mean;
  double* variance;
  double* rstd;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    mean[c] = load_as<double>(running_mean.data, c, running_mean.dtype);
    variance[c] = load_as<double>(running_var.data, c, running_var.dtype);
    rstd[c] = 1 / std::sqrt(variance[c] + eps);
  }
};

struct ReciprocalDeviation {
  double eps;
  const double* variance;
  double* rstd;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const { rstd[i] = 1 / std::sqrt(variance[i] + eps); }
};

struct VarianceFromReciprocal {
  double eps;
  const double* rstd;
  double* variance;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const double value = 1 / (rstd[i] * rstd[i]) - eps;
    variance[i] = value < 0 ? 0 : value;
  }
};

}  // namespace

void RunningStatistics::begin_update() const {
  mean.begin_write();
  var.begin_write();
  if (count.defined()) count.begin_write();
}

void RunningStatistics::end_update() const {
  if (count.defined() && !momentum) for_each_index(op, count.device(), 1, CountUp{count.data<int64_t>()});
}

void update_running(const RunningStatistics& running, const Tensor& mean, const Tensor& variance) {
  const int64_t channels = running.mean.numel();
  running.begin_update();
  for_each_index(op, running.mean.device(), channels,
                 UpdateRunning{RunningChannels(running), mean.data<double>(), variance.data<double>(),
                               mean.numel() / channels, channels});
  running.end_update();
}

void read_running(const Tensor& running_mean, const Tensor& running_var, double eps, const Tensor& mean,
                  const Tensor& variance, const Tensor& rstd) {
  for_each_index(op, mean.device(), mean.numel(),
                 ReadRunning{Running(running_mean), Running(running_var), eps, mean.data<double>(),
                             variance.data<double>(), rstd.data<double>()});
}

void reciprocal_deviation(const Tensor& variance, double eps, const Tensor& rstd) {
  for_each_index(op, variance.device(), variance.numel(),
                 ReciprocalDeviation{eps, variance.data<double>(), rstd.data<double>()});
}

void variance_from_reciprocal(const Tensor& rstd, double eps, const Tensor& variance) {
  for_each_index(op, rstd.device(), rstd.numel(),
                 VarianceFromReciprocal{eps, rstd.data<double>(), variance.data<double>()});
}

}  // namespace pleat::ops
