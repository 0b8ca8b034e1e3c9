#include "pleat/data/subset.h"

#include <algorithm>

#include "pleat/core/base/format.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/shape/join.h"

namespace pleat::data {
namespace {

void check_index(const char* what, int64_t index, int64_t size) {
  check<IndexError>(index >= 0 && index < size, "{}: sample {} of {} asked for", what, index, size);
}

/// The parts' samples one after another.
Tensor joined(const char* what, const std::vector<Tensor>& parts) {
  const Tensor& first = parts.front();
  for (const Tensor& part : parts) {
    check<ValueError>(part.defined() == first.defined(), "ConcatDataset: only some of the data sets have {}",
                      what);
    if (!part.defined()) return {};
    check<DTypeError>(part.dtype() == first.dtype(),
                      "ConcatDataset: {} must have one type in all data sets, got {} and {}", what, first,
                      part);
  }
  return cat(parts);
}

}  // namespace

Subset::Subset(AnyDataset dataset, std::vector<int64_t> indices)
    : dataset_(std::move(dataset)), indices_(std::move(indices)) {
  for (const int64_t index : indices_) check_index("Subset", index, dataset_->size());
}

std::shared_ptr<const Dataset> Subset::copy() const { return std::make_shared<Subset>(*this); }

Batch Subset::get(std::span<const int64_t> indices) const {
  std::vector<int64_t> of_whole;
  of_whole.reserve(indices.size());
  for (const int64_t index : indices) {
    check_index("Subset", index, size());
    of_whole.push_back(indices_[static_cast<std::size_t>(index)]);
  }
  return dataset_->get(of_whole);
}

Tensor Subset::targets() const {
  const Tensor all = dataset_->targets();
  return all.defined() ? ops::take_rows(all, indices_) : all;
}

ConcatDataset::ConcatDataset(std::vector<AnyDataset> datasets) : datasets_(std::move(datasets)) {
  check<ValueError>(!datasets_.empty(), "ConcatDataset: needs at least one data set");
  int64_t end = 0;
  for (const AnyDataset& one : datasets_) {
    check<DeviceError>(
        one->device() == device(),
        "ConcatDataset: the data sets must be on one device, got {} and {}; move one with to()", device(),
        one->device());
    ends_.push_back(end += one->size());
  }
}

std::shared_ptr<const Dataset> ConcatDataset::copy() const { return std::make_shared<ConcatDataset>(*this); }

Batch ConcatDataset::get(std::span<const int64_t> indices) const {
  std::vector<std::vector<int64_t>> samples(datasets_.size()), places(datasets_.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    check_index("ConcatDataset", indices[i], size());
    const auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, indices[i]) - ends_.begin());
    samples[part].push_back(indices[i] - (part == 0 ? 0 : ends_[part - 1]));
    places[part].push_back(static_cast<int64_t>(i));
  }
  std::vector<Tensor> inputs, targets;
  std::map<std::string, std::vector<Tensor>> extras;
  std::vector<int64_t> order(indices.size());  // where each sample stands in the parts one after another
  int64_t place = 0;
  for (std::size_t part = 0; part < samples.size(); ++part) {
    if (samples[part].empty() && !(indices.empty() && part == 0)) continue;
    const Batch batch = datasets_[part]->get(samples[part]);
    check<ValueError>(
        !batch.extras.contains("boxes"),
        "ConcatDataset: boxes name pictures by their places in a batch; make one data set of both: "
        "a CSV file that lists all pictures");
    inputs.push_back(batch.inputs);
    targets.push_back(batch.targets);
    for (const auto& [name, extra] : batch.extras) extras[name].push_back(extra);
    for (const int64_t i : places[part]) order[static_cast<std::size_t>(i)] = place++;
  }
  const bool in_order = std::ranges::is_sorted(order);
  const auto all = [&](const char* what, const std::vector<Tensor>& parts) {
    check<ValueError>(parts.size() == inputs.size(), "ConcatDataset: only some of the data sets have {}",
                      what);
    const Tensor together = parts.size() == 1 ? parts.front() : joined(what, parts);
    return in_order || !together.defined() ? together : ops::take_rows(together, order);
  };
  Batch batch{all("inputs", inputs), all("targets", targets)};
  for (const auto& [name, parts] : extras) batch.extras[name] = all(name.c_str(), parts);
  return batch;
}

Tensor ConcatDataset::targets() const {
  std::vector<Tensor> parts;
  for (const AnyDataset& one : datasets_)
    if (one->size() > 0) parts.push_back(one->targets());
  return parts.empty() ? Tensor() : joined("targets", parts);
}

}  // namespace pleat::data
