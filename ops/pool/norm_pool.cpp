// Host and device.
#include <array>
#include <string>

#include "pleat/autograd/tape.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/pointwise.h"
#include "pleat/ops/interpolate/linear_map.h"
#include "pleat/ops/pool/kernels.h"
#include "pleat/ops/spatial/linear_map_rows.h"

namespace pleat {
namespace {

/// What the gradient of a norm gives for each unit of an element: nothing where the norm is 0.
struct ByNorm {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& dy, const T& y) const {
    return where(y == 0, 0, dy / where(y == 0, 1, y));
  }
};

}  // namespace

Tensor ops::norm_pool(const char* op, const LinearMap& sums, const Tensor& x) {
  if constexpr (with_cuda) {
    Shape shape{x.size(0), x.size(1)};
    for (const SparseRows& rows : sums.dims) shape.push_back(rows.outputs());
    const MemoryFormat format = x.memory_format();
    const Tensor y = empty(shape, {.dtype = x.dtype(), .device = x.device(), .format = format});
    if (!apply_by_rows(op, sums, x, y, format, true)) return {};
    return record(
        op, y, {grad_of(x, [op, x = saved(x), y = saved(y), map = sums.transposed()](const Tensor& dy) {
          const std::string name = std::string(op) + "_backward";
          const LinearMapOptions back{.format = (*x).memory_format()};
          if (grad_enabled())
            return widened(*x) * linear_map(name, map, ByNorm{}(widened(dy), widened(*y)), back);
          const Tensor by_norm = binary_result(op, *y, dy, float32), dx = unary_result(*x, (*x).dtype());
          map_into<Floating>(op, float32, by_norm, std::array{dy, *y}, ByNorm{});
          const Tensor sum = apply_linear_map(name.c_str(), map, by_norm, back);
          map_into<Floating>(op, float32, dx, std::array{*x, sum}, Times{});
          return dx;
        })});
  }
  return {};
}

}  // namespace pleat
