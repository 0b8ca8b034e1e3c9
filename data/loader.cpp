#include "pleat/data/loader.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>

#include "pleat/core/base/fork.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/philox.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/pinned_memory.h"

namespace pleat::data {
namespace {

constexpr int most_workers = 1024;
constexpr int64_t most_prefetch = 1024;

/// The order of an epoch's samples; empty where it is that of the data set.
std::vector<int64_t> sample_order(int64_t samples, const LoaderOptions& options, int64_t epoch) {
  if (options.sampler.order) {
    Generator generator(mixed(mixed(options.seed ^ 0xD1B54A32D192ED03u) + static_cast<uint64_t>(epoch)));
    std::vector<int64_t> order = options.sampler.order(epoch, generator);
    const auto given = static_cast<int64_t>(order.size());
    check<ValueError>(given == options.sampler.size,
                      "DataLoader: the sampler gave {} samples, and its size is {}", given,
                      options.sampler.size);
    for (const int64_t sample : order)
      check<IndexError>(sample >= 0 && sample < samples,
                        "DataLoader: the sampler gave sample {} of {}; is it one of another data set?",
                        sample, samples);
    return order;
  }
  if (!options.shuffle) return {};
  Generator generator(options.seed ^ 0x9E3779B97F4A7C15u);  // not the numbers that the transforms draw
  generator.set_draws(static_cast<uint64_t>(epoch));
  return randperm(samples, generator).to_vector<int64_t>();
}

int64_t samples_in(const Dataset& dataset) {
  const int64_t samples = dataset.size();
  check<ValueError>(samples >= 0, "DataLoader: the data set's size() must not be negative, got {}", samples);
  check<ValueError>(
      samples > 0,
      "DataLoader: the data set is empty, and a loop over it would do nothing; look at what it was "
      "made of: the path, the filter or the share of a split that left no sample");
  return samples;
}

/// Depends on (seed, epoch, batch) alone.
Generator batch_generator(uint64_t seed, int64_t epoch, int64_t batch) {
  constexpr uint64_t step = 0x9E3779B97F4A7C15u;
  seed = mixed(mixed(seed + step) + static_cast<uint64_t>(epoch) * step);
  return Generator(mixed(seed + static_cast<uint64_t>(batch) * step));
}

/// All tensors that there are in a batch.
std::vector<Tensor*> tensors_of(Batch& batch) {
  std::vector<Tensor*> tensors;
  if (batch.inputs.defined()) tensors.push_back(&batch.inputs);
  if (batch.targets.defined()) tensors.push_back(&batch.targets);
  for (auto& [name, tensor] : batch.extras)
    if (tensor.defined()) tensors.push_back(&tensor);
  return tensors;
}

void check_samples(const char* what, const Tensor& tensor, std::size_t wanted) {
  check<ValueError>(tensor.defined(), "DataLoader: the data set was asked for {} samples and gave no {}",
                    wanted, what);
  check<ShapeError>(tensor.rank() >= 1 && tensor.size(0) == static_cast<int64_t>(wanted),
                    "DataLoader: the data set was asked for {} samples and gave {} {}", wanted, what, tensor);
}

}  // namespace

/// One running epoch. Workers take the next batch number, up to a bound ahead of the consumer, and
/// store the batch, or the exception, in the slot of that number.
class DataLoader::Run {
 public:
  /// From the batch of `position` on, which follows the loop.
  Run(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, int64_t batches,
      std::shared_ptr<Position> position)
      : dataset_(std::move(dataset)),
        options_(options),
        position_(std::move(position)),
        epoch_(position_->epoch),
        samples_(options.sampler.order ? options.sampler.size : samples_in(*dataset_)),
        batches_(batches),
        order_(sample_order(samples_in(*dataset_), options, epoch_)),
        taken_(position_->batch),
        consumed_(position_->batch) {
    const int64_t count = dataset_->device().is_cpu() ? std::min<int64_t>(options.workers, batches) : 0;
    if (count == 0) return;
    workers_ = std::make_shared<Workers>();
    workers_->made.resize(static_cast<std::size_t>(std::min(options.prefetch * count, batches)));
    std::vector<std::thread>& threads = workers_->threads;
    try {
      for (int64_t i = 0; i < count; ++i)
        threads.emplace_back([this, workers = workers_.get()] { work(*workers); });
    } catch (const std::system_error& error) {
      // The workers that were started end with `workers_`.
      fail<Error>("DataLoader: worker {} of {} cannot be started: {}; take fewer workers", threads.size() + 1,
                  count, error.what());
    }
  }

