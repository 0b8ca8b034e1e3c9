#pragma once

#include <optional>

#include "pleat/nn/module.h"
#include "pleat/nn/required.h"

namespace pleat::nn {

struct BatchNormOptions {
  Required<int64_t> num_features;
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< none: running statistics are the average over all batches
  bool affine = true;                    ///< weight and bias
  bool track_running_stats = true;       ///< else the batch's statistics are used in evaluation, too
  std::string implementation = {};
};

/// Batch normalisation of [N, C, spatial...] with `dims` spatial dimensions (1: also [N, C]); see
/// ops/norm/batch_norm.h. weight starts as 1, bias as 0, running_mean as 0 and running_var as 1. forward
/// throws ShapeError for another rank.
template <int dims>
class BatchNorm : public Module {
 public:
  explicit BatchNorm(BatchNormOptions options);
  Tensor forward(const Tensor& x) override;
  void members(Members& m) override;
  std::string type_name() const override { return "BatchNorm" + std::to_string(dims) + "d"; }
  std::string options_text() const override;

  Tensor weight, bias;
  Tensor running_mean, running_var;
  Tensor num_batches_tracked;  ///< int64
  BatchNormOptions options;
};

using BatchNorm1d = BatchNorm<1>;
using BatchNorm2d = BatchNorm<2>;
using BatchNorm3d = BatchNorm<3>;

}  // namespace pleat::nn
