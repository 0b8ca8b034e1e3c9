#pragma once

#include <deque>
#include <functional>

#include "program.h"
#include "readback.h"
#include <pleat/pleat.h>

/// A training whose numbers run away says so, and says where it began.

/// Where a training is.
struct StepPlace {
  int64_t epoch;  ///< from 1
  int64_t step;   ///< of the epoch, from 1
  double lr;
};

/// What `compute` returns, which is the loss of a step before its backward pass, if it is finite. Else throws
/// NotFiniteError with the place, and with the first function that gave a NaN or an infinity: the step is
/// computed once more under DetectAnomaly, with the same random numbers. The parameters are still those of
/// the step's start, since no optimiser has seen this loss; running statistics are not, but nothing reads
/// them in training. Waits for a GPU, whose backward pass can then be queued at once.
pleat::Tensor finite_loss(const StepPlace& place, const pleat::data::Batch& batch,
                          const pleat::nn::Module& net, const std::function<pleat::Tensor()>& compute);

/// Sees to it that the losses of an epoch are finite, without waiting for a GPU: its losses are looked at
/// when they have arrived, some steps later, when the step cannot be computed once more.
class LossWatch {
 public:
  explicit LossWatch(const pleat::nn::Module& net) : net_(net) {}

  /// What `compute` returns: on the CPU by `finite_loss`.
  pleat::Tensor compute(const StepPlace& place, const pleat::data::Batch& batch,
                        const std::function<pleat::Tensor()>& compute);
  /// Looks at a loss once it has arrived. Throws NotFiniteError for one that came before.
  void add(const StepPlace& place, const pleat::Tensor& loss);
  /// Waits for all that were added. Throws NotFiniteError.
  void finish();

 private:
  struct Added {
    StepPlace place;
    Readback loss;
  };
  void check_first();

  const pleat::nn::Module& net_;
  std::deque<Added> added_;
};

/// Throws NotFiniteError when a parameter or buffer of the network is not finite; `when` says when that was
/// found, "after epoch 3".
void check_finite(const pleat::nn::Module& net, const std::string& when);

/// "batch_norm gave nan in [8, 16, 4, 4] float32 cpu at [0, 0, 0, 0]": the first function that gives a NaN or
/// an infinity while `compute` runs; "" when there is none.
std::string first_not_finite(const std::function<void()>& compute);
