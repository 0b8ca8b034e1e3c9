#include "pleat/data/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/data/labels.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::data {
namespace {

/// The samples in the order in which parts take them: at random, and class after class when stratified.
std::vector<int64_t> drawn_order(const char* op, const Dataset& dataset, const SplitOptions& options) {
  const int64_t size = dataset.size();
  Generator generator(options.seed);
  std::vector<int64_t> order = randperm(size, Device{}, generator).to_vector<int64_t>();
  if (!options.stratify) return order;
  const std::vector<int64_t> labels = labels_of(op, dataset);
  std::ranges::stable_sort(order, {},
                           [&](int64_t sample) { return labels[static_cast<std::size_t>(sample)]; });
  return order;
}

/// The places of each part's samples. Each sample of a stratified order goes to the part that has least of
/// what it should have by then, so that any stretch of the order is shared out in proportion.
std::vector<std::vector<int64_t>> parts_of(const std::vector<int64_t>& order,
                                           const std::vector<int64_t>& counts, bool stratify) {
  std::vector<std::vector<int64_t>> parts(counts.size());
  const auto size = static_cast<int64_t>(order.size());
  std::size_t part = 0;
  for (int64_t i = 0; i < size; ++i) {
    const auto lack = [&](std::size_t p) {
      return counts[p] * (i + 1) - static_cast<int64_t>(parts[p].size()) * size;
    };
    if (stratify) {
      part = 0;
      for (std::size_t p = 1; p < parts.size(); ++p)
        if (lack(p) > lack(part)) part = p;
    } else if (static_cast<int64_t>(parts[part].size()) == counts[part]) {
      ++part;
    }
    parts[part].push_back(order[static_cast<std::size_t>(i)]);
  }
  for (std::vector<int64_t>& each : parts) std::ranges::sort(each);
  return parts;
}

/// Shares or counts as counts.
std::vector<int64_t> counts_of(const RealList& lengths, int64_t size) {
  const double sum = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  const bool shares = std::abs(sum - 1) < 1e-9;
  std::vector<int64_t> counts;
  std::vector<std::pair<double, std::size_t>> lost;  // the largest first, which a stable order keeps in turn
  for (const double length : lengths) {
    check<ValueError>(
        length > 0 && (shares || (length == std::floor(length) && sum == static_cast<double>(size))),
        "random_split: lengths must be above 0, and be shares whose sum is 1 or counts whose sum is "
        "the number of samples, {}; got {}",
        size, fmt::join(lengths, ", "));
    const double exact = shares ? length * static_cast<double>(size) : length;
    lost.emplace_back(std::floor(exact) - exact, counts.size());
    counts.push_back(static_cast<int64_t>(std::floor(exact)));
  }
  check<ValueError>(!counts.empty(), "random_split: needs the length of one part at least");
  std::ranges::stable_sort(lost, {}, &std::pair<double, std::size_t>::first);
  int64_t rest = size - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (std::size_t i = 0; rest > 0; ++i, --rest) ++counts[lost[i % lost.size()].second];
  for (std::size_t p = 0; p < counts.size(); ++p)
    check<ValueError>(counts[p] > 0,
                      "random_split: of {} samples part {} would have none; give it a larger share", size, p);
  return counts;
}

}  // namespace

std::vector<int64_t> labels_of(const char* op, const Dataset& dataset) {
  const Tensor targets = dataset.targets();
  const int64_t size = dataset.size();
  check<ShapeError>(targets.defined() && targets.rank() == 1 && targets.size(0) == size,
                    "{}: classes are needed, targets [{}] int64, got {}", op, size,
                    targets.defined() ? fmt::format("{}", targets) : "none");
  check<DTypeError>(targets.dtype() == int64, "{}: classes are needed, targets [{}] int64, got {}", op, size,
                    targets);
  return ops::to_device(targets, Device{}).to_vector<int64_t>();
}

TensorDataset in_memory(const Dataset& dataset) {
  std::vector<int64_t> all(static_cast<std::size_t>(dataset.size()));
  std::iota(all.begin(), all.end(), 0);
  const Batch batch = dataset.get(all);
  return TensorDataset(batch.inputs, batch.targets);
}

std::vector<Subset> random_split(const AnyDataset& dataset, const RealList& lengths, SplitOptions options) {
  const std::vector<int64_t> counts = counts_of(lengths, dataset->size());
  const std::vector<int64_t> order = drawn_order("random_split", *dataset, options);
  std::vector<Subset> subsets;
  for (std::vector<int64_t>& part : parts_of(order, counts, options.stratify))
    subsets.emplace_back(dataset, std::move(part));
  return subsets;
}

std::vector<Fold> k_folds(const AnyDataset& dataset, Integer k, SplitOptions options) {
  const int64_t size = dataset->size(), folds = k;
  check<ValueError>(folds >= 2 && folds <= size,
                    "k_folds: k must be from 2 to the number of samples, {}, got {}", size, folds);
  std::vector<int64_t> counts(static_cast<std::size_t>(folds), size / folds);
  for (int64_t p = 0; p < size % folds; ++p) ++counts[static_cast<std::size_t>(p)];
  std::vector<Fold> result;
  for (std::vector<int64_t>& test :
       parts_of(drawn_order("k_folds", *dataset, options), counts, options.stratify)) {
    std::vector<int64_t> train;
    for (int64_t i = 0; i < size; ++i)
      if (!std::ranges::binary_search(test, i)) train.push_back(i);
    result.push_back({.train = Subset(dataset, std::move(train)), .test = Subset(dataset, std::move(test))});
  }
  return result;
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
