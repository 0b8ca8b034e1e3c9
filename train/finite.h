#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/device/cuda.h"
#include "pleat/data/dataset.h"
#include "pleat/nn/module.h"

/// Finds the first NaN or infinity of a training.

namespace pleat::train {

/// A loss, a parameter or a buffer is NaN or infinite: the training cannot go on.
class NotFiniteError : public NumericError {
 public:
  using NumericError::NumericError;
};

/// A number that a GPU computes, copied to the host without a wait. On the CPU it is there at once.
class Readback {
 public:
  /// Starts the copy of a tensor of one element.
  explicit Readback(const Tensor& number);

  bool is_ready() const { return !done_ || done_->is_done(); }
  /// Waits for the number.
  double value() const;

 private:
  Tensor number_;  ///< on the CPU
  std::optional<cuda::Event> done_;
};

/// A step of a training.
struct StepPlace {
  int64_t epoch;  ///< from 1
  int64_t step;   ///< of the epoch, from 1
  double lr;
};

/// Returns `compute()`, the loss of a step before its backward pass, if it is finite. Else throws
/// NotFiniteError with the place, and with the first function that gave a NaN or an infinity: the
/// step is computed once more under DetectAnomaly, with the same random numbers. The parameters are
/// still those of the step's start, since no optimiser has used this loss; running statistics have
/// changed, but nothing reads them in training. Waits for a GPU.
Tensor finite_loss(const StepPlace& place, const data::Batch& batch, const nn::Module& net,
                   const std::function<Tensor()>& compute);

/// Checks that the losses of an epoch are finite without waiting for a GPU: a GPU's loss is checked
/// when it has arrived, some steps later. The step cannot be computed again then.
class LossWatch {
 public:
  explicit LossWatch(const nn::Module& net) : net_(net) {}

  /// Returns `compute()`; on the CPU through `finite_loss`.
  Tensor compute(const StepPlace& place, const data::Batch& batch, const std::function<Tensor()>& compute);
  /// Adds a loss, which is checked once it has arrived. Throws NotFiniteError for an earlier one.
  void add(const StepPlace& place, const Tensor& loss);
  /// Waits for all losses that were added. Throws NotFiniteError.
  void finish();

 private:
  struct Added {
    StepPlace place;
    Readback loss;
  };
  void check_first();

  const nn::Module& net_;
  std::vector<Added> added_;  ///< the oldest first
};

/// Throws NotFiniteError when a parameter or buffer of the network is not finite; `when` is the time of the
/// check found, "after epoch 3".
void check_finite(const nn::Module& net, const std::string& when);

/// "batch_norm gave nan in [8, 16, 4, 4] float32 cpu at [0, 0, 0, 0]": the first function that gives a NaN or
/// an infinity while `compute` runs; "" when there is none.
std::string first_not_finite(const std::function<void()>& compute);

}  // namespace pleat::train
