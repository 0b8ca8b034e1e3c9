#pragma once

#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// Whether every recorded function, forward and backward, is watched for NaNs.
bool anomaly_mode();

struct AnomalyOptions {
  bool enabled = true;
  bool infinities = false;  ///< infinities count, too: what overflows becomes a NaN only later
};

/// Watches for a scope: the first function that gives a NaN throws NumericError with its name, the
/// shape and the first bad index. Slow: every result is read once more.
class DetectAnomaly {
 public:
  explicit DetectAnomaly(bool enabled = true) : DetectAnomaly(AnomalyOptions{.enabled = enabled}) {}
  explicit DetectAnomaly(AnomalyOptions options);
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  AnomalyOptions previous_;
};

namespace autograd {
/// Throws NumericError "anomaly: <op> <verb> nan in [2, 3] float32 at [0, 1]" for the first NaN, or infinity
/// where these count.
void check_no_nan(const std::string& op, const char* verb, const std::vector<Tensor>& tensors);
}  // namespace autograd

}  // namespace pleat
