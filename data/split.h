#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/data/dataset.h"

namespace pleat::data {

/// All samples of a data set, read into memory.
TensorDataset in_memory(const Dataset& dataset);

/// Two parts of a data set with class labels: the second has `share` of each class (rounded; at least
/// one of each class with two samples or more), drawn at random. The order of the samples stays. Throws
/// ValueError unless 0 < share < 1 and both parts have samples, ShapeError and DTypeError unless targets are
/// int64 [N].
std::pair<TensorDataset, TensorDataset> split_by_class(const TensorDataset& dataset, Real share,
                                                       uint64_t seed);

/// Mean and standard deviation of each channel.
struct ChannelStatistics {
  std::vector<double> mean, std;
};
/// Of images [N, C, H, W], bytes as shares of 255: for `normalize`. A channel that is the same
/// everywhere has std 1. Throws ShapeError for another rank, ValueError for a set without pixels.
ChannelStatistics channel_statistics(const TensorDataset& images);

}  // namespace pleat::data
