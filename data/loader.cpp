#include "pleat/data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "pleat/core/copy.h"
#include "pleat/core/format.h"
#include "pleat/core/parallel.h"
#include "pleat/core/pinned_memory.h"
#include "pleat/core/random.h"
#include "pleat/core/record_function.h"

namespace pleat::data {
namespace {

/// The order of an epoch's samples.
std::vector<int64_t> sample_order(int64_t samples, const LoaderOptions& options, int64_t epoch) {
  std::vector<int64_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!options.shuffle) return order;
  Generator generator(options.seed ^ 0x9E3779B97F4A7C15u);  // not the numbers that the transforms draw
  generator.set_draws(static_cast<uint64_t>(epoch));
  return randperm(samples, generator).to_vector<int64_t>();
}

}  // namespace

/// One epoch under way. Workers take batch numbers in turn, at most so many ahead of the consumer, and lay
/// what they made, or what was thrown, where the consumer finds it by number.
class DataLoader::Run {
 public:
  Run(const Dataset& dataset, const LoaderOptions& options, int64_t epoch, int64_t batches)
      : dataset_(dataset),
        options_(options),
        epoch_(epoch),
        batches_(batches),
        order_(sample_order(dataset.size(), options, epoch)) {
    const int workers = dataset.device().is_cpu() ? options.workers : 0;
    for (int i = 0; i < workers; ++i)
      workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }

  ~Run() {
    for (std::jthread& worker : workers_) worker.request_stop();
    room_.notify_all();
  }

  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// The next batch into `batch`; false when there is none.
  bool next(Batch& batch) {
    const RecordFunction range("DataLoader.next");
    if (consumed_ == batches_) return false;
    if (workers_.empty()) {
      batch = make(consumed_);
    } else {
      std::unique_lock lock(mutex_);
      made_.wait(lock, [this] { return results_.contains(consumed_); });
      Result result = std::move(results_.extract(consumed_).mapped());
      lock.unlock();
      room_.notify_all();
      if (result.error) std::rethrow_exception(result.error);
      batch = std::move(result.batch);
    }
    for (Tensor* t : {&batch.inputs, &batch.targets})
      if (t->defined()) *t = ops::to_device(*t, options_.device, {.non_blocking = true});
    const std::lock_guard lock(mutex_);
    ++consumed_;
    room_.notify_all();
    return true;
  }

 private:
  struct Result {
    Batch batch;
    std::exception_ptr error;
  };

  Batch make(int64_t number) const {
    const RecordFunction range("DataLoader.make");
    const auto first = static_cast<std::size_t>(number * options_.batch_size);
    const auto size = std::min(static_cast<std::size_t>(options_.batch_size), order_.size() - first);
    const std::span<const int64_t> indices(order_.data() + first, size);
    Batch batch = dataset_.get(indices);
    apply(options_.transforms, batch, options_.seed, epoch_, indices);
    if (options_.device.is_cuda())
      for (Tensor* t : {&batch.inputs, &batch.targets})
        if (t->defined() && t->device().is_cpu()) *t = cuda::pin_memory(*t);
    return batch;
  }

  void work(const std::stop_token& stop) {
    const SerialScope serial;  // the other cores belong to the network
    const int64_t ahead = options_.prefetch * options_.workers;
    std::unique_lock lock(mutex_);
    while (room_.wait(lock, stop, [&] { return taken_ == batches_ || taken_ < consumed_ + ahead; })) {
      if (taken_ == batches_ || stop.stop_requested()) return;
      const int64_t number = taken_++;
      lock.unlock();
      Result result;
      try {
        result.batch = make(number);
      } catch (...) {
        result.error = std::current_exception();
      }
      lock.lock();
      results_.emplace(number, std::move(result));
      made_.notify_one();
    }
  }

  const Dataset& dataset_;
  const LoaderOptions options_;
  const int64_t epoch_;
  const int64_t batches_;
  const std::vector<int64_t> order_;
  std::mutex mutex_;
  std::condition_variable_any room_;
  std::condition_variable made_;
  std::map<int64_t, Result> results_;
  int64_t taken_ = 0;
  int64_t consumed_ = 0;
  std::vector<std::jthread> workers_;  // last: they end before what they use
};

DataLoader::DataLoader(const Dataset& dataset, LoaderOptions options)
    : dataset_(dataset), options_(std::move(options)) {
  check<ValueError>(options_.batch_size >= 1, "DataLoader: batch_size must be at least 1, got {}",
                    options_.batch_size);
  check<ValueError>(options_.workers >= 0, "DataLoader: workers must not be negative, got {}",
                    options_.workers);
  check<ValueError>(options_.prefetch >= 1, "DataLoader: prefetch must be at least 1, got {}",
                    options_.prefetch);
}

int64_t DataLoader::size() const {
  const int64_t samples = dataset_.size();
  return options_.drop_last ? samples / options_.batch_size
                            : (samples + options_.batch_size - 1) / options_.batch_size;
}

DataLoader::Iterator DataLoader::begin() {
  return Iterator(std::make_shared<Run>(dataset_, options_, epoch_++, size()));
}

DataLoader::Iterator::Iterator(std::shared_ptr<Run> run) : run_(std::move(run)) { ++*this; }

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  batch_ = {};
  if (!run_->next(batch_)) run_.reset();
  return *this;
}

}  // namespace pleat::data
