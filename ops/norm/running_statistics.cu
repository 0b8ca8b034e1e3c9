#include <cmath>

#include "pleat/core/grid.h"
#include "pleat/core/grid_elementwise.h"
#include "pleat/ops/norm/running_statistics.h"

namespace pleat::ops {
namespace {

constexpr const char* op = "batch_norm";

struct Running {
  std::byte* data;
  DType dtype;

  explicit Running(const Tensor& t) : data(t.raw()), dtype(t.dtype()) {}
  PLEAT_HOST_DEVICE void move(int64_t c, double momentum, double batch) const {
    const double r = load_as<double>(data, c, dtype);
    store_as<double>(data, c, dtype, r + momentum * (batch - r));
  }
};

struct UpdateRunning {
  Running running_mean, running_var;
  const double* mean;
  const double* variance;
  double momentum, variance_factor;
  int64_t images, channels;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    double mean_sum = 0;
    double variance_sum = 0;
    for (int64_t n = 0; n < images; ++n) {
      mean_sum += mean[n * channels + c];
      variance_sum += variance[n * channels + c];
    }
    const auto count = static_cast<double>(images);
    running_mean.move(c, momentum, mean_sum / count);
    running_var.move(c, momentum, variance_sum / count * variance_factor);
  }
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

void update(const Tensor& running_mean, const Tensor& running_var, const Tensor& mean, const Tensor& variance,
            double momentum, double variance_factor, int64_t images) {
  const int64_t channels = running_mean.numel();
  grid_for(op, running_mean.device(), channels,
           UpdateRunning{Running(running_mean), Running(running_var), mean.data<double>(),
                         variance.data<double>(), momentum, variance_factor, images, channels});
  running_mean.bump_version();
  running_var.bump_version();
}

}  // namespace

void update_running(const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                    const Tensor& variance, double momentum, double variance_factor) {
  update(running_mean, running_var, mean, variance, momentum, variance_factor, 1);
}

void update_running_by_images(const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                              const Tensor& variance, double momentum, double variance_factor) {
  update(running_mean, running_var, mean, variance, momentum, variance_factor, mean.size(0));
}

void read_running(const Tensor& running_mean, const Tensor& running_var, double eps, const Tensor& mean,
                  const Tensor& variance, const Tensor& rstd) {
  grid_for(op, mean.device(), mean.numel(),
           ReadRunning{Running(running_mean), Running(running_var), eps, mean.data<double>(),
                       variance.data<double>(), rstd.data<double>()});
}

void reciprocal_deviation(const Tensor& variance, double eps, const Tensor& rstd) {
  grid_for(op, variance.device(), variance.numel(),
           ReciprocalDeviation{eps, variance.data<double>(), rstd.data<double>()});
}

void variance_from_reciprocal(const Tensor& rstd, double eps, const Tensor& variance) {
  grid_for(op, rstd.device(), rstd.numel(),
           VarianceFromReciprocal{eps, rstd.data<double>(), variance.data<double>()});
}

}  // namespace pleat::ops
