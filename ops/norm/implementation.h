#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pleat/ops/implementations.h"
#include "pleat/ops/norm/problem.h"

namespace pleat::ops {

/// r <- (1 - momentum) r + momentum batch, in place.
struct RunningStatistics {
  Tensor mean, var;                ///< undefined: nothing to update
  Tensor count;                    ///< of the batches seen, int64; may be undefined
  std::optional<double> momentum;  ///< none: 1 / (count + 1)
  double variance_factor = 1;      ///< what the variance of a batch counts times

  bool defined() const { return mean.defined(); }
  /// To be called around a kernel that updates them: notes the change, and counts where the kernel cannot.
  void begin_update() const;
  void end_update() const;
};

/// What an implementation computes from, and where it writes to. x, dy, y and dx lie as the problem's view
/// says, and so does the residual; weight, bias and residual may be undefined; mean, variance and rstd are
/// [C] float64 and dense.
struct BatchNormForward {
  Tensor x, weight, bias, residual;
  Tensor mean, variance, rstd;       ///< written in training (the biased variance), else read
  RunningStatistics running;         ///< to update in training, where there are any
  const Moments* moments = nullptr;  ///< of x, where they are known
  Tensor y;
};
struct BatchNormBackward {
  Tensor dy, x, weight;
  Tensor bias;  ///< read with bounds only
  Tensor mean, rstd;
  const GradientSums* sums = nullptr;  ///< of dy and x, where they are known
  Tensor more_dy = {};                 ///< to be added to dy; with y only
  Tensor y = {};                       ///< where defined, dy counts where it lies between the bounds ...
  Tensor dresidual = {};               ///< ... which is written here
  Tensor dx = {};                      ///< undefined when it is not wanted
  Tensor dweight, dbias;               ///< [C] of the parameters' type, dense
};

enum class BatchNormPass : unsigned char { forward, backward };
std::string_view name(BatchNormPass pass);  ///< "forward", "backward"

/// One way to compute batch normalisations.
class BatchNormImplementation : public Implementation<BatchNormProblem, BatchNormPass> {
 public:
  virtual void forward(const BatchNormProblem& problem, const BatchNormForward& tensors) const = 0;
  virtual void backward(const BatchNormProblem& problem, const BatchNormBackward& tensors) const = 0;
  /// As forward, but gives what is to be made of x. Null, and nothing is done, where that would gain nothing.
  virtual std::shared_ptr<const Normalization> normalization(const BatchNormProblem&,
                                                             const BatchNormForward&) const {
    return nullptr;
  }
  /// Whether backward can be given y. Else dy is what is open of it.
  virtual bool opens_by_result() const { return false; }
};

/// The implementations of batch normalisation.
const Implementations<BatchNormImplementation>& batch_norm_implementations();

/// What a policy with `benchmark` needs to time a pass.
struct BatchNormTrial {
  /// Computes it and leaves the caller's tensors as they are.
  std::function<void(const BatchNormImplementation&)> run;
  /// What its speed depends on beside the problem, as text.
  std::function<std::string()> conditions;
};

/// The one that the options or else the BatchNormPolicy in force name for the pass, without a name with the
/// policy's `benchmark` the fastest but for the reference; else what Implementations::get gives.
const BatchNormImplementation& choose_batch_norm(const char* op, const BatchNormProblem& problem,
                                                 BatchNormPass pass, const BatchNormOptions& options,
                                                 const BatchNormTrial& trial);

}  // namespace pleat::ops
