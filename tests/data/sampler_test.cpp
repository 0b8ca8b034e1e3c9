#include "pleat/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::data;
using Catch::Matchers::Contains;

namespace {
/// The samples of a loop, in order.
std::vector<int64_t> epoch_of(DataLoader& loader) {
  std::vector<int64_t> samples;
  for (const Batch& batch : loader) {
    CHECK(batch.inputs.to_vector<int64_t>() == batch.indices);
    samples.insert(samples.end(), batch.indices.begin(), batch.indices.end());
  }
  return samples;
}
std::vector<double> counts_of(const std::vector<int64_t>& samples, int64_t size) {
  return bincount(from_vector(samples), {.minlength = size}).to(float64).to_vector<double>();
}
}  // namespace

TEST_CASE("weights say how often samples are drawn", "[data][loader]") {
  const TensorDataset set(arange(4));
  constexpr int64_t draws = 40'000;
  DataLoader loader(set, {.batch_size = 1000, .sampler = weighted_random_sampler({1, 0, 3, 4}, draws)});
  CHECK(loader.size() == 40);
  const std::vector<int64_t> first = epoch_of(loader), second = epoch_of(loader);
  CHECK(first != second);
  const std::vector<double> counts = counts_of(first, 4);
  CHECK(counts[1] == 0);
  for (const auto& [sample, p] : {std::pair{0, 1.0 / 8}, {2, 3.0 / 8}, {3, 4.0 / 8}})
    CHECK(std::abs(counts[static_cast<std::size_t>(sample)] - draws * p) <
          4 * std::sqrt(draws * p * (1 - p)));
  // Of a weight at the end that is 0 none is drawn, whatever the rounding.
  Generator generator(1);
  const Sampler last = weighted_random_sampler({std::numeric_limits<double>::min(), 0}, 100);
  CHECK(last.order(0, generator) == std::vector<int64_t>(100, 0));

  CHECK_THROWS_WITH(weighted_random_sampler({1, -1}, 2), Contains("got -1 for sample 1"));
  CHECK_THROWS_AS(weighted_random_sampler({1, std::nan("")}, 2), ValueError);
  CHECK_THROWS_AS(weighted_random_sampler({0, 0}, 2), ValueError);
  CHECK_THROWS_AS(weighted_random_sampler({}, 2), ValueError);
  CHECK_THROWS_AS(weighted_random_sampler({1e308, 1e308}, 2), ValueError);
  CHECK_THROWS_AS(weighted_random_sampler({1}, 0), ValueError);
}

TEST_CASE("classes are drawn equally often", "[data][loader]") {
  std::vector<int64_t> labels(3000, 0);
  for (std::size_t i = 0; i < 100; ++i) labels[i] = i < 70 ? 7 : 2;
  const TensorDataset set(arange(3000), from_vector(labels));
  const Sampler sampler = class_balanced_sampler(set);
  CHECK(sampler.size == 3000);
  Generator generator(1);
  const std::vector<double> counts =
      counts_of(set.get(sampler.order(0, generator)).targets.to_vector<int64_t>(), 8);
  for (const std::size_t label : {0, 2, 7})
    CHECK(std::abs(counts[label] - 1000) < 4 * std::sqrt(3000 * 2.0 / 9));
  CHECK_THROWS_AS(class_balanced_sampler(TensorDataset(arange(3))), ShapeError);
  CHECK_THROWS_AS(class_balanced_sampler(TensorDataset(arange(3), zeros({3}))), DTypeError);
  CHECK_THROWS_AS(class_balanced_sampler(TensorDataset(arange(0), arange(0))), ValueError);
}

