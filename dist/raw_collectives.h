// Private header: not installed.
#pragma once

#include <future>
#include <string>

#include "pleat/core/tensor/tensor.h"
#include "pleat/dist/communicator.h"
#include "pleat/dist/engine.h"

/// Collectives on row-major tensors, off the tape. `purpose` is compared between the ranks, and part of
/// errors.

namespace pleat::dist {

/// Throws DTypeError where elements of the type cannot be reduced in this way.
void check_reducible(const char* op, const Tensor& x, ReduceOp how);

/// "all_reduce(sum) of [3, 4] float32".
std::string call_text(const char* op, const Tensor& x, std::string_view how, const std::string& purpose);
std::string_view name(ReduceOp op);

/// Begins to reduce all elements of `x`, in place. Elements on a GPU go through the CPU, for which the call
/// waits.
std::shared_future<void> begin_all_reduce(Engine& engine, const Tensor& x, ReduceOp op,
                                          const std::string& purpose);
/// Begins to give all ranks the elements of `root`, in place.
std::shared_future<void> begin_broadcast(Engine& engine, const Tensor& x, int root,
                                         const std::string& purpose);

}  // namespace pleat::dist
