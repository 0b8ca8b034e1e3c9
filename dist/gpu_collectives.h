// Private header: not installed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/core/base/device.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/dist/transport.h"

namespace pleat::dist {

/// Collectives between the GPUs of the ranks, one each: NCCL. They go into a stream of their own and return
/// without waiting. All functions are called from the engine's thread.
class GpuCollectives : public Collectives {
 public:
  /// Puts the collective that `call` makes behind what `ready` marks, and marks its end by `done`. Keeps the
  /// tensors until then.
  virtual void run(const cuda::Event& ready, const cuda::Event& done, std::vector<Tensor> tensors,
                   const std::function<void(Collectives&)>& call) = 0;
  /// Whether all that was given is done. Throws DistError when one has failed, or is not done after so long.
  virtual bool is_done(double timeout_seconds) = 0;
  /// The end, when all is done: all ranks must call it.
  virtual void finish() = 0;
};

/// "NCCL 2.28.9"; empty in a Pleat without it.
std::string nccl_version();

/// Connects the GPUs of all ranks, which must be different ones. All ranks must call it. Throws DistError.
std::unique_ptr<GpuCollectives> connect_gpus(Transport& transport, Device device);

}  // namespace pleat::dist
