#include "pleat/data/loader.h"

#include <algorithm>
#include <atomic>
#include <concepts>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "pleat/core/base/error.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/pinned_memory.h"
#include "pleat/data/datasets.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/system.h"

using namespace pleat;
using namespace pleat::data;

namespace {

/// Sample i is the number i.
TensorDataset numbers(int64_t n) { return TensorDataset(arange(n), arange(n)); }

/// All samples of an epoch, batch by batch.
std::vector<std::vector<int64_t>> batches_of(DataLoader& loader) {
  std::vector<std::vector<int64_t>> batches;
  for (const Batch& batch : loader) batches.push_back(batch.inputs.to_vector<int64_t>());
  return batches;
}

/// Fails at one sample.
class FailingDataset : public Dataset {
 public:
  int64_t size() const override { return 100; }
  Batch get(std::span<const int64_t> indices) const override {
    for (const int64_t index : indices)
      if (index == 42) throw FileError("sample 42 is broken");
    return {zeros({static_cast<int64_t>(indices.size())}), {}};
  }
};

}  // namespace

TEST_CASE("a loader gives every sample once an epoch", "[data][loader]") {
  const TensorDataset dataset = numbers(10);
  DataLoader plain(dataset, {.batch_size = 4});
  CHECK(batches_of(plain) == std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  DataLoader dropping(dataset, {.batch_size = 4, .drop_last = true});
  CHECK(dropping.size() == 2);
  CHECK(batches_of(dropping) == std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK_THROWS_AS(DataLoader(dataset, {.batch_size = 11, .drop_last = true}), ValueError);
  CHECK(DataLoader(dataset, {.batch_size = 10, .drop_last = true}).size() == 1);
  CHECK(DataLoader(dataset, {.batch_size = 11}).size() == 1);
  DataLoader shuffled(dataset, {.batch_size = 10, .shuffle = true, .seed = 3});
  const auto first = batches_of(shuffled)[0];
  const auto second = batches_of(shuffled)[0];
  CHECK(first != second);
  CHECK(std::is_permutation(first.begin(), first.end(), second.begin(), second.end()));
  shuffled.set_epoch(0);
  CHECK(batches_of(shuffled)[0] == first);
}

TEST_CASE("batches are the same for any number of workers", "[data][loader]") {
  const TensorDataset dataset(rand({50, 3, 8, 8}), arange(50));
  const auto epoch = [&](int workers) {
    DataLoader loader(
        dataset, {.batch_size = 8,
                  .shuffle = true,
                  .seed = 5,
                  .workers = workers,
                  .transforms = {random_crop({.padding = 2}), random_horizontal_flip(), mixup(0.4, 50)}});
    loader.set_epoch(2);
    std::vector<std::vector<float>> seen;
    for (const Batch& batch : loader) {
      seen.push_back(batch.inputs.to_vector());
      seen.push_back(batch.targets.to_vector());
    }
    return seen;
  };
  const auto expected = epoch(0);
  for (const int workers : {1, 2, 5}) CHECK(epoch(workers) == expected);
}

TEST_CASE("an exception in a worker reaches the loop at its batch", "[data][loader]") {
  const FailingDataset dataset;
  for (const int workers : {0, 1, 3}) {
    DataLoader loader(dataset, {.batch_size = 10, .workers = workers});
    int batches = 0;
    const auto loop = [&] {
      for (const Batch& batch : loader) batches += batch.size() == 10 ? 1 : 0;
    };
    CHECK_THROWS_WITH(loop(), "sample 42 is broken");
    CHECK(batches == 4);
  }
}

TEST_CASE("an iterator goes on after an exception as if there were no workers", "[data][loader]") {
  // Broken for good, and broken for the first time only, in the first batch and in the last.
  for (const int workers : {0, 1, 3})
    for (const int64_t broken : {0, 42, 99})
      for (const bool for_good : {true, false}) {
        CAPTURE(workers, broken, for_good);
        std::atomic<int> failures = 0;
        const auto fails = [&](Batch& batch, const SampleRandom&) {
          for (const int64_t sample : batch.targets.to_vector<int64_t>())
            if (sample == broken && (for_good || failures == 0)) {
              ++failures;
              throw std::string("no std::exception");
            }
        };
        DataLoader loader(numbers(100), {.batch_size = 10, .workers = workers, .transforms = {fails}});
        std::optional<DataLoader::Iterator> iterator;
        int64_t batches = 0;
        const auto go_on = [&] {
          if (!iterator) {
            iterator = loader.begin();
            ++batches;
          }
          for (++*iterator; *iterator != std::default_sentinel; ++*iterator) ++batches;
        };
        CHECK_THROWS_AS(go_on(), std::string);
        if (broken == 0) {  // there is no iterator yet; the next one is that of the next epoch
          CHECK(loader.epoch() == 1);
        } else {
          CHECK(batches == broken / 10);
          CHECK_FALSE((*iterator)->inputs.defined());
        }
        if (for_good) {
          CHECK_THROWS_AS(go_on(), std::string);
          CHECK_THROWS_AS(go_on(), std::string);
        } else {
          go_on();
          CHECK(batches == 10);
        }
      }
}

TEST_CASE("a loader that is left while all workers throw ends at once", "[data][loader]") {
  const auto fails = [](Batch&, const SampleRandom&) { throw ValueError("never"); };
  for (int i = 0; i < 20; ++i) {
    DataLoader loader(numbers(1000), {.batch_size = 1, .workers = 4, .transforms = {fails}});
    CHECK_THROWS_WITH(loader.begin(), "never");
  }
}

TEST_CASE("a loader keeps its data set, and its iterators keep both", "[data][loader]") {
  const auto expected = std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}};
  DataLoader of_temporary{numbers(10), {.batch_size = 4}};
  CHECK(batches_of(of_temporary) == expected);
  const auto make = [](int workers) {
    const TensorDataset gone = numbers(10);
    return DataLoader(gone, {.batch_size = 4, .workers = workers});
  };
  for (const int workers : {0, 2}) {
    DataLoader made = make(workers);
    CHECK(batches_of(made) == expected);
    std::optional<DataLoader::Iterator> iterator = make(workers).begin();
    CHECK((++*iterator)->inputs.to_vector<int64_t>() == expected[1]);
    const Batch& first = *made.begin();
    CHECK(first.inputs.to_vector<int64_t>() == expected[0]);
    int64_t samples = 0;
    for (const Batch& batch : make(workers)) samples += batch.size();
    CHECK(samples == 10);
  }
  DataLoader shared(std::make_shared<TensorDataset>(numbers(10)), {.batch_size = 4});
  DataLoader copy = shared;
  CHECK(batches_of(copy) == expected);
  const DataLoader moved = std::move(shared);
  CHECK(moved.size() == 3);
  CHECK_THROWS_WITH(shared.begin(), Catch::Matchers::StartsWith("DataLoader: was moved from"));
}

