#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/reduce/reduce.h"

/// What functions under test take and give.

namespace pleat::test {

using Tensors = std::vector<Tensor>;

/// What a function under test gives: one tensor or several.
class Outputs {
 public:
  Outputs(Tensor one) : tensors_{std::move(one)} {}
  Outputs(Tensors several) : tensors_(std::move(several)) {}
  Outputs(ValuesIndices pair) : tensors_{std::move(pair.values), std::move(pair.indices)} {}
  Outputs(VarMean pair) : tensors_{std::move(pair.var), std::move(pair.mean)} {}
  const Tensors& tensors() const { return tensors_; }

 private:
  Tensors tensors_;
};

using Function = std::function<Outputs(const Tensors&)>;

// Inputs, the same for the same arguments, in float64.

/// Normally distributed.
Tensor normal(const Shape& shape, uint64_t seed = 1);
/// Uniform on [low, high).
Tensor uniform(const Shape& shape, double low, double high, uint64_t seed = 1);
/// int64, uniform on low ... high-1.
Tensor integers(const Shape& shape, int64_t low, int64_t high, uint64_t seed = 1);
/// `x`, which takes no part in differentiation, in the type and on the device of `like`.
Tensor constant(const Tensor& x, const Tensor& like);
/// bool, true with probability one half.
Tensor coins(const Shape& shape, uint64_t seed = 1);

}  // namespace pleat::test
