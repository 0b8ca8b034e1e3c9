#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/core/random/random.h"
#include "pleat/data/dataset.h"

/// Which samples an epoch of a DataLoader has, where it is not each one once: `.sampler` of its options.

namespace pleat::data {

/// The order of an epoch's samples. One of your own is its size and a function, which the loop calls as an
/// epoch begins:
///
///   data::Sampler{1000, [](int64_t epoch, Generator& generator) -> std::vector<int64_t> { ... }}
///
/// The function gives `size` places in the data set, in any order and as often as it likes. What it gives
/// must depend on the epoch and on what it draws from the generator alone: the loader seeds that from (seed,
/// epoch), so that every process of a job and a run that goes on from a checkpoint have the same order.
struct Sampler {
  int64_t size = 0;
  std::function<std::vector<int64_t>(int64_t epoch, Generator& generator)> order = {};
};

/// Draws `num_samples` places, each with the probability weight / (sum of weights), with replacement (as
/// PyTorch's WeightedRandomSampler): a weight for each sample of the data set. Throws ValueError for a weight
/// that is negative or not finite, weights that are all 0, and num_samples below 1.
Sampler weighted_random_sampler(const RealList& weights, Integer num_samples);

/// The same with weights by which each class of the data set is drawn as often as the others: 1 / (samples of
/// the class). An epoch has as many samples as the data set. Throws ShapeError and DTypeError unless the data
/// set's targets are int64 [N], ValueError for an empty one.
Sampler class_balanced_sampler(const Dataset& dataset);

}  // namespace pleat::data