namespace {
struct Uncopyable : FailingDataset {
  Uncopyable() = default;
  Uncopyable(Uncopyable&&) = default;
};
/// Whether a loader can be made of an argument of type D.
template <class D>
concept Loadable = std::constructible_from<DataLoader, D, LoaderOptions>;
struct Doubled : TensorDataset {
  using TensorDataset::TensorDataset;
  int64_t size() const override { return 2 * TensorDataset::size(); }
};
}  // namespace

TEST_CASE("a data set that cannot be copied whole is moved in or shared", "[data][loader]") {
  DataLoader moved(Uncopyable(), {.batch_size = 50});
  CHECK(moved.size() == 2);
  DataLoader shared(std::make_shared<const Uncopyable>(), {.batch_size = 50});
  CHECK(shared.size() == 2);
  STATIC_REQUIRE(Loadable<const TensorDataset&>);
  STATIC_REQUIRE_FALSE(Loadable<int>);
  const Doubled doubled(arange(4));
  DataLoader whole(doubled, {});
  CHECK(whole.size() == 8);
  const TensorDataset& part = doubled;
  CHECK_THROWS_WITH(DataLoader(part, {}), Catch::Matchers::Contains("give a std::shared_ptr to it"));
  const FailingDataset failing;
  const Dataset& any = failing;
  CHECK_THROWS_WITH(DataLoader(any, {}), Catch::Matchers::Contains("give a std::shared_ptr to it"));
}

TEST_CASE("a loader takes the whole of a data set of which only a base is known", "[data][loader]") {
  struct Tripled : TensorDataset {
    using TensorDataset::TensorDataset;
    int64_t size() const override { return 3 * TensorDataset::size(); }
    std::shared_ptr<const Dataset> copy() const override { return std::make_shared<Tripled>(*this); }
  };
  const CifarDataset cifar(zeros({5, 3, 32, 32}, uint8), arange(5), {"a", "b"});
  const Tripled tripled(arange(4));
  const TensorDataset plain = numbers(7);
  const auto size_as = []<class Base>(const Base& dataset) { return DataLoader(dataset, {}).size(); };
  CHECK(size_as.template operator()<TensorDataset>(cifar) == 5);
  CHECK(size_as.template operator()<TensorDataset>(tripled) == 12);
  CHECK(size_as.template operator()<Dataset>(cifar) == 5);
  CHECK(size_as.template operator()<Dataset>(tripled) == 12);
  CHECK(size_as.template operator()<Dataset>(plain) == 7);
  const TensorDataset& part = cifar;
  DataLoader loader(part, {.batch_size = 2});
  CHECK(loader.begin()->targets.to_vector<int64_t>() == std::vector<int64_t>{0, 1});
  const auto copy = std::dynamic_pointer_cast<const CifarDataset>(part.copy());
  REQUIRE(copy != nullptr);
  CHECK(copy->class_names == cifar.class_names);
}

