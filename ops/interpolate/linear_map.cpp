#include "pleat/ops/interpolate/linear_map.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/trace.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// The factor of a map that is a sum over everything times a factor, as a pool over the whole input is.
std::optional<double> factor_of_sum(const ops::LinearMap& map) {
  double factor = 1;
  for (const ops::SparseRows& rows : map.dims) {
    const bool is_sum = rows.outputs() == 1 && std::ssize(rows.weight) == rows.inputs &&
                        std::all_of(rows.weight.begin(), rows.weight.end(), [](double w) { return w == 1; });
    if (!is_sum) return std::nullopt;
    factor *= rows.scale[0];
  }
  return factor;
}

/// Such a map as a reduction. Its gradient is the same number everywhere, which takes no memory.
Tensor scaled_sum(const std::string& name, double factor, const Tensor& x) {
  const RecordOp range(name.c_str(), x);
  std::vector<int64_t> spatial;
  double count = 1;
  for (int64_t d = 2; d < x.rank(); ++d) {
    spatial.push_back(d);
    count *= static_cast<double>(x.size(d));
  }
  Tensor y = ops::reduce_mean(x, Dims(spatial), true);
  if (std::abs(factor * count - 1) > 1e-9) y = no_grad([&] { return y * (factor * count); });
  return record(
      name, y,
      {grad_of(x, [factor, shape = x.shape()](const Tensor& dy) { return expand(dy * factor, shape); })});
}

}  // namespace

std::vector<Tensor> traced_operands(const Tensor& x, const ops::LinearMap& map) {
  if (detail::call_observer == nullptr) return {x};
  std::vector<Tensor> operands{x};
  for (const ops::SparseRows& rows : map.dims) {
    std::vector<double> matrix(static_cast<std::size_t>(rows.outputs() * rows.inputs));
    for (int64_t o = 0; o < rows.outputs(); ++o)
      for (int64_t tap = rows.first[static_cast<std::size_t>(o)];
           tap < rows.first[static_cast<std::size_t>(o) + 1]; ++tap) {
        const auto t = static_cast<std::size_t>(tap);
        matrix[static_cast<std::size_t>(o * rows.inputs + rows.index[t])] +=
            rows.weight[t] * rows.scale[static_cast<std::size_t>(o)];
      }
    operands.push_back(ops::cast(from_vector(matrix, {rows.outputs(), rows.inputs}, x.device()), x.dtype()));
  }
  return operands;
}

Tensor linear_map(const std::string& name, const ops::LinearMap& map, const Tensor& x,
                  const ops::LinearMapOptions& options) {
  const std::optional<double> factor = factor_of_sum(map);
  // On a GPU that would be more launches. An expanded input may have more elements than can be added up;
  // the map refuses it.
  if (factor && x.device().is_cpu() && x.is_dense() &&
      !ops::wants_reference(name.c_str(), options.implementation))
    return scaled_sum(name, *factor, x);
  const Tensor y = ops::apply_linear_map(name.c_str(), map, x, options);
  if (!autograd::anything_to_record({x})) return record(name, y, {});
  // The gradient lies as x does, however small the result was.
  const ops::LinearMapOptions back{.implementation = options.implementation, .format = x.memory_format()};
  return record(name, y, {grad_of(x, [name, back, map = map.transposed()](const Tensor& dy) {
                  return linear_map(name + "_backward", map, dy, back);
                })});
}

}  // namespace pleat