  ~Run() { leave_workers_of_parent(); }

  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// The next batch into `batch`; false when there is none.
  bool next(Batch& batch) {
    const RecordFunction range("DataLoader.next");
    if (consumed_ == batches_) {
      *position_ = {.epoch = epoch_ + 1, .batch = 0};
      return false;
    }
    leave_workers_of_parent();
    // A worker's result is taken once; after an exception the batch is made here.
    if (!workers_ || std::exchange(tried_, true))
      batch = make(consumed_);
    else
      batch = take();
    for (Tensor* t : tensors_of(batch)) *t = on_device(*t);
    tried_ = false;
    const auto lock = workers_ ? std::unique_lock(workers_->mutex) : std::unique_lock<std::mutex>();
    position_->batch = ++consumed_;
    if (workers_) workers_->room.notify_all();
    return true;
  }

 private:
  struct Result {
    Batch batch;
    std::exception_ptr error;
    bool ready = false;
  };

  struct Workers {
    std::mutex mutex;  ///< of what follows, of `taken_` and of `consumed_`
    std::condition_variable room, arrived;
    bool stopped = false;
    std::vector<Result> made;  ///< batch n is in place n modulo their number: how far workers are ahead
    std::vector<std::thread> threads;

    Result& place_of(int64_t number) { return made[static_cast<std::size_t>(number) % made.size()]; }

    ~Workers() {
      {
        const std::lock_guard lock(mutex);
        stopped = true;
      }
      room.notify_all();
      for (std::thread& thread : threads) thread.join();
    }
  };

  /// A child of fork() has no workers, and makes the batches that follow itself.
  void leave_workers_of_parent() {
    if (workers_ && !process_.is_here()) keep_for_ever(std::exchange(workers_, nullptr));
  }

  /// Copies from the CPU to a GPU in a stream of its own, so that the copy overlaps with the GPU's
  /// work on earlier batches.
  Tensor on_device(const Tensor& t) {
    if (t.device().is_cuda() || options_.device.is_cpu()) return ops::to_device(t, options_.device);
    if (!copies_) copies_.emplace(cuda::StreamOptions{.device = options_.device});
    const cuda::Stream use = cuda::current_stream(options_.device);
    const cuda::Event copied({.device = options_.device});
    Tensor result;
    {
      const cuda::StreamGuard guard(*copies_);
      result = ops::to_device(t, options_.device, {.non_blocking = true});
      copied.record(*copies_);
    }
    use.wait(copied);
    cuda::record_stream(result, use);
    return result;
  }

  /// The loop's next batch, from a worker.
  Batch take() {
    std::unique_lock lock(workers_->mutex);
    Result& place = workers_->place_of(consumed_);
    workers_->arrived.wait(lock, [&] { return place.ready; });
    Result result = std::exchange(place, {});
    lock.unlock();
    if (result.error) std::rethrow_exception(result.error);
    return std::move(result.batch);
  }

  /// The samples of a batch, by their places in the epoch: a part of those that the ranks have together.
  std::vector<int64_t> places_of(int64_t number) const {
    const int64_t ranks = options_.world_size;
    const int64_t joint_first = number * options_.batch_size * ranks;
    const bool takes_rest = number == batches_ - 1 && !options_.drop_last;
    const int64_t joint_count = takes_rest ? samples_ - joint_first : options_.batch_size * ranks;
    const int64_t least = joint_count / ranks, with_one_more = joint_count % ranks;
    const int64_t first = joint_first + options_.rank * least + std::min(options_.rank, with_one_more);
    const int64_t count = least + (options_.rank < with_one_more ? 1 : 0);
    std::vector<int64_t> places;
    try {
      places.resize(static_cast<std::size_t>(count));
    } catch (const std::exception&) {
      fail<OutOfMemoryError>("DataLoader: no memory for the numbers of {} samples; take a smaller batch_size",
                             count);
    }
    std::iota(places.begin(), places.end(), first);
    return places;
  }

  std::vector<Batch> one_by_one(const std::vector<int64_t>& indices) const {
    std::vector<Batch> samples;
    for (const int64_t& index : indices) samples.push_back(dataset_->get(std::span(&index, 1)));
    return samples;
  }

