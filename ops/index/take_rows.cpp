#include <cstring>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/pinned_memory.h"
#include "pleat/ops/index/index_cuda.h"
#include "pleat/ops/index/kernels.h"

namespace pleat::ops {

Tensor take_rows(const Tensor& x, std::span<const int64_t> indices) {
  const RecordOp range("take_rows", x);
  check<ShapeError>(x.rank() >= 1, "take_rows: a tensor of rank 0 has no rows");
  const int64_t rows = x.size(0);
  for (const int64_t index : indices)
    check<IndexError>(index >= 0 && index < rows, "take_rows: row {} is outside [0, {}) of {}", index, rows,
                      x);
  const Tensor from = to_format(x, MemoryFormat::contiguous);
  Shape shape = from.shape();
  shape[0] = static_cast<int64_t>(indices.size());
  const Tensor to = empty(shape, {.dtype = from.dtype(), .device = from.device()});
  if (to.numel() == 0) return to;
  const int64_t inner = from.numel() / rows;
  if constexpr (with_cuda)
    if (from.device().is_cuda()) {
      const Tensor host = cuda::empty_pinned({shape[0]}, int64);
      std::memcpy(host.raw(), indices.data(), indices.size_bytes());
      index_select_cuda(from, to_device(host, from.device(), {.non_blocking = true}), to, rows, inner);
      return to;
    }
  const auto bytes = static_cast<std::size_t>(inner * size_of(from.dtype()));
  std::byte* out = to.raw();
  for (const int64_t index : indices) {
    std::memcpy(out, from.raw() + static_cast<std::size_t>(index) * bytes, bytes);
    out += bytes;
  }
  return to;
}

}  // namespace pleat::ops
