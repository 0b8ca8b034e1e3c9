#include "pleat/data/dataset.h"

#include <cstring>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"

namespace pleat::data {
namespace {

/// Rows of a row-major tensor, copied.
Tensor take_rows(const Tensor& from, std::span<const int64_t> indices) {
  Shape shape = from.shape();
  const int64_t rows = shape[0];
  shape[0] = static_cast<int64_t>(indices.size());
  const Tensor to = empty(shape, {.dtype = from.dtype()});
  const int64_t bytes = rows == 0 ? 0 : from.numel() / rows * size_of(from.dtype());
  std::byte* out = to.raw();
  for (const int64_t index : indices) {
    check<IndexError>(index >= 0 && index < rows, "dataset: sample {} of {} asked for", index, rows);
    std::memcpy(out, from.raw() + index * bytes, static_cast<std::size_t>(bytes));
    out += bytes;
  }
  return to;
}

Tensor on_cpu(const char* what, const Tensor& tensor) {
  check<ShapeError>(tensor.rank() >= 1, "TensorDataset: {} need a first dimension of samples, got {}", what,
                    tensor.describe());
  check<DeviceError>(tensor.device().is_cpu(), "TensorDataset: {} must be on the CPU, got {}", what,
                     tensor.describe());
  return ops::to_format(tensor.detach(), MemoryFormat::contiguous);
}

}  // namespace

TensorDataset::TensorDataset(Tensor inputs, Tensor targets) : inputs_(on_cpu("inputs", inputs)) {
  if (!targets.defined()) return;
  targets_ = on_cpu("targets", targets);
  check<ShapeError>(inputs_.size(0) == targets_.size(0), "TensorDataset: {} inputs, but {} targets",
                    inputs_.size(0), targets_.size(0));
}

Batch TensorDataset::get(std::span<const int64_t> indices) const {
  return {take_rows(inputs_, indices), targets_.defined() ? take_rows(targets_, indices) : Tensor()};
}

}  // namespace pleat::data
