#pragma once

#include <optional>

#include "pleat/core/base/required.h"
#include "pleat/nn/layer.h"
#include "pleat/ops/matmul/matmul.h"

namespace pleat::nn {

struct LinearOptions {
  Required<int64_t> in_features;
  Required<int64_t> out_features;
  bool bias = true;
  std::optional<Precision> precision = {};  ///< of all passes; see MatmulOptions
};

/// y = x W^T + b for x [..., in_features]: y [..., out_features]. weight [out, in] and bias [out] start
/// uniform on [-b, b] with b = 1 / sqrt(in_features). Throws ValueError unless both numbers are at least 1.
class Linear : public WeightAndBias<Layer<"Linear", MatmulOptions>> {
 public:
  explicit Linear(LinearOptions o);
  Tensor forward(const Tensor& x) override;
  std::string options_text() const override;
};

}  // namespace pleat::nn
