#pragma once

#include <cstdint>

#include "pleat/core/tensor/tensor.h"
#include "pleat/dist/communicator.h"
#include "pleat/nn/module.h"
#include "pleat/ops/norm/batch_norm.h"

namespace pleat::dist {

/// Batch normalisation by the statistics of all ranks' samples together, as one process with all of them
/// computes it: values, running statistics, and gradients of any order, which are those of the sum of all
/// ranks' losses. The ranks exchange mean, variance and number of elements of each channel (Chan, Golub and
/// LeVeque, "Algorithms for computing the sample variance", 1983): one small collective in each direction.
/// All ranks must call it together. Not in training, and in a job of one process, it is pleat::batch_norm.
///
/// It is made of functions of the tape, and takes several passes over memory where batch_norm takes one:
/// the options' implementations have no meaning here. Throws ShapeError, DTypeError and
/// ValueError as batch_norm does, ValueError also where all ranks have one value of a channel in all;
/// DistError.
Tensor sync_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                       const Tensor& running_var, const Communicator& world,
                       const BatchNormOptions& options = {});

/// Makes every nn::BatchNorm in a network call sync_batch_norm. Returns how many there are; does nothing in a
/// job of one process. Copies of the network do so, too.
int64_t convert_sync_batch_norm(nn::Module& net, const Communicator& world);

}  // namespace pleat::dist
