// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// The factor of a loss, and by what rule it changes (nn/optim/grad_scaler.h). It lies on a device, which
/// changes it without the host's knowing.
struct LossScale {
  double scale;
  double inverse;  ///< 1 / scale
  double growth_factor, backoff_factor;
  int64_t growth_interval;
  int64_t growth_tracker;  ///< updates in succession without an infinity or NaN
  int64_t stuck;           ///< whether the last update should have made it too small for float32
};

/// The bytes of a LossScale, on a device.
Tensor make_loss_scale(const LossScale& value, Device device);
/// Waits for the device.
LossScale read_loss_scale(const Tensor& scale);
LossScale loss_scale_of(const Tensor& bytes);  ///< on the CPU
void put_loss_scale(const Tensor& scale, const LossScale& value);
/// Sets the factor alone.
void put_loss_factor(const Tensor& scale, double factor);

/// A copy of the factor, of rank 0, in float32 or float64.
Tensor loss_factor(const Tensor& scale, DType dtype);
/// Where its reciprocal lies.
const double* inverse_loss_factor(const Tensor& scale);

/// The next factor: smaller when `found`, an int32 of its device, is not 0; larger after growth_interval
/// calls without (when its reciprocal stays a normal number in float32).
void next_loss_scale(const Tensor& scale, const Tensor& found);

/// Sets `into` where `from`, an int32 of any device, is not 0.
void join_found(const Tensor& into, const Tensor& from);

}  // namespace pleat::ops
