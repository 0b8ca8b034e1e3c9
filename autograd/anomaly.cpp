#include "pleat/autograd/anomaly.h"

#include <cmath>

#include "pleat/core/base/format.h"

namespace pleat {
namespace {
thread_local AnomalyOptions watching{.enabled = false};
}

bool anomaly_mode() { return watching.enabled; }

DetectAnomaly::DetectAnomaly(AnomalyOptions options) : previous_(watching) { watching = options; }
DetectAnomaly::~DetectAnomaly() { watching = previous_; }

namespace autograd {

void check_no_nan(const std::string& op, const char* verb, const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined() || !is_floating(tensor.dtype())) continue;
    const std::vector<double> values = tensor.to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (watching.infinities ? std::isfinite(values[i]) : !std::isnan(values[i])) continue;
      Shape index(tensor.shape().size());
      auto rest = static_cast<int64_t>(i);
      for (std::size_t d = index.size(); d-- > 0;) {
        index[d] = rest % tensor.shape()[d];
        rest /= tensor.shape()[d];
      }
      fail<NumericError>("anomaly: {} {} {} in {} at {}", op, verb, std::isnan(values[i]) ? "nan" : "inf",
                         tensor.describe(), to_string(index));
    }
  }
}

}  // namespace autograd
}  // namespace pleat
