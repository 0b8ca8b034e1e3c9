#include "pleat/data/loader.h"

#include <algorithm>

#include "pleat/core/create.h"
#include "pleat/core/error.h"
#include "pleat/core/random.h"
#include "pleat/tests/catch.h"

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

TEST_CASE("a loader gives every sample once an epoch", "[data]") {
  const TensorDataset dataset = numbers(10);
  DataLoader plain(dataset, {.batch_size = 4});
  CHECK(batches_of(plain) == std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  DataLoader dropping(dataset, {.batch_size = 4, .drop_last = true});
  CHECK(dropping.size() == 2);
  CHECK(batches_of(dropping) == std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  DataLoader shuffled(dataset, {.batch_size = 10, .shuffle = true, .seed = 3});
  const auto first = batches_of(shuffled)[0];
  const auto second = batches_of(shuffled)[0];
  CHECK(first != second);
  CHECK(std::is_permutation(first.begin(), first.end(), second.begin(), second.end()));
  shuffled.set_epoch(0);
  CHECK(batches_of(shuffled)[0] == first);
}

TEST_CASE("batches are the same for any number of workers", "[data]") {
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

TEST_CASE("an exception in a worker reaches the loop at its batch", "[data]") {
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

TEST_CASE("a loop can be left early", "[data]") {
  const TensorDataset dataset = numbers(1000);
  DataLoader loader(dataset, {.batch_size = 1, .workers = 3});
  for (int i = 0; i < 20; ++i)
    for (const Batch& batch : loader)
      if (batch.inputs.item<int64_t>() == 5) break;
  CHECK(loader.epoch() == 20);
}

TEST_CASE("an empty data set has no batches", "[data]") {
  const TensorDataset dataset = numbers(0);
  DataLoader loader(dataset, {.batch_size = 4, .shuffle = true});
  CHECK(batches_of(loader).empty());
}

TEST_CASE("bad loaders and data sets are refused", "[data]") {
  const TensorDataset dataset = numbers(4);
  CHECK_THROWS_AS(DataLoader(dataset, {.batch_size = 0}), ValueError);
  CHECK_THROWS_AS(DataLoader(dataset, {.workers = -1}), ValueError);
  CHECK_THROWS_AS(DataLoader(dataset, {.prefetch = 0}), ValueError);
  CHECK_THROWS_WITH(TensorDataset(zeros({3, 2}), zeros({4})), "TensorDataset: 3 inputs, but 4 targets");
  CHECK_THROWS_AS(TensorDataset(scalar(1)), ShapeError);
  const std::vector<int64_t> outside = {4};
  CHECK_THROWS_WITH(dataset.get(outside), "dataset: sample 4 of 4 asked for");
}

TEST_CASE("a data set of tensors says whether it fits, and moves", "[data]") {
  const TensorDataset dataset = numbers(5);
  CHECK(dataset.device() == Device());
  CHECK(dataset.fits(Device()));
  const TensorDataset same = dataset.to(Device());
  CHECK(same.inputs().raw() == dataset.inputs().raw());
  CHECK_FALSE(TensorDataset(zeros({3})).to(Device()).targets().defined());
}
