#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include "pleat/autograd/functions.h"
#include "pleat/core/tensor/tensor.h"

/// Reductions over any dimensions (none named: all). With `keepdim` a reduced dimension stays with size 1.
///
/// Floating elements of any type are accumulated in float64, in blocks that are merged as a binary tree, and
/// the result is rounded once to the type of the input; results are the same, to the bit, for any number of
/// threads. (On the CPU `sum` and `mean` add float32 in fours first: an error of 2^-23 of the sum of
/// magnitudes at most.) The result keeps the order of a dense input's dimensions in memory.
///
/// All throw IndexError for a dimension out of range, ValueError for a dimension named twice.

namespace pleat {

struct ReduceOptions {
  Dims dim = {};  ///< empty: all
  bool keepdim = false;
};
struct VarOptions {
  Dims dim = {};  ///< empty: those named beside the options, else all
  /// The sum of squares is divided by count - correction: 1 is unbiased, 0 the plain mean.
  double correction = 1;
  bool keepdim = false;
};
struct VarMean {
  Tensor var;
  Tensor mean;
};
struct NormOptions {
  Dims dim = {};  ///< empty: those named beside the options, else all
  double p = 2;   ///< infinity: the largest |x|; -infinity: the smallest; 0: how many are not 0
  bool keepdim = false;
};
struct ArgmaxOptions {
  std::optional<int64_t> dim = {};  ///< none: all elements, in row-major order
  bool keepdim = false;
};
/// Elements, and where along the reduced dimension they were found (int64).
struct ValuesIndices {
  Tensor values;
  Tensor indices;
};

/// The sum. Integers and bool give int64. Of nothing: 0.
Tensor sum(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);
/// The mean. Integers and bool give float32. Of nothing: NaN.
Tensor mean(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);
/// How many elements are not 0 (int64; NaN counts), which has no derivative.
Tensor count_nonzero(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);

/// The product; integers and bool give int64. Of nothing: 1. Differentiable also where factors are 0, and to
/// any order.
Tensor prod(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);

/// Mean squared distance from the mean; each block about its own mean, blocks merged by the formula of Chan,
/// Golub and LeVeque (1979), so that a large mean costs no digits. Integers and bool give float32. NaN where
/// count <= correction.
Tensor var(const Tensor& x, const Dims& dims = {}, VarOptions options = {});
/// The square root of `var`. Where it is 0, its derivative is taken as 0. (A function named std would hide the
/// standard library's namespace.)
Tensor stddev(const Tensor& x, const Dims& dims = {}, VarOptions options = {});
/// Variance and mean in one pass.
VarMean var_mean(const Tensor& x, const Dims& dims = {}, VarOptions options = {});

/// (sum of |x|^p)^(1/p), over all reduced elements as one vector. Integers and bool give float32. Its
/// derivative is 0 where it is 0; with p = infinity equal magnitudes share it evenly.
Tensor norm(const Tensor& x, const Dims& dims = {}, NormOptions options = {});

/// log(sum of exp(x)) without overflow. Integers and bool give float32. Of nothing: -infinity.
Tensor logsumexp(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);

/// Whether any (all) elements are not 0, as bool; NaN is not 0. Of nothing: false (true). Truth has no
/// derivative.
Tensor any(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);
Tensor all(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);

/// The largest (smallest) element; a NaN beats all. The type is that of x. The gradient is shared evenly by
/// all elements that are equal to it. Throws ShapeError where there are no elements.
Tensor max(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);
Tensor min(const Tensor& x, const Dims& dims = {}, Flag keepdim = false);

/// The largest (smallest) elements along one dimension and the index of the first of equal ones, to which the
/// whole gradient of `values` goes; the first NaN beats all. Throws ShapeError where there are no elements.
ValuesIndices max_with_indices(const Tensor& x, Integer dim, Flag keepdim = false);
ValuesIndices min_with_indices(const Tensor& x, Integer dim, Flag keepdim = false);
/// The index of the largest (smallest) element along `dim`; without `dim` the row-major place among all.
/// Compared with several that throws ShapeError: of `argmax(logits) == labels` nothing good can come.
Tensor argmax(const Tensor& x, std::optional<Integer> dim = {}, Flag keepdim = false);
Tensor argmin(const Tensor& x, std::optional<Integer> dim = {}, Flag keepdim = false);

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
template <std::same_as<ReduceOptions> O = ReduceOptions>
Tensor any(const Tensor& x, O options) {
  return any(x, options.dim, options.keepdim);
}
template <std::same_as<ReduceOptions> O = ReduceOptions>
Tensor all(const Tensor& x, O options) {
  return all(x, options.dim, options.keepdim);
}
template <std::same_as<ArgmaxOptions> O = ArgmaxOptions>
Tensor argmax(const Tensor& x, O options) {
  return argmax(x, options.dim, options.keepdim);
}
template <std::same_as<ArgmaxOptions> O = ArgmaxOptions>
Tensor argmin(const Tensor& x, O options) {
  return argmin(x, options.dim, options.keepdim);
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
