#include "pleat/data/split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::data {
namespace {

TensorDataset selected(const TensorDataset& dataset, const std::vector<int64_t>& samples) {
  const Batch batch = dataset.get(samples);
  return TensorDataset(batch.inputs, batch.targets);
}

}  // namespace

TensorDataset in_memory(const Dataset& dataset) {
  std::vector<int64_t> all(static_cast<std::size_t>(dataset.size()));
  std::iota(all.begin(), all.end(), 0);
  const Batch batch = dataset.get(all);
  return TensorDataset(batch.inputs, batch.targets);
}

std::pair<TensorDataset, TensorDataset> split_by_class(const TensorDataset& dataset, Real share,
                                                       uint64_t seed) {
  const double part = share;
  check<ValueError>(part > 0 && part < 1, "split_by_class: share must be above 0 and below 1, got {}", part);
  const Tensor& targets = dataset.targets();
  check<ShapeError>(targets.defined() && targets.rank() == 1, "split_by_class: targets must be [N]");
  check<DTypeError>(targets.dtype() == int64, "split_by_class: targets must be int64, got {}", targets);
  std::map<int64_t, std::vector<int64_t>> by_class;
  const std::vector<int64_t> labels = ops::to_device(targets, Device{}).to_vector<int64_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) by_class[labels[i]].push_back(static_cast<int64_t>(i));
  Generator generator(seed);
  std::vector<int64_t> first, second;
  for (const auto& [label, samples] : by_class) {
    const auto count = static_cast<int64_t>(samples.size());
    const auto rounded = static_cast<int64_t>(std::lround(part * static_cast<double>(count)));
    const int64_t taken = count < 2 ? 0 : std::clamp<int64_t>(rounded, 1, count - 1);
    const std::vector<int64_t> order = randperm(count, Device{}, generator).to_vector<int64_t>();
    for (int64_t i = 0; i < count; ++i)
      (i < taken ? second : first)
          .push_back(samples[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])]);
  }
  check<ValueError>(
      !first.empty() && !second.empty(),
      "split_by_class: of {} samples of {} classes one part would be empty; a class needs two samples "
      "to be in both",
      labels.size(), by_class.size());
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  return {selected(dataset, first), selected(dataset, second)};
}

ChannelStatistics channel_statistics(const TensorDataset& images) {
  const Tensor& all = images.inputs();
  check<ShapeError>(all.rank() == 4, "channel_statistics: images must be [N, C, H, W], got {}", all);
  check<ValueError>(all.numel() > 0, "channel_statistics: there are no pixels in {}", all);
  const double scale = all.dtype() == uint8 ? 255 : 1;
  const auto channels = static_cast<std::size_t>(all.size(1));
  std::vector<double> sums(channels, 0), squares(channels, 0);
  constexpr int64_t at_once = 256;  // images, which are wider as float64
  for (int64_t first = 0; first < images.size(); first += at_once) {
    std::vector<int64_t> samples(static_cast<std::size_t>(std::min(at_once, images.size() - first)));
    std::iota(samples.begin(), samples.end(), first);
    const Tensor part = ops::cast(images.get(samples).inputs, float64);
    const std::vector<double> sum = pleat::sum(part, {0, 2, 3}).to_vector<double>();
    const std::vector<double> norm = pleat::norm(part, {0, 2, 3}).to_vector<double>();
    for (std::size_t c = 0; c < channels; ++c) sums[c] += sum[c], squares[c] += norm[c] * norm[c];
  }
  ChannelStatistics result;
  const auto count = static_cast<double>(all.numel() / all.size(1));
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = sums[c] / count, variance = squares[c] / count - mean * mean;
    result.mean.push_back(mean / scale);
    result.std.push_back(variance > 1e-12 * mean * mean ? std::sqrt(variance) / scale : 1);
  }
  return result;
}

}  // namespace pleat::data
