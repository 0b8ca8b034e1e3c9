#include "pleat/data/dataset.h"

#include <algorithm>
#include <numeric>

#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/alias.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/shape/join.h"

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

Tensor Dataset::targets() const {
  constexpr int64_t at_once = 256;  // samples, whose inputs are not kept
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < size(); first += at_once) {
    std::vector<int64_t> samples(static_cast<std::size_t>(std::min(at_once, size() - first)));
    std::iota(samples.begin(), samples.end(), first);
    parts.push_back(get(samples).targets);
    if (!parts.back().defined()) return {};
  }
  return parts.empty() ? Tensor() : cat(parts);
}

TensorDataset::TensorDataset(Tensor inputs, Tensor targets) : inputs_(samples("inputs", inputs)) {
  if (!targets.defined()) return;
  targets_ = samples("targets", targets);
  check<ShapeError>(inputs_.size(0) == targets_.size(0), "TensorDataset: {} inputs, but {} targets",
                    inputs_.size(0), targets_.size(0));
  check<DeviceError>(inputs_.device() == targets_.device(),
                     "TensorDataset: inputs and targets must be on one device, got {} and {}",
                     inputs_.device(), targets_.device());
}

std::shared_ptr<const Dataset> TensorDataset::copy() const { return std::make_shared<TensorDataset>(*this); }

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

AnyDataset::AnyDataset(Shared, std::shared_ptr<const Dataset> dataset) : pointer_(std::move(dataset)) {
  check<ValueError>(pointer_ != nullptr,
                    "data set: the pointer to it is empty; give it one that points to one");
}

std::shared_ptr<const Dataset> AnyDataset::whole_copy(const Dataset& dataset) {
  std::shared_ptr<const Dataset> copy = dataset.copy();
  const Dataset* const made = copy.get();
  check<ValueError>(made != nullptr && typeid(*made) == typeid(dataset),
                    "data set: a copy would lose what its own type adds to the one it is passed as; give a "
                    "std::shared_ptr to it, or its type a copy() of its own");
  return copy;
}

}  // namespace pleat::data
