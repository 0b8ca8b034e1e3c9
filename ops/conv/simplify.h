#pragma once

#include "pleat/ops/conv/problem.h"

namespace pleat::ops {

/// The simplest problem with the same elements in the same places, for operands that all lie dense in one
/// format (weights [K, C/g, kernel...], too), so that only sizes change and nothing moves:
/// - a kernel as large as its unpadded input is a linear layer: a 1x1 convolution with more channels;
/// - in channels-last format, outermost dimensions with kernel 1, stride 1 and no padding join the batch: a
///   (1, 3, 3) conv3d is a conv2d, and a 1x1 convolution one matrix product;
/// - neighbouring dimensions of that kind merge into one.
ConvProblem simplify(const ConvProblem& problem, MemoryFormat format);

}  // namespace pleat::ops