TEST_CASE("a sampler's order is the same for any workers, ranks and after a restart", "[data][loader]") {
  const TensorDataset set(arange(50));
  const Transform noise = [](Batch& batch, const SampleRandom& random) {
    std::vector<double> drawn;
    for (int64_t i = 0; i < batch.size(); ++i) drawn.push_back(random.uniform(i));
    batch.targets = from_vector(drawn);
  };
  LoaderOptions options{.batch_size = 12,
                        .seed = 3,
                        .transforms = {noise},
                        .sampler = weighted_random_sampler(std::vector<double>(50, 1.0), 67)};
  DataLoader loader(set, options);
  const std::vector<int64_t> first = epoch_of(loader), second = epoch_of(loader);
  CHECK(first.size() == 67);
  for (const int workers : {0, 3}) {
    options.workers = workers;
    DataLoader again(set, options);
    CHECK(epoch_of(again) == first);
    // In the middle of the second epoch.
    std::map<std::string, Tensor> state;
    for (const Batch& batch : again) {
      CHECK(batch.indices == std::vector<int64_t>(second.begin(), second.begin() + 12));
      state = again.state_dict();
      break;
    }
    DataLoader resumed(set, options);
    resumed.load_state_dict(state);
    CHECK(epoch_of(resumed) == std::vector<int64_t>(second.begin() + 12, second.end()));
    options.sampler = {};
    CHECK_THROWS_WITH(DataLoader(set, options).load_state_dict(state), Contains("sampler"));
    options.sampler = weighted_random_sampler(std::vector<double>(50, 1.0), 67);
  }
  // Ranks have their parts of the same batches.
  std::vector<int64_t> joint;
  options.batch_size = 4;
  options.world_size = 3;
  std::vector<std::vector<std::vector<int64_t>>> batches(3);
  for (const int64_t rank : {0, 1, 2}) {
    options.rank = rank;
    DataLoader part(set, options);
    for (const Batch& batch : part) batches[static_cast<std::size_t>(rank)].push_back(batch.indices);
  }
  for (std::size_t b = 0; b < batches[0].size(); ++b)
    for (const auto& rank : batches) joint.insert(joint.end(), rank.at(b).begin(), rank.at(b).end());
  CHECK(joint == first);
  // A sample that comes twice is not changed in the same way.
  options = {.batch_size = 2, .transforms = {noise}, .sampler = {2, [](int64_t, Generator&) {
                                                                   return std::vector<int64_t>{5, 5};
                                                                 }}};
  DataLoader twice(set, options);
  const std::vector<double> drawn = twice.begin()->targets.to_vector<double>();
  CHECK(drawn[0] != drawn[1]);
}

TEST_CASE("a sampler of one's own", "[data][loader]") {
  const TensorDataset set(arange(6));
  // The hardest samples last, more of them from epoch to epoch.
  const Sampler growing{3, [](int64_t epoch, Generator&) { return std::vector<int64_t>{0, epoch % 6, 5}; }};
  DataLoader loader(set, {.batch_size = 2, .sampler = growing});
  CHECK(epoch_of(loader) == std::vector<int64_t>{0, 0, 5});
  CHECK(epoch_of(loader) == std::vector<int64_t>{0, 1, 5});
  CHECK_THROWS_WITH(loader.check_has_all("evaluate"), Contains("evaluate: the loader has a sampler"));

  const auto made = [&](const Sampler& sampler, bool shuffle = false) {
    return DataLoader(set, {.batch_size = 2, .shuffle = shuffle, .sampler = sampler});
  };
  CHECK_THROWS_WITH(made(growing, true), Contains("in place of shuffle; got size 3 with shuffle"));
  CHECK_THROWS_WITH(made({3, nullptr}), Contains("got size 3 without a function"));
  CHECK_THROWS_AS(made({0, growing.order}), ValueError);
  DataLoader few = made({4, growing.order});
  CHECK_THROWS_WITH(few.begin(), Contains("the sampler gave 3 samples, and its size is 4"));
  CHECK(few.epoch() == 0);
  DataLoader outside = made({1, [](int64_t, Generator&) { return std::vector<int64_t>{6}; }});
  CHECK_THROWS_WITH(outside.begin(), Contains("the sampler gave sample 6 of 6"));
}
