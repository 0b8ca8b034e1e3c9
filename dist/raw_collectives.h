// Private header: not installed.
#pragma once

#include <future>
#include <optional>
#include <string>

#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/dist/communicator.h"
#include "pleat/dist/engine.h"

/// Collectives on row-major tensors in place, off the tape. `purpose` is compared between the ranks, and part
/// of errors. Elements on a GPU without NCCL go through the CPU, for which these wait.

namespace pleat::dist {

/// Throws DTypeError where elements of the type cannot be reduced in this way.
void check_reducible(const char* op, const Tensor& x, ReduceOp how);

/// "all_reduce(sum) of [3, 4] float32".
std::string call_text(const char* op, const Tensor& x, std::string_view how, const std::string& purpose);
std::string_view name(ReduceOp op);

/// Where the ranks move the elements of a tensor: on its GPU where NCCL does that, else on the CPU. Null: one
/// process, which moves nothing. Throws DeviceError for another GPU than the rank's, where NCCL moves.
Device moving_device(const Engine* engine, const char* op, const Tensor& x);

/// A call that was begun.
struct Call {
  std::shared_future<void> made;         ///< on a GPU: given to NCCL
  std::optional<cuda::Event> done = {};  ///< on a GPU
};
/// Waits until the data have moved. On a GPU the current stream waits, not the host. Throws DistError.
void wait(const Engine& engine, const Call& call);

/// Begins to reduce all elements of `x`.
Call begin_all_reduce(Engine& engine, const Tensor& x, ReduceOp op, const std::string& purpose);
/// Begins to gather `own` of all ranks in `all`; both are where the ranks move them.
Call begin_all_gather(Engine& engine, const Tensor& own, const Tensor& all, const std::string& purpose);
/// Begins to give all ranks the elements of `root`.
Call begin_broadcast(Engine& engine, const Tensor& x, int root, const std::string& purpose);

}  // namespace pleat::dist
