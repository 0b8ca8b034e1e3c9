#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/data/collate.h"
#include "pleat/data/dataset.h"
#include "pleat/data/sampler.h"
#include "pleat/data/transforms.h"

namespace pleat::data {

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  uint64_t seed = 0;
  bool drop_last = false;  ///< leave out a last batch that is not full
  int workers = 1;         ///< threads that make batches ahead, up to 1024; 0 makes them in the loop itself
  int64_t prefetch = 2;    ///< batches ahead for each worker, up to 1024
  std::vector<Transform> transforms = {};
  /// Which samples an epoch has, in which order (data/sampler.h), in place of `shuffle`: weighted, balanced
  /// by classes, one's own. Empty: each sample once.
  Sampler sampler = {};
  /// Makes a batch of samples that are read one by one (data/collate.h). Empty: the data set makes it,
  /// Dataset::get.
  Collate collate = {};
  /// Of several processes that train together, which one this is, and how many there are. They share each
  /// batch of world_size * batch_size samples, so that an epoch has all samples once, in the order that one
  /// process with that batch size has. Where less than one sample each is left, the batch before takes them,
  /// too.
  int64_t rank = 0;
  int64_t world_size = 1;
  /// The device of batches. A data set on it is read there; batches of others are copied through
  /// pinned memory, and the host does not wait.
  Device device = {};
};

/// Batches of a data set, epoch after epoch: `for (const Batch& batch : loader) ...`. Each loop is
/// the next epoch, in another order when shuffled. Order and contents depend on (seed, epoch), not
/// on the number of workers or the device: a data set or transform that draws from
/// `default_generator` draws the same numbers in every thread. The loop itself makes batches of a
/// data set on a GPU, in its own stream, since that only queues work.
///
/// An exception of a data set or transform is thrown in the loop, at its batch; to advance the
/// iterator again tries that batch again. Leaving the loop early stops the workers. Loader,
/// iterators and batches may outlive each other and whatever the loader was made of. In a child of
/// fork() a loop goes on with the same batches, without the workers; the next has its own.
class DataLoader {
 public:
  /// Throws ValueError for an empty data set, for invalid options, drop_last that leaves no batch and more
  /// ranks than samples among them.
  DataLoader(const AnyDataset& dataset, LoaderOptions options);

  /// Batches of an epoch.
  int64_t size() const;
  /// Throws ValueError, which begins with `op`, when the next loop may leave out samples: by drop_last, by a
  /// sampler, or as it begins in the middle of an epoch (load_state_dict).
  void check_has_all(const char* op) const;
  /// The epoch of the next loop; starts at 0 and counts up by itself.
  int64_t epoch() const { return epoch_; }
  void set_epoch(int64_t epoch);
  /// The next batch of the loop; in its body the one after the present, counted from 0.
  int64_t batch() const { return position_->batch; }

  /// Where the loop is, for checkpoints: "epoch" and "batch", the next one; beside them what these
  /// numbers refer to. In the body of a loop the next batch is the one after the present; once the
  /// loop has ended it is the first of the next epoch.
  std::map<std::string, Tensor> state_dict() const;
  /// The next loop begins at that batch, and epoch() is its epoch: the loops that follow are those
  /// of the loader that was saved, to the bit. Workers and device may differ, and so may the number of
  /// processes where batch_size * world_size is the same; that transforms, sampler and collate are the same
  /// is not checked. Throws ValueError with all problems, before anything is changed, when the state is of
  /// other options or of another number of samples.
  void load_state_dict(const std::map<std::string, Tensor>& state);

  class Run;
  /// Iterates over the batches of one epoch, once.
  class Iterator {
   public:
    explicit Iterator(std::shared_ptr<Run> run);
    const Batch& operator*() const& { return batch_; }
    /// For a temporary iterator: `const Batch& first = *loader.begin()` stays valid.
    Batch operator*() && { return std::move(batch_); }
    const Batch* operator->() const { return &batch_; }
    Iterator& operator++();
    /// Whether the epoch is over; the only comparison there is.
    bool operator==(std::default_sentinel_t) const { return run_ == nullptr; }

   private:
    std::shared_ptr<Run> run_;
    Batch batch_;
  };

  /// Throws what the sampler throws, ValueError and IndexError when it gives another number of places or one
  /// outside the data set; the loader is as before.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  /// Samples of an epoch.
  int64_t samples() const;
  /// Samples of the ranks' batches together.
  int64_t joint_batch() const { return options_.batch_size * options_.world_size; }

  const Dataset& dataset() const;

  /// The next batch of a loop.
  struct Position {
    int64_t epoch = 0;
    int64_t batch = 0;
  };

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  int64_t epoch_ = 0;                   ///< of the next loop
  int64_t first_ = 0;                   ///< its first batch
  std::shared_ptr<Position> position_;  ///< of the latest loop
};

}  // namespace pleat::data
