#pragma once

#include <cstdint>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/data/dataset.h"
#include "pleat/data/subset.h"

namespace pleat::data {

/// All samples of a data set, read into memory.
TensorDataset in_memory(const Dataset& dataset);

struct SplitOptions {
  uint64_t seed = 0;
  /// Whether each part has its share of each class, as near as whole samples allow.
  bool stratify = false;
};

/// Parts of a data set, drawn at random; each sample is in one. `lengths` are shares, whose sum is 1, or
/// counts, whose sum is the data set's size: {0.8, 0.2} or {40, 10}. Shares that give no whole numbers are
/// rounded so that the sum stays, up where most is lost. In a part the order of the samples stays. Throws
/// ValueError for other lengths and for a part without samples; when stratified, ShapeError and DTypeError
/// unless targets are int64 [N].
std::vector<Subset> random_split(const AnyDataset& dataset, const RealList& lengths,
                                 SplitOptions options = {});

/// The two parts of a data set in one round of cross-validation.
struct Fold {
  Subset train, test;
};
/// K rounds for cross-validation: each sample is in the test part of one of them, and in the training part of
/// all others. Test parts are drawn at random as random_split does, and differ by one sample at most. Throws
/// ValueError unless 2 <= k <= N, and what random_split does.
std::vector<Fold> k_folds(const AnyDataset& dataset, Integer k, SplitOptions options = {});

/// Mean and standard deviation of each channel.
struct ChannelStatistics {
  std::vector<double> mean, std;
};
/// Of images [N, C, H, W], bytes as shares of 255: for `normalize`. A channel that is the same
/// everywhere has std 1. Throws ShapeError for another rank, ValueError for a set without pixels.
ChannelStatistics channel_statistics(const TensorDataset& images);

}  // namespace pleat::data
