#pragma once

#include <concepts>
#include <utility>

#include "pleat/autograd/functions.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/reduce/reduce_kernels.h"

/// Differentiable reductions over any dimensions (none named: all). With `keepdim` a reduced dimension stays
/// with size 1. What each computes, and the errors: ops/reduce/reduce_kernels.h.

namespace pleat {

Tensor sum(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);  ///< the sum
Tensor mean(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);  ///< the mean
/// How many elements are not 0 (int64; NaN counts), which has no derivative.
Tensor count_nonzero(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);

/// The product. Differentiable also where factors are 0, and to any order.
Tensor prod(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);

Tensor var(const Tensor& x, const Dims& dims = {}, VarOptions options = {});
/// The square root of `var`. Where it is 0, its derivative is taken as 0.
Tensor stddev(const Tensor& x, const Dims& dims = {}, VarOptions options = {});
VarMean var_mean(const Tensor& x, const Dims& dims = {},
                 VarOptions options = {});  ///< variance and mean in one pass

/// (sum of |x|^p)^(1/p). Its derivative is 0 where it is 0; with p = infinity equal magnitudes share it
/// evenly.
Tensor norm(const Tensor& x, const Dims& dims = {}, NormOptions options = {});
Tensor logsumexp(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);

/// The largest (smallest) element. The gradient is shared evenly by all elements that are equal to it.
Tensor max(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);
Tensor min(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);

/// The largest (smallest) elements along one dimension, with the index of the first of equal ones, to which
/// the whole gradient of `values` goes.
ValuesIndices max_with_indices(const Tensor& x, Integer dim, Flag keepdim = false);
ValuesIndices min_with_indices(const Tensor& x, Integer dim, Flag keepdim = false);

/// Indices and truth have no derivatives.
using ops::all;
using ops::any;
using ops::argmax;
using ops::argmin;

// By name: `sum(x, {.keepdim = true})`, `var(x, {.dim = 1, .correction = 0})`. Templates, so that `sum(x,
// {1})` means the dimension: what fits both is never theirs.
template <std::same_as<ReduceOptions> O = ReduceOptions>
Tensor sum(const Tensor& x, O options) {
  return sum(x, options.dim, options.keepdim);
}
template <std::same_as<ReduceOptions> O = ReduceOptions>
Tensor mean(const Tensor& x, O options) {
  return mean(x, options.dim, options.keepdim);
}
template <std::same_as<ReduceOptions> O = ReduceOptions>
Tensor prod(const Tensor& x, O options) {
  return prod(x, options.dim, options.keepdim);
}
template <std::same_as<ReduceOptions> O = ReduceOptions>
Tensor logsumexp(const Tensor& x, O options) {
  return logsumexp(x, options.dim, options.keepdim);
}
template <std::same_as<ReduceOptions> O = ReduceOptions>
Tensor max(const Tensor& x, O options) {
  return max(x, options.dim, options.keepdim);
}
template <std::same_as<ReduceOptions> O = ReduceOptions>
Tensor min(const Tensor& x, O options) {
  return min(x, options.dim, options.keepdim);
}
template <std::same_as<VarOptions> O = VarOptions>
Tensor var(const Tensor& x, O options) {
  const Dims dims = std::exchange(options.dim, {});
  return var(x, dims, options);
}
template <std::same_as<VarOptions> O = VarOptions>
Tensor stddev(const Tensor& x, O options) {
  const Dims dims = std::exchange(options.dim, {});
  return stddev(x, dims, options);
}
template <std::same_as<VarOptions> O = VarOptions>
VarMean var_mean(const Tensor& x, O options) {
  const Dims dims = std::exchange(options.dim, {});
  return var_mean(x, dims, options);
}
template <std::same_as<NormOptions> O = NormOptions>
Tensor norm(const Tensor& x, O options) {
  const Dims dims = std::exchange(options.dim, {});
  return norm(x, dims, options);
}

}  // namespace pleat
