#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "pleat/core/base/moved_from.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/nn/optim/optimizer.h"
#include "pleat/nn/state_dict.h"

namespace pleat::optim {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;        ///< above 1
  double backoff_factor = 0.5;     ///< in (0, 1)
  int64_t growth_interval = 2000;  ///< steps without an infinity or NaN after which the scale grows
  bool enabled = true;             ///< false: as if it were not there
};

/// Whether GradScaler::step made its step, asked of the device only where somebody looks.
class StepMade {
 public:
  /// Waits for the GPU. Of a step that is in a CudaGraph: whether its last replay made it. Throws Error while
  /// a graph is captured.
  operator bool() const;

 private:
  friend class GradScaler;
  StepMade() = default;
  explicit StepMade(Tensor found) : found_(std::move(found)) {}
  Tensor found_;  ///< not 0: it was left out; undefined: it was made
};

/// Dynamic loss scaling (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2): gradients
/// that would vanish in float16 are computed of a larger loss. docs/mixed_precision.md shows the loop.
///
///   scaler.scale(loss).backward();
///   scaler.step(optimizer);
///   scaler.update();
///
/// With several optimisers: a step for each, then one update. After an update, gradients are to be computed
/// anew. The factor lies on the device of the losses, and the devices decide whether a step is made: the host
/// waits for none of them, and a CudaGraph may have all of it, from its second step on.
class GradScaler {
 public:
  /// Throws ValueError for options that make no sense.
  explicit GradScaler(GradScalerOptions options = {});
  ~GradScaler();
  GradScaler(GradScaler&&) noexcept;
  GradScaler& operator=(GradScaler&&) noexcept;

  bool enabled() const { return options_.enabled; }
  /// The factor now; 1 when not enabled. Waits for the GPU; throws Error while a CudaGraph is captured.
  double scale() const;
  /// The loss times the factor, in float32 where it is a half type. Throws DTypeError unless floating; Error
  /// while a CudaGraph is captured and the factor is not on the GPU yet.
  Tensor scale(const Tensor& loss) const;

  /// Divides the gradients by the factor, where something is to look at them before the step, and finds out
  /// whether all are finite: one launch for all, and nothing is waited for. Throws ValueError when they are
  /// unscaled already, their step was made, or there are none; DTypeError for gradients of float16, in which
  /// dividing would lose what scaling has kept (parameters of mixed precision are float32).
  void unscale_(Optimizer& optimizer);

  /// Divides the gradients by the factor unless that was done, and, if all were finite, makes the optimiser's
  /// step; else neither parameters, nor moments, nor the count of steps change. What it returns says whether
  /// it was made, as a bool, and waits only when it is asked. The host waits where an optimiser gets new
  /// state after its first step. Throws ValueError when it is called twice without an update between, else
  /// what unscale_ and the optimiser's step throw.
  StepMade step(Optimizer& optimizer);

  /// The next factor: smaller when a gradient since the last update was not finite, larger when
  /// growth_interval updates in succession were without one (and its reciprocal stays a normal number in
  /// float32). Throws ValueError without a step or unscale_ since the last one; NumericError when the factor
  /// has become as small as float32 allows and gradients are still not finite - on a GPU some updates later,
  /// when that is known, or from CudaGraph::replay.
  void update();
  /// The same with a factor of one's own. Throws ValueError unless it is above 0 and finite.
  void update(double new_scale);

  /// "scale", "growth_factor", "backoff_factor", "growth_interval", "growth_tracker"; empty when not enabled.
  /// Waits for the GPU.
  nn::StateDict state_dict() const;
  /// Throws ValueError with all problems, and then nothing was changed. Does nothing when not enabled.
  void load_state_dict(const nn::StateDict& state);

 private:
  /// What was done for an optimiser since the last update.
  struct Progress {
    std::vector<Tensor> found;  ///< int32 [1] on each device with gradients: whether one is not finite
    bool stepped = false;
  };
  struct State;
  void check_not_moved_from() const;

  GradScalerOptions options_;
  std::shared_ptr<State> state_;               ///< shared with graphs that change it
  std::map<OptimizerRef, Progress> progress_;  ///< an optimiser may be moved between its calls
  MovedFrom moved_from_;
};

}  // namespace pleat::optim
