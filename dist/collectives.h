#pragma once

#include <cstdint>
#include <vector>

#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/dist/communicator.h"

/// Functions that all ranks call together, in the same order and with tensors of the same shape and type. In
/// a job of one process they copy. All throw DistError when the ranks differ or one does not come, before
/// anything is changed.
///
/// Where Communicator::transport() names NCCL, it moves tensors on GPUs, in the order of the current stream:
/// the host does not wait. All throw DeviceError there for another GPU than Communicator::device(). Else such
/// tensors go through the CPU.
///
/// The differentiable ones are those of the sum of all ranks' losses: a gradient goes back to every rank
/// whose input had a part in the result. Their backward is a collective again, so all ranks must call
/// backward, too. Results of the same program with the same number of ranks are the same to the bit where the
/// library below adds in a fixed order, as Open MPI does, and NCCL on the same GPUs. What min and max make of
/// NaN is that library's choice.

namespace pleat::dist {

/// The elements of all ranks reduced, on all ranks. Differentiable for sum and mean; AutogradError for others
/// of an input that requires a gradient. Throws DTypeError for a mean of integers, and for sums of bool.
Tensor all_reduce(const Tensor& x, const Communicator& world, ReduceOp op = ReduceOp::sum);
/// The same in place, off the tape.
void all_reduce_(const Tensor& x, const Communicator& world, ReduceOp op = ReduceOp::sum);

/// [n, ...] of each rank, one after the other: [ranks * n, ...]. Differentiable. Throws ShapeError for rank
/// 0.
Tensor all_gather(const Tensor& x, const Communicator& world);

/// [ranks * n, ...] of each rank, reduced; each rank gets its part [n, ...]. Differentiable for sum and mean.
/// Throws ShapeError unless the first dimension is divisible by the number of ranks, and what all_reduce
/// does.
Tensor reduce_scatter(const Tensor& x, const Communicator& world, ReduceOp op = ReduceOp::sum);

/// The elements of rank `root`, on all ranks. Differentiable: all gradients go to the root's input. Throws
/// IndexError for a rank that does not exist.
Tensor broadcast(const Tensor& x, const Communicator& world, int root = 0);
/// The same in place, off the tape.
void broadcast_(const Tensor& x, const Communicator& world, int root = 0);

/// Sends a copy of a tensor to one rank, which must receive it, and does not wait for that. Off the tape.
/// Throws IndexError for a rank that does not exist, ValueError for the own.
void send(const Tensor& x, const Communicator& world, int to);
/// The next tensor that a rank has sent to this one.
Tensor recv(const Communicator& world, int from, Device device = default_device());

/// [n] of each rank, whose n may differ, by ranks. On the CPU, off the tape. Throws ShapeError for another
/// number of dimensions.
std::vector<Tensor> all_gather_lists(const Tensor& x, const Communicator& world);

/// A metric of the samples of all ranks, on all of them to the bit the same: of train/metrics.h, or one of
/// your own with reset(), state() and merge(). The rank's own stays as it is.
template <class Metric>
Metric merge_metric(const Metric& metric, const Communicator& world) {
  Metric all = metric;
  all.reset();
  for (const Tensor& state : all_gather_lists(metric.state(), world)) all.merge(state);
  return all;
}

/// Waits until all ranks have come here.
void barrier(const Communicator& world);

}  // namespace pleat::dist
