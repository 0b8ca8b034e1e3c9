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
  bool enabled = true;             ///< false: the scaler does nothing
};

/// Whether GradScaler::step made its step; read from the device only when it is converted to bool.
class StepMade {
 public:
  /// Waits for the GPU. For a step in a CudaGraph: whether its last replay made it. Throws Error
  /// while a graph is captured.
  operator bool() const;

 private:
  friend class GradScaler;
  StepMade() = default;
  explicit StepMade(Tensor found) : found_(std::move(found)) {}
  Tensor found_;  ///< not 0: it was skipped; undefined: it was made
};

/// Dynamic loss scaling (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2):
/// gradients that would vanish in float16 are computed from a larger loss. docs/mixed_precision.md
/// shows the loop.
///
///   scaler.scale(loss).backward();
///   scaler.step(optimizer);
///   scaler.update();
///
/// With several optimisers: a step for each, then one update. After an update, gradients must be
/// computed anew. The factor is on the device of the losses, and the devices decide whether a step
/// is made, so the host does not wait. A CudaGraph can hold all of it, from the second step on.
class GradScaler {
 public:
  /// Throws ValueError for invalid options.
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

  /// Divides the gradients by the factor and finds out whether all are finite, for code that reads
  /// them before the step. One launch for all gradients; the host does not wait. Throws ValueError
  /// when they are unscaled already, their step was made, or there are none; DTypeError for
  /// gradients of float16, in which the quotients would vanish again (parameters of mixed precision
  /// are float32).
  void unscale_(Optimizer& optimizer);

  /// Divides the gradients by the factor unless unscale_ has done so. If all are finite, makes the
  /// optimiser's step; else parameters, moments and the count of steps are unchanged. The result
  /// converts to a bool: whether the step was made; the conversion waits for the GPU. step
  /// itself waits only where an optimiser gets new state after its first step. Throws ValueError
  /// when it is called twice without an update between, and what unscale_ and the optimiser's step
  /// throw.
  StepMade step(Optimizer& optimizer);

  /// The next factor: smaller when a gradient since the last update was not finite, larger when
  /// growth_interval updates in succession were without one (and its reciprocal stays a normal
  /// number in float32). Throws ValueError without a step or unscale_ since the last update. Throws
  /// NumericError when the factor is as small as float32 allows and gradients are still not finite;
  /// on a GPU some updates later, when the host knows, or from CudaGraph::replay.
  void update();
  /// Sets the factor instead. Throws ValueError unless it is above 0 and finite.
  void update(double new_scale);

  /// "scale", "growth_factor", "backoff_factor", "growth_interval", "growth_tracker"; empty when not enabled.
  /// Waits for the GPU.
  nn::StateDict state_dict() const;
  /// Throws ValueError with all problems before it changes anything. Does nothing when not enabled.
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
