// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/ops/pool/max_pool_functors.h"

/// Max pooling of plain arrays on the CPU. T is float or double, Index int32 or int64.

namespace pleat::ops {

/// The maxima over the windows of x, and their places unless `indices` is null. Both tensors have one layout.
template <class T, class Index>
void max_pool_on_cpu(const WindowRules& windows, int64_t images, const PlaneSteps& in, const PlaneSteps& out,
                     const T* x, T* values, Index* indices);

/// The gradient `dx` of that.
template <class T, class Index>
void max_pool_backward_on_cpu(int64_t images, const MaxPoolScatter<T, Index>& scatter);

}  // namespace pleat::ops
