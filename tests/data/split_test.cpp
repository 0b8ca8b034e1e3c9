#include "pleat/data/split.h"

#include <cmath>

#include "pleat/data/image.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::data;
using Catch::Matchers::Contains;

TEST_CASE("a split keeps the shares of classes", "[data]") {
  std::vector<int64_t> labels(100, 0);
  for (std::size_t i = 80; i < 100; ++i) labels[i] = 1;
  labels.push_back(2);
  const TensorDataset all(arange(101), from_vector(labels));
  const auto [first, second] = split_by_class(all, 0.25, 1);
  CHECK(first.size() == 76);
  CHECK(second.size() == 25);
  const auto count = [](const TensorDataset& part, int64_t label) {
    return sum(part.targets() == label).item<int64_t>();
  };
  CHECK(count(second, 0) == 20);
  CHECK(count(second, 1) == 5);
  CHECK(count(first, 2) == 1);
  CHECK(sum(first.inputs()).item<int64_t>() + sum(second.inputs()).item<int64_t>() == 5050);
  CHECK(array_equal(split_by_class(all, 0.25, 1).second.inputs(), second.inputs()));
  CHECK_FALSE(array_equal(split_by_class(all, 0.25, 2).second.inputs(), second.inputs()));
  CHECK_THROWS_AS(split_by_class(all, 1, 1), ValueError);
  CHECK_THROWS_WITH(split_by_class(TensorDataset(arange(3), arange(3)), 0.5, 1),
                    Contains("of 3 samples of 3 classes one part would be empty"));
  CHECK_THROWS_WITH(split_by_class(TensorDataset(arange(0), arange(0)), 0.5, 1), Contains("would be empty"));
  CHECK_THROWS_AS(split_by_class(TensorDataset(arange(3)), 0.5, 1), ShapeError);
  CHECK_THROWS_AS(split_by_class(TensorDataset(arange(3), zeros({3})), 0.5, 1), DTypeError);
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
