#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "pleat/core/base/device.h"

/// A step of a training as one CUDA graph: the GPU repeats all of it at one call, and the host, which would
/// launch some hundred kernels one by one, is free. docs/cuda.md has a table of what may be in one.

namespace pleat {

struct CudaGraphOptions {
  Device device = DeviceType::cuda;
  /// How often the function runs as usual before it is captured, so that what happens once - memory, plans of
  /// cuDNN, the state of an optimiser - has happened. At least 0.
  int64_t warmup = 1;
};

/// What a function does on a GPU, to be done again.
///
///   Tensor x = ..., y = ...;          // on the GPU; each step finds its batch here
///   Tensor loss;
///   CudaGraph graph{[&] {
///     loss = cross_entropy(net(x), y, {.check_target = false});
///     sgd.zero_grad();
///     loss.backward();
///     sgd.step();
///   }};                               // trains one step: the warm-up
///   for (...) {
///     copy_(x, batch.inputs);
///     copy_(y, batch.targets);
///     graph.replay();                 // trains one more
///   }
///
/// Tensors that the function reads and did not make keep their memory, and are changed in place between
/// replays; those that it leaves behind, like `loss`, have new values after each replay and none before the
/// first. What the host does in the function happens while it is captured, not in a replay, except for this:
/// an optimiser's step counts, and goes by the rates it has then; random numbers are new ones. A schedule's
/// step, or anything else that only the host does, belongs behind `replay`.
///
/// In the function nothing may make the host wait for the GPU (`item`, printing, checks of indices), copy to
/// or from memory that is not pinned, or draw random numbers on the CPU: Error names the function that did.
class CudaGraph {
 public:
  /// Runs the function `warmup` times and captures it. Throws DeviceError without a GPU, ValueError for
  /// options, Error for what cannot be captured, and what the function throws.
  explicit CudaGraph(std::function<void()> step, CudaGraphOptions options = {});

  /// Queues one more run in the current stream of the device. Throws DeviceError; Error when an optimiser
  /// that took part is gone or has other parameters now.
  void replay();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace pleat
