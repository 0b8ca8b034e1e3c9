#pragma once

#include "pleat/ops/conv/problem.h"

namespace pleat::ops {

/// The simplest problem with the same elements in the same places, for operands that lie dense in
/// channels-last format (weights as [K, kernel..., C/g]), so that only sizes change and nothing moves:
/// - a kernel as large as its unpadded input is a linear layer: a 1x1 convolution with more channels;
/// - outermost dimensions with kernel 1, stride 1 and no padding join the batch: a (1, 3, 3) conv3d is a
/// conv2d,
///   and a 1x1 convolution one matrix product;
/// - neighbouring dimensions of that kind further in merge into one.
ConvProblem reduce(const ConvProblem& problem);

}  // namespace pleat::ops
