#pragma once

#include <cstdint>
#include <optional>

#include "pleat/core/base/required.h"
#include "pleat/core/tensor/tensor.h"

/// Elements that meet in one place, and places named by vectors of indices; differentiable to any order.
/// Indices are of any integer type, negative ones counting from the end; they have no gradients. Each is
/// checked before anything is written: IndexError names the first one outside its range. On CUDA the check
/// makes the host wait.

namespace pleat {

/// What becomes of all elements that meet in one place, those of integers in their own type.
enum class ScatterReduction : unsigned char {
  sum,   ///< ONNX: add
  prod,  ///< ONNX: mul
  mean,  ///< of integers rounded down
  amax,  ///< the largest; NaN where one is
  amin   ///< the smallest; NaN where one is
};

struct ScatterReduceOptions {
  Required<ScatterReduction> reduce;
  bool include_self = true;  ///< x's own element is one of those that meet; else it is replaced
};
/// A copy of x [..] with source[i][j][k] reduced into [index[i][j][k]][j][k] for dim = 0, and so on for the
/// others. `source` has index's shape and x's type; `index` x's rank and, but for `dim`, sizes of at most
/// x's. What meets is taken in the order of `dim`, half types in float32. Equal extremes share the gradient
/// evenly; that of a product is right where factors are 0, too. Throws ShapeError, IndexError, DTypeError for
/// bool.
///
///   scatter_reduce(x, 0, index, source, {.reduce = ScatterReduction::amax});
Tensor scatter_reduce(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source,
                      const ScatterReduceOptions& options);
/// In place. Returns `x`.
const Tensor& scatter_reduce_(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source,
                              const ScatterReduceOptions& options);

struct GatherNdOptions {
  int64_t batch_dims = 0;  ///< b: leading dimensions that x and the indices share
};
/// ONNX's GatherND: x's parts that the vectors of indices [b..., m..., k] name along the k dimensions after
/// the batch's: [b..., m..., the rest of x's sizes]. Throws ShapeError, ValueError, IndexError, DTypeError.
///
///   gather_nd(x, indices)  // x[indices[i][0], indices[i][1]] for each i of indices [m, 2]
Tensor gather_nd(const Tensor& x, const Tensor& indices, GatherNdOptions options = {});

struct ScatterNdOptions {
  std::optional<ScatterReduction> reduction = {};  ///< none: written; of several the last stands
};
/// ONNX's ScatterND: a copy of x with `updates`, of x's type and the shape [m..., the rest of x's sizes],
/// written to or reduced into x's parts that the vectors of indices [m..., k] name. Throws as gather_nd.
Tensor scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& updates,
                  ScatterNdOptions options = {});

}  // namespace pleat
