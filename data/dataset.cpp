#include "pleat/data/dataset.h"

#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/alias.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/index/kernels.h"

namespace pleat::data {
namespace {

Tensor samples(const char* what, const Tensor& tensor) {
  check<ShapeError>(tensor.rank() >= 1, "TensorDataset: {} need a first dimension of samples, got {}", what,
                    tensor);
  return ops::to_format(ops::alias(tensor), MemoryFormat::contiguous);
}

double bytes_of(const Tensor& t) {
  return t.defined() ? static_cast<double>(t.numel()) * static_cast<double>(size_of(t.dtype())) : 0;
}

}  // namespace

TensorDataset::TensorDataset(Tensor inputs, Tensor targets) : inputs_(samples("inputs", inputs)) {
  if (!targets.defined()) return;
  targets_ = samples("targets", targets);
  check<ShapeError>(inputs_.size(0) == targets_.size(0), "TensorDataset: {} inputs, but {} targets",
                    inputs_.size(0), targets_.size(0));
  check<DeviceError>(inputs_.device() == targets_.device(),
                     "TensorDataset: inputs and targets must be on one device, got {} and {}",
                     inputs_.device(), targets_.device());
}

Batch TensorDataset::get(std::span<const int64_t> indices) const {
  for (const int64_t index : indices)
    check<IndexError>(index >= 0 && index < size(), "dataset: sample {} of {} asked for", index, size());
  return {ops::take_rows(inputs_, indices),
          targets_.defined() ? ops::take_rows(targets_, indices) : Tensor()};
}

TensorDataset TensorDataset::to(Device device) const {
  return TensorDataset(ops::to_device(inputs_, device),
                       targets_.defined() ? ops::to_device(targets_, device) : Tensor());
}

bool TensorDataset::fits(Device device, double share) const {
  if (device == inputs_.device() || device.is_cpu()) return true;
  return bytes_of(inputs_) + bytes_of(targets_) <=
         share * static_cast<double>(cuda::memory_info(device).free);
}

}  // namespace pleat::data
