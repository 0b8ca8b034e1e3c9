// Host and device.
#include "pleat/ops/spatial/linear_map.h"

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/spatial/linear_map_by_index.h"
#include "pleat/ops/spatial/linear_map_cpu.h"
#include "pleat/ops/spatial/linear_map_rows.h"

namespace pleat::ops {

SparseRows SparseRows::transposed() const {
  SparseRows result;
  result.inputs = outputs();
  std::vector<std::vector<std::pair<int64_t, double>>> rows(static_cast<std::size_t>(inputs));
  for (int64_t o = 0; o < outputs(); ++o)
    for (int64_t tap = first[static_cast<std::size_t>(o)]; tap < first[static_cast<std::size_t>(o) + 1];
         ++tap) {
      const auto at = static_cast<std::size_t>(tap);
      rows[static_cast<std::size_t>(index[at])].emplace_back(o,
                                                             weight[at] * scale[static_cast<std::size_t>(o)]);
    }
  for (const auto& row : rows) {
    for (const auto& [output, tap_weight] : row) result.add_tap(output, tap_weight);
    result.end_row(1);
  }
  return result;
}

void check_rows(const char* op, int64_t outputs, int64_t taps_each) {
  // An index and a weight for each tap, as much for each row; and the same again in the kernel's types, and
  // for the adjoint.
  constexpr int64_t bytes = 4 * 2 * 8;
  check_host_memory(
      op, checked_multiply(checked_multiply(outputs, checked_add(taps_each, 1, op), op), bytes, op));
}

LinearMap LinearMap::transposed() const {
  LinearMap result;
  for (const SparseRows& rows : dims) result.dims.push_back(rows.transposed());
  return result;
}

bool wants_reference(const char* op, const std::string& implementation) {
  check<ValueError>(implementation.empty() || implementation == "native" || implementation == "reference",
                    "{}: implementation \"{}\" does not exist; there are: native, reference", op,
                    implementation);
  return implementation == "reference";
}

Tensor apply_linear_map(const char* op, const LinearMap& map, const Tensor& x,
                        const LinearMapOptions& options) {
  const RecordOp range(op, x);
  check<ShapeError>(x.rank() == static_cast<int64_t>(map.dims.size()) + 2,
                    "{}: needs [N, C, and {} spatial dimensions], got {}", op, map.dims.size(), x);
  check<DTypeError>(is_floating(x.dtype()), "{}: input must be floating, got {}; convert it with to(float32)",
                    op, x);
  const bool reference = wants_reference(op, options.implementation);
  Shape shape{x.size(0), x.size(1)};
  for (std::size_t d = 0; d < map.dims.size(); ++d) {
    check<ShapeError>(x.shape()[d + 2] == map.dims[d].inputs,
                      "{}: needs size {} in spatial dimension {}, got {}", op, map.dims[d].inputs, d, x);
    shape.push_back(map.dims[d].outputs());
  }
  const MemoryFormat format = options.format.value_or(x.memory_format());
  if (reference || x.device().is_cuda()) {
    const Tensor y = empty(shape, {.dtype = x.dtype(), .device = x.device(), .format = format});
    if constexpr (with_cuda)
      if (!reference && x.dtype() != float64 && apply_by_rows(op, map, x, y, format)) return y;
    Floating::dispatch(x.dtype(), [&]<class T>(Type<T>) { apply_by_index<T>(op, map, x, y, format); });
    return y;
  }
  const Tensor dense = to_format(cast(x, compute_dtype(x.dtype())), format);
  const Tensor y = empty(shape, {.dtype = dense.dtype(), .device = Device(), .format = format});
  if (y.numel() == 0) return cast(y, x.dtype());
  const ImagesView view{x.size(0), x.size(1), format == MemoryFormat::channels_last};
  if (dense.dtype() == float64)
    apply_on_cpu(map, dense.data<double>(), y.data<double>(), view);
  else
    apply_on_cpu(map, dense.data<float>(), y.data<float>(), view);
  return cast(y, x.dtype());
}

}  // namespace pleat::ops