TEST_CASE("sizes of data sets and batches are taken as they are", "[data][loader]") {
  struct Sized : Dataset {
    explicit Sized(int64_t n, int64_t given = -1) : samples(n), gives(given) {}
    int64_t size() const override { return samples; }
    Batch get(std::span<const int64_t> indices) const override {
      if (gives == 0) return {};
      return {zeros({gives > 0 ? gives : static_cast<int64_t>(indices.size())}), {}};
    }
    int64_t samples, gives;
  };
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  DataLoader many(Sized(most), {.batch_size = 2, .workers = 1});
  CHECK(many.size() == most / 2 + 1);
  CHECK(many.begin()->size() == 2);
  DataLoader large(Sized(3), {.batch_size = most});
  CHECK(large.size() == 1);
  CHECK(large.begin()->size() == 3);
  CHECK_THROWS_AS(DataLoader(Sized(most), {.batch_size = most}).begin(), OutOfMemoryError);
  CHECK_THROWS_WITH(DataLoader(Sized(-3), {}).size(),
                    "DataLoader: the data set's size() must not be negative, got -3");
  CHECK_THROWS_WITH(DataLoader(Sized(4, 3), {.batch_size = 4}).begin(),
                    "DataLoader: the data set was asked for 4 samples and gave inputs [3] float32 cpu");
  CHECK_THROWS_WITH(DataLoader(Sized(4, 0), {.batch_size = 4}).begin(),
                    "DataLoader: the data set was asked for 4 samples and gave no inputs");
}

TEST_CASE("a transform that draws from the default generator gives the same for any number of workers",
          "[data][loader]") {
  const auto jitter = [](Batch& batch, const SampleRandom&) { batch.inputs = rand(batch.inputs.shape()); };
  const auto epochs = [&](int workers) {
    DataLoader loader(numbers(40), {.batch_size = 4, .seed = 3, .workers = workers, .transforms = {jitter}});
    std::vector<std::vector<float>> seen;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const Batch& batch : loader) seen.push_back(batch.inputs.to_vector());
    return seen;
  };
  manual_seed(7);
  const float undisturbed = rand({1}).item<float>();
  manual_seed(7);
  const auto expected = epochs(0);
  CHECK(rand({1}).item<float>() == undisturbed);
  CHECK(epochs(3) == expected);
  const std::set<std::vector<float>> different(expected.begin(), expected.end());
  CHECK(different.size() == expected.size());
}

