#include "pleat/data/collate.h"

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::data;
using Catch::Matchers::Contains;

namespace {
/// Sample i: the i + 1 numbers 10 i, 10 i + 1 ..., with a target, or one for each number.
struct Sequences : Dataset {
  bool tags = false;
  explicit Sequences(bool tags_) : tags(tags_) {}
  int64_t size() const override { return 5; }
  Batch get(std::span<const int64_t> indices) const override {
    REQUIRE(indices.size() == 1);
    const int64_t i = indices[0];
    const Tensor numbers = unsqueeze(arange(10 * i, 11 * i + 1, {.device = Device{}}), 0);
    return {numbers.to(float32), tags ? numbers : full({1}, i, {.dtype = int64, .device = Device{}})};
  }
};
}  // namespace

TEST_CASE("sequences of any length become a batch", "[data][loader]") {
  for (const int workers : {0, 2}) {
    DataLoader loader(Sequences(false), {.batch_size = 3, .workers = workers, .collate = pad_collate()});
    std::vector<Batch> batches;
    for (const Batch& batch : loader) batches.push_back(batch);
    REQUIRE(batches.size() == 2);
    CHECK(batches[0].inputs.shape() == Shape{3, 3});
    CHECK(batches[0].inputs.to_vector<float>() == std::vector<float>{0, 0, 0, 10, 11, 0, 20, 21, 22});
    CHECK(batches[0].targets.to_vector<int64_t>() == std::vector<int64_t>{0, 1, 2});
    CHECK(batches[0].extras.at("lengths").to_vector<int64_t>() == std::vector<int64_t>{1, 2, 3});
    CHECK(batches[1].inputs.shape() == Shape{2, 5});
    CHECK(batches[1].indices == std::vector<int64_t>{3, 4});
  }
  DataLoader tagged(
      Sequences(true),
      {.batch_size = 2, .collate = pad_collate({.padding_value = -1}), .device = default_device()});
  const Batch batch = *tagged.begin();
  CHECK(batch.inputs.to_vector<float>() == std::vector<float>{0, -1, 10, 11});
  CHECK(batch.targets.to_vector<int64_t>() == std::vector<int64_t>{0, -100, 10, 11});
  // What a recurrent layer makes of a sequence does not depend on what stands behind it.
  nn::LSTM lstm{{.input_size = 1, .hidden_size = 2, .batch_first = true}};
  const auto padded =
      lstm.forward(unsqueeze(batch.inputs, 2), {.lengths = batch.extras.at("lengths")}).output;
  CHECK(allclose(padded[0][0], lstm.forward(zeros({1, 1, 1}))[0][0]));
}

TEST_CASE("a collate of one's own", "[data][loader]") {
  const TensorDataset set(arange(6));
  const Collate sums = [](const std::vector<Batch>& samples) {
    Batch batch{samples.front().inputs, {}};
    std::vector<Tensor> all;
    for (const Batch& sample : samples) all.push_back(sample.inputs);
    batch.inputs = cat(all);
    batch.extras["sum"] = sum(batch.inputs);
    return batch;
  };
  DataLoader loader(set, {.batch_size = 3, .collate = sums});
  std::vector<int64_t> found;
  for (const Batch& batch : loader) found.push_back(batch.extras.at("sum").item<int64_t>());
  CHECK(found == std::vector<int64_t>{3, 12});
  DataLoader wrong(
      set, {.batch_size = 3, .collate = [](const std::vector<Batch>& samples) { return samples.front(); }});
  CHECK_THROWS_WITH(wrong.begin(), Contains("was asked for 3 samples and gave"));
  // Errors of pad_collate.
  const Collate pad = pad_collate();
  CHECK_THROWS_AS(pad({}), ValueError);
  CHECK_THROWS_WITH(pad({{zeros({1}), {}}}), Contains("inputs must be [1, length, ...]"));
  CHECK_THROWS_AS(pad({{zeros({1, 2, 3}), {}}, {zeros({1, 2, 4}), {}}}), ShapeError);
  CHECK_THROWS_AS(pad({{zeros({1, 2}), {}}, {zeros({1, 2}, float64), {}}}), DTypeError);
  CHECK_THROWS_AS(pad({{zeros({1, 2}), {}}, {zeros({1, 2}), zeros({1})}}), ValueError);
}
