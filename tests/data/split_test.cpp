#include "pleat/data/split.h"

#include <algorithm>
#include <cmath>

#include "pleat/data/image.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::data;
using Catch::Matchers::Contains;

namespace {
std::vector<int64_t> joint(const std::vector<Subset>& parts) {
  std::vector<int64_t> all;
  for (const Subset& part : parts) {
    CHECK(std::ranges::is_sorted(part.indices()));
    all.insert(all.end(), part.indices().begin(), part.indices().end());
  }
  std::ranges::sort(all);
  return all;
}
int64_t count(const Dataset& part, int64_t label) { return sum(part.targets() == label).item<int64_t>(); }
}  // namespace

TEST_CASE("a random split has each sample in one part", "[data]") {
  const TensorDataset all(arange(10), arange(10));
  const std::vector<int64_t> everything = arange(10).to_vector<int64_t>();
  const auto sizes = [&](const RealList& lengths) {
    const std::vector<Subset> parts = random_split(all, lengths, {.seed = 1});
    CHECK(joint(parts) == everything);
    std::vector<int64_t> found;
    for (const Subset& part : parts) found.push_back(part.size());
    return found;
  };
  CHECK(sizes({7, 3}) == std::vector<int64_t>{7, 3});
  CHECK(sizes({0.7, 0.3}) == std::vector<int64_t>{7, 3});
  CHECK(sizes({0.29, 0.71}) == std::vector<int64_t>{3, 7});
  CHECK(sizes({1.0 / 3, 1.0 / 3, 1.0 / 3}) == std::vector<int64_t>{4, 3, 3});
  CHECK(sizes({1}) == std::vector<int64_t>{10});
  const auto first = [&](uint64_t seed) { return random_split(all, {5, 5}, {.seed = seed})[0].indices(); };
  CHECK(first(1) == first(1));
  CHECK(first(1) != first(2));
  for (const RealList& wrong : {RealList{7, 4}, RealList{0.5, 0.4}, RealList{6.5, 3.5}, RealList{11, -1}})
    CHECK_THROWS_WITH(random_split(all, wrong), Contains("lengths must be above 0, and be shares"));
  CHECK_THROWS_WITH(random_split(all, {}), Contains("one part at least"));
  CHECK_THROWS_WITH(random_split(all, {0.99, 0.01}), Contains("of 10 samples part 1 would have none"));
}

TEST_CASE("a stratified split keeps the shares of classes", "[data]") {
  std::vector<int64_t> labels(100, 0);
  for (std::size_t i = 80; i < 100; ++i) labels[i] = 1;
  labels.push_back(2);
  const TensorDataset all(arange(101), from_vector(labels));
  const auto parts = random_split(all, {0.75, 0.25}, {.seed = 1, .stratify = true});
  CHECK(parts[0].size() == 76);
  CHECK(parts[1].size() == 25);
  CHECK(count(parts[1], 0) == 20);
  CHECK(count(parts[1], 1) == 5);
  CHECK(count(parts[0], 2) == 1);
  CHECK(joint(parts) == arange(101).to_vector<int64_t>());
  CHECK(in_memory(parts[1]).inputs().to_vector<int64_t>() == parts[1].indices());
  CHECK(random_split(all, {0.75, 0.25}, {.seed = 2, .stratify = true})[1].indices() != parts[1].indices());
  CHECK_THROWS_AS(random_split(TensorDataset(arange(4)), {2, 2}, {.stratify = true}), ShapeError);
  CHECK_THROWS_AS(random_split(TensorDataset(arange(4), zeros({4})), {2, 2}, {.stratify = true}), DTypeError);
  // Any number of parts and classes: within two samples of the class's share.
  Generator generator(3);
  for (int round = 0; round < 20; ++round) {
    const TensorDataset mixed(arange(200), randint(0, 7, {200}, generator));
    for (const RealList& lengths : {RealList{0.5, 0.3, 0.2}, RealList{0.8, 0.2}, RealList{150, 20, 20, 10}}) {
      const auto shares = random_split(mixed, lengths, {.stratify = true});
      for (std::size_t p = 0; p < lengths.size(); ++p)
        for (int64_t label = 0; label < 7; ++label) {
          const double wanted =
              static_cast<double>(count(mixed, label)) * static_cast<double>(shares[p].size()) / 200;
          CHECK(std::abs(static_cast<double>(count(shares[p], label)) - wanted) <
                (lengths.size() == 2 ? 1 : 2));
        }
    }
  }
}

TEST_CASE("folds test each sample once", "[data]") {
  std::vector<int64_t> labels(22, 0);
  for (std::size_t i = 0; i < 9; ++i) labels[2 * i] = 1;
  const TensorDataset all(arange(22), from_vector(labels));
  for (const bool stratify : {false, true}) {
    const std::vector<Fold> folds = k_folds(all, 4, {.seed = 5, .stratify = stratify});
    REQUIRE(folds.size() == 4);
    std::vector<Subset> tests;
    for (const Fold& fold : folds) {
      CHECK(joint({fold.train, fold.test}) == arange(22).to_vector<int64_t>());
      CHECK((fold.test.size() == 5 || fold.test.size() == 6));
      if (stratify) CHECK((count(fold.test, 1) == 2 || count(fold.test, 1) == 3));
      tests.push_back(fold.test);
    }
    CHECK(joint(tests) == arange(22).to_vector<int64_t>());
  }
  CHECK(k_folds(all, 22)[21].test.size() == 1);
  CHECK_THROWS_WITH(k_folds(all, 1), Contains("k must be from 2 to the number of samples, 22, got 1"));
  CHECK_THROWS_AS(k_folds(all, 23), ValueError);
}

