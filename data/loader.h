#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "pleat/data/dataset.h"
#include "pleat/data/transforms.h"

namespace pleat::data {

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  uint64_t seed = 0;
  bool drop_last = false;  ///< leave out a last batch that is not full
  int workers = 1;         ///< threads that make batches ahead; 0 makes them in the loop itself
  int64_t prefetch = 2;    ///< batches ahead for each worker
  std::vector<Transform> transforms = {};
  /// Where batches are wanted. Those of a data set that is there already never leave it; others are copied
  /// through pinned memory, while the host goes on.
  Device device = {};
};

/// Batches of a data set, epoch after epoch: `for (const Batch& batch : loader) ...`. Each loop is the next
/// epoch, in another order when shuffled. Order and contents depend on (seed, epoch) and not on the number of
/// workers, nor on the device. Batches of a data set on a GPU are made by the loop itself, in its stream:
/// that only queues work, which is no work for a worker. An exception of data set or transform is thrown to
/// the loop, at its batch. Leaving the loop early stops the workers.
class DataLoader {
 public:
  /// Keeps a reference: the data set must live as long. Throws ValueError for options that make no sense.
  DataLoader(const Dataset& dataset, LoaderOptions options);

  /// Batches of an epoch.
  int64_t size() const;
  /// The epoch of the next loop; starts at 0 and counts up by itself.
  int64_t epoch() const { return epoch_; }
  void set_epoch(int64_t epoch) { epoch_ = epoch; }

  class Run;
  /// Goes over the batches of one epoch, once.
  class Iterator {
   public:
    explicit Iterator(std::shared_ptr<Run> run);
    const Batch& operator*() const { return batch_; }
    const Batch* operator->() const { return &batch_; }
    Iterator& operator++();
    /// Whether the epoch is over; the only comparison there is.
    bool operator==(std::default_sentinel_t) const { return run_ == nullptr; }

   private:
    std::shared_ptr<Run> run_;
    Batch batch_;
  };

  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  const Dataset& dataset_;
  LoaderOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace pleat::data
