#pragma once

#include "pleat/core/base/required.h"
#include "pleat/nn/layer.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::nn {

struct FlattenOptions {
  int64_t first = 1;
  int64_t last = -1;
};

/// Joins dimensions `first` to `last` into one: [N, C, H, W] to [N, C * H * W].
using Flatten = FunctionLayer<"Flatten", flatten, &FlattenOptions::first, &FlattenOptions::last>;

struct UnflattenOptions {
  int64_t dim = 1;
  Required<Sizes> sizes;
};

/// Splits dimension `dim` into several; one size may be -1.
using Unflatten = FunctionLayer<"Unflatten", unflatten, &UnflattenOptions::dim, &UnflattenOptions::sizes>;

}  // namespace pleat::nn