  Batch make(int64_t number) const {
    const RecordFunction range("DataLoader.make");
    const UseGenerator random(batch_generator(options_.seed, epoch_, number));
    const std::vector<int64_t> places = places_of(number);
    std::vector<int64_t> indices = places;
    if (!order_.empty()) std::copy_n(order_.begin() + places.front(), indices.size(), indices.begin());
    Batch batch = options_.collate ? options_.collate(one_by_one(indices)) : dataset_->get(indices);
    check_samples("inputs", batch.inputs, indices.size());
    if (batch.targets.defined()) check_samples("targets", batch.targets, indices.size());
    // A sample that a sampler gives twice is changed in two ways.
    apply(options_.transforms, batch, options_.seed, epoch_, options_.sampler.order ? places : indices);
    batch.indices = std::move(indices);
    if (options_.device.is_cuda())
      for (Tensor* t : tensors_of(batch))
        if (t->device().is_cpu()) *t = cuda::pin_memory(*t);
    return batch;
  }

  void work(Workers& workers) {
    const SerialScope serial;  // the other cores belong to the network
    const auto ahead = static_cast<int64_t>(workers.made.size());
    std::unique_lock lock(workers.mutex);
    while (true) {
      workers.room.wait(lock,
                        [&] { return workers.stopped || taken_ == batches_ || taken_ < consumed_ + ahead; });
      if (workers.stopped || taken_ == batches_) return;
      const int64_t number = taken_++;
      lock.unlock();
      Result result;
      result.ready = true;
      try {
        result.batch = make(number);
      } catch (...) {
        result.error = std::current_exception();
      }
      lock.lock();
      workers.place_of(number) = std::move(result);
      workers.arrived.notify_one();
    }
  }

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  const std::shared_ptr<Position> position_;
  const int64_t epoch_;
  const int64_t samples_;
  const int64_t batches_;
  const std::vector<int64_t> order_;
  std::optional<cuda::Stream> copies_;
  int64_t taken_;       ///< batches that workers have begun
  int64_t consumed_;    ///< batches that the loop has got
  bool tried_ = false;  ///< the loop's next batch was taken already and threw
  ProcessMark process_;
  std::shared_ptr<Workers> workers_;  ///< null: there are none; last: they end before what they use
};

DataLoader::DataLoader(const AnyDataset& dataset, LoaderOptions options)
    : dataset_(dataset.pointer()), options_(std::move(options)), position_(std::make_shared<Position>()) {
  check<ValueError>(options_.batch_size >= 1, "DataLoader: batch_size must be at least 1, got {}",
                    options_.batch_size);
  check<ValueError>(options_.workers >= 0 && options_.workers <= most_workers,
                    "DataLoader: workers must be from 0 to {}, got {}; more than the machine has cores wait "
                    "for each other",
                    most_workers, options_.workers);
  check<ValueError>(options_.prefetch >= 1 && options_.prefetch <= most_prefetch,
                    "DataLoader: prefetch must be from 1 to {} batches for each worker, got {}",
                    most_prefetch, options_.prefetch);
  for (std::size_t i = 0; i < options_.transforms.size(); ++i)
    check<ValueError>(options_.transforms[i] != nullptr, "DataLoader: transform {} is empty", i);
  check<ValueError>(
      options_.world_size >= 1 && options_.rank >= 0 && options_.rank < options_.world_size,
      "DataLoader: rank must be from 0 to world_size - 1, and world_size at least 1, got {} and {}",
      options_.rank, options_.world_size);
  check<ValueError>(options_.batch_size <= std::numeric_limits<int64_t>::max() / options_.world_size,
                    "DataLoader: batch_size {} is too large for {} ranks", options_.batch_size,
                    options_.world_size);
  check<ValueError>(
      options_.sampler.order ? options_.sampler.size >= 1 && !options_.shuffle : options_.sampler.size == 0,
      "DataLoader: a sampler needs its function and a size of at least 1, and is in place of "
      "shuffle; got size {}{}{}",
      options_.sampler.size, options_.sampler.order ? "" : " without a function",
      options_.shuffle ? " with shuffle" : "");
  samples_in(*dataset_);
  const int64_t samples = this->samples();
  check<ValueError>(
      !options_.drop_last || samples >= joint_batch(),
      "DataLoader: {} samples are less than a batch of {}{}, and drop_last leaves out a batch that is "
      "not full: no batch would be left; take a smaller batch_size, or drop_last = false",
      samples, options_.batch_size,
      options_.world_size > 1 ? fmt::format(" on {} ranks", options_.world_size) : "");
  check<ValueError>(samples >= options_.world_size,
                    "DataLoader: {} samples are not enough for {} ranks; take fewer ranks", samples,
                    options_.world_size);
}

const Dataset& DataLoader::dataset() const {
  check<ValueError>(dataset_ != nullptr, "DataLoader: was moved from; use the loader that it was moved to");
  return *dataset_;
}

int64_t DataLoader::samples() const {
  const int64_t all = samples_in(dataset());
  return options_.sampler.order ? options_.sampler.size : all;
}

int64_t DataLoader::size() const {
  const int64_t full = samples() / joint_batch(), rest = samples() % joint_batch();
  // A rest of less than a sample for each rank goes to the batch before it.
  const bool with_rest = rest > 0 && !options_.drop_last && (full == 0 || rest >= options_.world_size);
  return full + (with_rest ? 1 : 0);
}

void DataLoader::check_has_all(const char* op) const {
  check<ValueError>(first_ == 0,
                    "{}: the loader goes on behind batch {} of an epoch that it was loaded with, and a test "
                    "must not leave out samples; make one for the test",
                    op, first_);
  check<ValueError>(
      options_.sampler.order == nullptr,
      "{}: the loader has a sampler, which may leave out samples and repeat others, and a test must "
      "have each once; make one without for the test",
      op);
  const int64_t rest = samples() % joint_batch();
  check<ValueError>(
      !options_.drop_last || rest == 0,
      "{}: the loader leaves out {} samples, which a test must not; make it with drop_last = false", op,
      rest);
}

DataLoader::Iterator DataLoader::begin() {
  const int64_t batches = size();
  const auto position = std::make_shared<Position>(Position{.epoch = epoch_, .batch = first_});
  auto run = std::make_shared<Run>(dataset_, options_, batches, position);
  position_ = position;
  ++epoch_;
  first_ = 0;
  return Iterator(std::move(run));
}

void DataLoader::set_epoch(int64_t epoch) {
  epoch_ = epoch;
  first_ = 0;
  position_ = std::make_shared<Position>(Position{.epoch = epoch, .batch = 0});
}

std::map<std::string, Tensor> DataLoader::state_dict() const {
  const auto number = [](int64_t value) { return full({}, value, {.dtype = int64, .device = Device{}}); };
  std::map<std::string, Tensor> state{{"epoch", number(position_->epoch)},
                                      {"batch", number(position_->batch)},
                                      {"samples", number(samples())},
                                      {"batch_size", number(joint_batch())},
                                      {"drop_last", number(options_.drop_last ? 1 : 0)},
                                      {"shuffle", number(options_.shuffle ? 1 : 0)},
                                      {"seed", number(std::bit_cast<int64_t>(options_.seed))}};
  if (options_.sampler.order) state["sampler"] = number(1);
  return state;
}

void DataLoader::load_state_dict(const std::map<std::string, Tensor>& state) {
  std::string problems;
  std::map<std::string, int64_t> numbers;
  const std::map<std::string, Tensor> own_state = state_dict();
  for (const auto& [name, own] : own_state) {
    const auto found = state.find(name);
    const bool is_number = found != state.end() && found->second.defined() && found->second.numel() == 1 &&
                           found->second.dtype() == int64;
    if (!is_number) {
      problems += fmt::format("\n  {}: must be one int64", name);
      continue;
    }
    numbers[name] = found->second.item<int64_t>();
    if (name != "epoch" && name != "batch" && numbers[name] != own.item<int64_t>())
      problems += fmt::format("\n  {}: {} in the state, {} here", name, numbers[name], own.item<int64_t>());
  }
  for (const auto& [name, tensor] : state)
    if (!own_state.contains(name)) problems += fmt::format("\n  {}: is no part of a loader's state", name);
  if (problems.empty() && numbers["epoch"] < 0) problems = "\n  epoch: is negative";
  if (problems.empty() && (numbers["batch"] < 0 || numbers["batch"] > size()))
    problems = fmt::format("\n  batch: is {}, of {} in an epoch", numbers["batch"], size());
  check<ValueError>(problems.empty(), "DataLoader: the state is not one of this loader:{}", problems);
  set_epoch(numbers["epoch"]);
  first_ = position_->batch = numbers["batch"];
}

DataLoader::Iterator::Iterator(std::shared_ptr<Run> run) : run_(std::move(run)) { ++*this; }

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  check<ValueError>(run_ != nullptr,
                    "DataLoader: the iterator is at the end of its epoch; begin() starts the next");
  batch_ = {};
  if (!run_->next(batch_)) run_.reset();
  return *this;
}

}  // namespace pleat::data