TEST_CASE("subsets and data sets one after another", "[data]") {
  const TensorDataset a(tensor({{0.0F, 1.0F}, {2.0F, 3.0F}, {4.0F, 5.0F}}), tensor({0, 1, 2}, int64));
  const TensorDataset b(tensor({{10.0F, 11.0F}, {12.0F, 13.0F}}), tensor({5, 6}, int64));
  const Subset twice(a, {2, 0, 2});
  CHECK(twice.targets().to_vector<int64_t>() == std::vector<int64_t>{2, 0, 2});
  CHECK(in_memory(twice).inputs().to_vector<float>() == std::vector<float>{4, 5, 0, 1, 4, 5});
  CHECK_THROWS_WITH(Subset(a, {3}), "Subset: sample 3 of 3 asked for");
  CHECK_THROWS_AS(twice.get(std::vector<int64_t>{3}), IndexError);

  const ConcatDataset both({twice, b, Subset(a, {}), a});
  CHECK(both.size() == 8);
  CHECK(both.targets().to_vector<int64_t>() == std::vector<int64_t>{2, 0, 2, 5, 6, 0, 1, 2});
  CHECK(array_equal(in_memory(both).targets(), both.targets()));
  const Batch batch = both.get(std::vector<int64_t>{7, 3, 0, 4, 3, 1});
  CHECK(batch.targets.to_vector<int64_t>() == std::vector<int64_t>{2, 5, 2, 6, 5, 0});
  CHECK(batch.inputs.to_vector<float>() == std::vector<float>{4, 5, 10, 11, 4, 5, 12, 13, 10, 11, 0, 1});
  CHECK(both.get(std::vector<int64_t>{6, 5}).targets.to_vector<int64_t>() == std::vector<int64_t>{1, 0});
  CHECK(both.get({}).inputs.shape() == Shape{0, 2});
  CHECK_THROWS_AS(both.get(std::vector<int64_t>{8}), IndexError);
  CHECK_THROWS_AS(ConcatDataset({}), ValueError);
  const auto mixed = [&](const TensorDataset& other) { return in_memory(ConcatDataset({a, other})); };
  CHECK_THROWS_WITH(mixed(TensorDataset(zeros({2, 2}))), Contains("only some of the data sets have targets"));
  CHECK_THROWS_AS(mixed(TensorDataset(zeros({2, 3}), b.targets())), ShapeError);
  CHECK_THROWS_AS(mixed(TensorDataset(zeros({2, 2}, float64), b.targets())), DTypeError);
  // A loader takes them as it takes others, also by their base.
  const Dataset& base = both;
  DataLoader loader(base, {.batch_size = 8});
  CHECK(loader.begin()->targets.to_vector<int64_t>() == both.targets().to_vector<int64_t>());
  CHECK(array_equal(static_cast<const Dataset&>(a).Dataset::targets(), a.targets()));
}

TEST_CASE("statistics of channels", "[data]") {
  manual_seed(1);
  const Tensor images = randint(0, 256, {300, 2, 4, 5}).to(uint8);
  const ChannelStatistics found = channel_statistics(TensorDataset(images));
  const Tensor x = images.to(float64) / 255;
  for (int64_t c = 0; c < 2; ++c) {
    const Tensor channel = select(x, 1, c);
    CHECK(found.mean[static_cast<std::size_t>(c)] == Approx(mean(channel).item()));
    CHECK(found.std[static_cast<std::size_t>(c)] ==
          Approx(std::sqrt(mean(square(channel - mean(channel))).item())));
  }
  CHECK(channel_statistics(TensorDataset(full({2, 1, 3, 3}, 7, uint8))).std == std::vector<double>{1});
  CHECK_THROWS_AS(channel_statistics(TensorDataset(zeros({2, 3}))), ShapeError);
  CHECK_THROWS_AS(channel_statistics(TensorDataset(zeros({0, 3, 2, 2}))), ValueError);
}

TEST_CASE("a PNG that is written is read as it was", "[data]") {
  const pleat_test::TemporaryDirectory folder;
  for (const int64_t channels : {1, 3}) {
    const Tensor image = randint(0, 256, {channels, 5, 7}).to(uint8);
    write_png(folder / "a.png", image);
    CHECK(array_equal(read_image(folder / "a.png"), image.to(Device{})));
    write_png(folder / "b.png", image.to(float32) / 255);
    CHECK(array_equal(read_image(folder / "b.png"), image.to(Device{})));
  }
  CHECK(encode_png(tensor({{{-1.0F, 0.0F, 2.0F}}})) == encode_png(tensor({{{0.0F, 0.0F, 1.0F}}})));
  CHECK_THROWS_WITH(encode_png(zeros({2, 4, 4})), Contains("must be [1 or 3, height, width]"));
  CHECK_THROWS_AS(encode_png(zeros({3, 0, 4})), ValueError);
  CHECK_THROWS_AS(encode_png(full({1, 1, 1}, std::nan(""), float32)), ValueError);
  CHECK_THROWS_AS(encode_png(zeros({1, 2, 2}, int64)), DTypeError);
}