TEST_CASE("threads that cannot be started are an error, and those that were are joined",
          "[data][loader][cpu]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return pleat_test::skip("a sanitizer needs the address space itself");
#endif
  // Some hundred stacks of 8 MB more than the process has.
  DataLoader loader(numbers(10'000), {.batch_size = 1, .workers = 1024});
  std::optional<pleat_test::AddressSpaceLimit> limit(std::in_place, std::int64_t{1} << 30);
  if (!limit->holds()) return pleat_test::skip("the system limits no process's addresses");
  std::string message;
  try {
    (void)loader.begin();
  } catch (const Error& error) {
    message = error.what();
  }
  limit.reset();
  CHECK_THAT(message, Catch::Matchers::Contains("of 1024 cannot be started") &&
                          Catch::Matchers::EndsWith("take fewer workers"));
}

TEST_CASE("a loop can be left early", "[data][loader]") {
  const TensorDataset dataset = numbers(1000);
  DataLoader loader(dataset, {.batch_size = 1, .workers = 3});
  for (int i = 0; i < 20; ++i)
    for (const Batch& batch : loader)
      if (batch.inputs.item<int64_t>() == 5) break;
  CHECK(loader.epoch() == 20);
}

TEST_CASE("an empty data set is refused", "[data][loader]") {
  for (const LoaderOptions& options : {LoaderOptions{}, LoaderOptions{.batch_size = 4, .shuffle = true},
                                       LoaderOptions{.drop_last = true}, LoaderOptions{.world_size = 2}})
    CHECK_THROWS_WITH(DataLoader(numbers(0), options),
                      Catch::Matchers::StartsWith("DataLoader: the data set is empty"));
  struct Shrinking : Dataset {
    int64_t size() const override { return samples; }
    Batch get(std::span<const int64_t>) const override { return {zeros({1}), {}}; }
    int64_t samples = 1;
  };
  const auto shrinking = std::make_shared<Shrinking>();
  DataLoader loader(std::shared_ptr<const Dataset>(shrinking), {});
  shrinking->samples = 0;
  CHECK_THROWS_WITH(loader.begin(), Catch::Matchers::Contains("the data set is empty"));
}

TEST_CASE("a batch has its samples' places in the data set", "[data][loader]") {
  for (const int workers : {0, 2})
    for (const bool shuffle : {false, true})
      for (const int64_t ranks : {1, 3})
        for (int64_t rank = 0; rank < ranks; ++rank) {
          // A transform of the user's that makes a new batch.
          const auto anew = [](Batch& batch, const SampleRandom&) {
            batch = Batch{batch.inputs, batch.targets};
          };
          DataLoader loader(numbers(50), {.batch_size = 4,
                                          .shuffle = shuffle,
                                          .workers = workers,
                                          .transforms = {anew},
                                          .rank = rank,
                                          .world_size = ranks});
          for (int epoch = 0; epoch < 2; ++epoch)
            for (const Batch& batch : loader) CHECK(batch.indices == batch.targets.to_vector<int64_t>());
        }
}

TEST_CASE("bad loaders and data sets are refused", "[data][loader]") {
  const TensorDataset dataset = numbers(4);
  CHECK_THROWS_AS(DataLoader(dataset, {.batch_size = 0}), ValueError);
  CHECK_THROWS_AS(DataLoader(dataset, {.workers = -1}), ValueError);
  CHECK_THROWS_WITH(DataLoader(dataset, {.workers = 100'000}),
                    Catch::Matchers::StartsWith("DataLoader: workers must be from 0 to 1024, got 100000"));
  for (const int64_t prefetch : {int64_t{0}, int64_t{-1}, int64_t{1} << 62})
    CHECK_THROWS_WITH(DataLoader(dataset, {.prefetch = prefetch}),
                      Catch::Matchers::StartsWith("DataLoader: prefetch must be from 1 to 1024"));
  CHECK_THROWS_WITH(DataLoader(dataset, {.transforms = {to_float(), nullptr}}),
                    "DataLoader: transform 1 is empty");
  CHECK_THROWS_WITH(DataLoader(std::shared_ptr<const TensorDataset>(), {}),
                    Catch::Matchers::StartsWith("data set: the pointer to it is empty"));
  CHECK_THROWS_WITH(TensorDataset(zeros({3, 2}), zeros({4})), "TensorDataset: 3 inputs, but 4 targets");
  CHECK_THROWS_AS(TensorDataset(scalar(1)), ShapeError);
  const std::vector<int64_t> outside = {4};
  CHECK_THROWS_WITH(dataset.get(outside), "dataset: sample 4 of 4 asked for");
}

TEST_CASE("a data set of tensors says whether it fits, and moves", "[data][loader][cpu]") {
  const TensorDataset dataset = numbers(5);
  CHECK(dataset.device() == Device());
  CHECK(dataset.fits(Device()));
  const TensorDataset same = dataset.to(Device());
  CHECK(same.inputs().raw() == dataset.inputs().raw());
  CHECK_FALSE(TensorDataset(zeros({3})).to(Device()).targets().defined());
}

TEST_CASE("cuda: batches come to the GPU through pinned memory, whatever the host does then",
          "[data][loader][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Device gpu(DeviceType::cuda);
  const TensorDataset dataset(rand({48, 16}), arange(48));
  const auto epoch = [&](Device device, int workers) {
    DataLoader loader(
        dataset,
        {.batch_size = 8, .shuffle = true, .seed = 5, .workers = workers, .prefetch = 3, .device = device});
    std::vector<Batch> batches;  // nobody waits for the GPU while the loader goes on
    for (const Batch& batch : loader) batches.push_back(batch);
    std::vector<std::vector<float>> seen;
    for (const Batch& batch : batches) {
      CHECK(batch.inputs.device() == device);
      seen.push_back(batch.inputs.to_vector());
      seen.push_back(batch.targets.to_vector());
    }
    return seen;
  };
  const auto wanted = epoch(Device(), 0);
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    const int64_t before = cuda::pinned_memory_statistics().requests;
    CHECK(epoch(gpu, workers) == wanted);
    CHECK(cuda::pinned_memory_statistics().requests == before + 12);  // inputs and targets of 6 batches
  }
}

TEST_CASE("a loader of several ranks: every sample once an epoch, for any size", "[data][loader]") {
  for (const int64_t ranks : {1, 2, 3, 4, 7})
    for (const int64_t samples : {7, 8, 9, 12, 13, 29, 100, 101})
      for (const int64_t batch_size : {1, 2, 3, 5, 40})
        for (const bool shuffle : {false, true})
          for (const bool drop_last : {false, true}) {
            CAPTURE(ranks, samples, batch_size, shuffle, drop_last);
            if (drop_last && samples < ranks * batch_size) continue;
            const TensorDataset dataset = numbers(samples);
            LoaderOptions options{
                .batch_size = ranks * batch_size, .shuffle = shuffle, .drop_last = drop_last};
            DataLoader whole(dataset, options);
            const auto expected = batches_of(whole);
            std::vector<std::vector<std::vector<int64_t>>> of_rank;
            options.batch_size = batch_size;
            options.world_size = ranks;
            for (options.rank = 0; options.rank < ranks; ++options.rank) {
              DataLoader loader(dataset, options);
              of_rank.push_back(batches_of(loader));
              REQUIRE(std::ssize(of_rank.back()) == loader.size());
              REQUIRE(loader.size() == std::ssize(of_rank.front()));
            }
            // The batches of all ranks, one after the other, are those of one process.
            std::vector<int64_t> seen, in_one;
            for (const auto& batch : expected) in_one.insert(in_one.end(), batch.begin(), batch.end());
            for (std::size_t k = 0; k < of_rank.front().size(); ++k) {
              const std::size_t before = seen.size();
              std::set<int64_t> sizes;
              for (const auto& batches : of_rank) {
                seen.insert(seen.end(), batches[k].begin(), batches[k].end());
                sizes.insert(std::ssize(batches[k]));
              }
              CHECK(*sizes.begin() >= 1);
              CHECK(*sizes.rbegin() - *sizes.begin() <= 1);
              // As many as in one process, but for a rest of less than a sample for each rank.
              if (k + 1 < of_rank.front().size()) CHECK(seen.size() - before == expected[k].size());
            }
            CHECK(seen == in_one);
          }
}

TEST_CASE("a loader of several ranks goes on with another number of them", "[data][loader]") {
  const TensorDataset dataset = numbers(50);
  DataLoader of_two(dataset, {.batch_size = 6, .shuffle = true, .seed = 2, .rank = 1, .world_size = 2});
  std::map<std::string, Tensor> state;
  for (const Batch& batch : of_two) {
    (void)batch;
    if (of_two.batch() == 2) {
      state = of_two.state_dict();
      break;
    }
  }
  DataLoader whole(dataset, {.batch_size = 12, .shuffle = true, .seed = 2});
  const auto expected = batches_of(whole);
  std::vector<int64_t> third;
  for (int64_t rank = 0; rank < 3; ++rank) {
    DataLoader of_three(dataset,
                        {.batch_size = 4, .shuffle = true, .seed = 2, .rank = rank, .world_size = 3});
    of_three.load_state_dict(state);
    const auto batch = (*of_three.begin()).inputs.to_vector<int64_t>();
    third.insert(third.end(), batch.begin(), batch.end());
  }
  CHECK(third == expected[2]);
  DataLoader other(dataset, {.batch_size = 6, .shuffle = true, .seed = 2, .world_size = 3});
  CHECK_THROWS_AS(other.load_state_dict(state), ValueError);
}

TEST_CASE("a loader of several ranks refuses what has no batches for all", "[data][loader]") {
  const TensorDataset dataset = numbers(10);
  CHECK_THROWS_AS(DataLoader(dataset, {.rank = 2, .world_size = 2}), ValueError);
  CHECK_THROWS_AS(DataLoader(dataset, {.rank = -1, .world_size = 2}), ValueError);
  CHECK_THROWS_AS(DataLoader(dataset, {.world_size = 0}), ValueError);
  CHECK_THROWS_AS(DataLoader(dataset, {.world_size = 11}), ValueError);
  CHECK_THROWS_AS(DataLoader(dataset, {.batch_size = 6, .drop_last = true, .world_size = 2}), ValueError);
  const auto most = std::numeric_limits<int64_t>::max();
  CHECK_THROWS_AS(DataLoader(dataset, {.batch_size = most, .world_size = 2}), ValueError);
}
