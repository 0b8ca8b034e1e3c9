#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>
#include <memory>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "pleat/data/dataset.h"
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
  /// Where batches are wanted. Those of a data set that is there already never leave it; others are copied
  /// through pinned memory, while the host goes on.
  Device device = {};
};

/// Batches of a data set, epoch after epoch: `for (const Batch& batch : loader) ...`. Each loop is the next
/// epoch, in another order when shuffled. Order and contents depend on (seed, epoch) and not on the number of
/// workers, nor on the device: a data set or transform that draws from `default_generator` draws the same
/// numbers wherever it runs. Batches of a data set on a GPU are made by the loop itself, in its stream:
/// that only queues work, which is no work for a worker.
///
/// An exception of data set or transform is thrown to the loop, at its batch; who advances the iterator once
/// more tries that batch once more. Leaving the loop early stops the workers. Loader, iterators and batches
/// may outlive each other and whatever the loader was made of.
class DataLoader {
 public:
  /// Keeps a copy of the data set (or the data set itself when it is moved in): that of a TensorDataset
  /// shares its tensors. Throws ValueError for options that make no sense, and for a data set of another type
  /// than it is passed as, of which only a part would be copied.
  template <class D>
  requires std::derived_from<std::remove_cvref_t<D>, Dataset> DataLoader(D&& dataset, LoaderOptions options)
      : DataLoader(kept(std::forward<D>(dataset)), std::move(options)) {}
  /// Shares the data set: for one that cannot be copied, or that is changed between epochs.
  DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);

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
    const Batch& operator*() const& { return batch_; }
    /// Of an iterator that is about to go: `const Batch& first = *loader.begin()` stays.
    Batch operator*() && { return std::move(batch_); }
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
  template <class D>
  static std::shared_ptr<const Dataset> kept(D&& dataset) {
    using Kept = std::remove_cvref_t<D>;
    static_assert(!std::is_abstract_v<Kept> && std::is_constructible_v<Kept, D>,
                  "DataLoader keeps its data set: this one cannot be copied; std::move it in, or give a "
                  "std::shared_ptr to it");
    check_type(typeid(dataset), typeid(Kept));
    return std::make_shared<const Kept>(std::forward<D>(dataset));
  }
  static void check_type(const std::type_info& is, const std::type_info& passed_as);
  const Dataset& dataset() const;

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace pleat::data
