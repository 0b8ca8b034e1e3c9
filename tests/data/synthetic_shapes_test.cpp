#include "pleat/data/synthetic_shapes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::data;
using namespace pleat_test;

namespace {

// FNV-1a, 64 bits.
uint64_t checksum(const SyntheticImage& image, uint64_t hash = 0xcbf29ce484222325U) {
  const auto add = [&hash](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3U; };
  add(image.label);
  for (const uint8_t byte : image.pixels) add(byte);
  return hash;
}

}  // namespace

TEST_CASE("synthetic shapes are the same bytes on every machine", "[data]") {
  uint64_t hash = 0xcbf29ce484222325U;
  for (int64_t index = 0; index < 50; ++index) {
    hash = checksum(synthetic_shape(1, SyntheticSplit::train, index), hash);
  }
  CHECK(hash == 0xf603df9804b7db13U);
  CHECK(checksum(synthetic_shape(7, SyntheticSplit::test, 123'456'789'012)) == 0x6e60ecf5ad2ce331U);
}

TEST_CASE("synthetic shapes show each class once in ten images", "[data]") {
  std::set<std::string> orders;
  for (int64_t ten = 0; ten < 100; ++ten) {
    std::set<int> labels;
    std::string order;
    for (int64_t index = 10 * ten; index < 10 * ten + 10; ++index) {
      const int label = synthetic_shape_label(3, SyntheticSplit::train, index);
      CHECK(label == synthetic_shape(3, SyntheticSplit::train, index).label);
      labels.insert(label);
      order += static_cast<char>('0' + label);
    }
    CHECK(labels.size() == 10);
    CHECK((*labels.begin() == 0 && *labels.rbegin() == 9));
    orders.insert(order);
  }
  CHECK(orders.size() == 100);
}

TEST_CASE("synthetic shapes differ by seed, index and split", "[data]") {
  std::set<uint64_t> seen;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63}) {
    for (const auto split : {SyntheticSplit::train, SyntheticSplit::test}) {
      for (int64_t index = 0; index < 200; ++index)
        seen.insert(checksum(synthetic_shape(seed, split, index)));
    }
  }
  CHECK(seen.size() == 3 * 2 * 200);
}

TEST_CASE("a synthetic shape stands out from its background", "[data]") {
  // The shape covers a good part of the image in a colour of other luma: the spread of luma shows that.
  for (int64_t index = 0; index < 500; ++index) {
    const SyntheticImage image = synthetic_shape(5, SyntheticSplit::test, index);
    double sum = 0, squares = 0;
    for (int place = 0; place < 1024; ++place) {
      const double luma = 0.299 * image.pixels[place] + 0.587 * image.pixels[1024 + place] +
                          0.114 * image.pixels[2048 + place];
      sum += luma;
      squares += luma * luma;
    }
    INFO("index " << index);
    CHECK(squares / 1024 - sum / 1024 * sum / 1024 > 15 * 15);
  }
}

TEST_CASE("synthetic shapes are written in CIFAR-10's format", "[data]") {
  const TemporaryDirectory directory;
  const auto set = directory / "deep" / "down";
  const auto paths = write_synthetic_shapes(set, {.train = 10'020, .test = 30, .seed = 4});
  REQUIRE(paths.size() == 4);
  CHECK(std::filesystem::file_size(set / "data_batch_1.bin") == 10'000 * 3'073);
  CHECK(std::filesystem::file_size(set / "data_batch_2.bin") == 20 * 3'073);

  const auto check_record = [](const std::vector<uint8_t>& bytes, int64_t record,
                               const SyntheticImage& image) {
    CHECK(bytes[record * 3'073] == image.label);
    CHECK(std::equal(image.pixels.begin(), image.pixels.end(), bytes.begin() + record * 3'073 + 1));
  };
  check_record(read_bytes(paths[1]), 19, synthetic_shape(4, SyntheticSplit::train, 10'019));
  const auto test = read_bytes(paths[2]);
  CHECK(test.size() == 30 * 3'073);
  check_record(test, 29, synthetic_shape(4, SyntheticSplit::test, 29));
  const auto meta = read_bytes(paths[3]);
  CHECK(std::string(meta.begin(), meta.end()) ==
        "circle\nring\ncrescent\nheart\ntriangle\nsquare\nstar\ncross\nstripes\ncheckerboard\n");

  SECTION("the same for any number of threads") {
    const int threads = num_threads();
    for (const int count : {1, 3}) {
      set_num_threads(count);
      const auto again = write_synthetic_shapes(directory / "again", {.train = 200, .test = 30, .seed = 4});
      set_num_threads(threads);
      CHECK(read_bytes(again[1]) == test);
    }
  }
  SECTION("a smaller set does not mix with the rest of a larger one") {
    CHECK_THROWS_AS(write_synthetic_shapes(set, {.train = 10, .test = 10}), FileError);
    CHECK(read_bytes(paths[2]) == test);
  }
}

TEST_CASE("synthetic shapes refuse bad arguments", "[data]") {
  CHECK_THROWS_AS(synthetic_shape(0, SyntheticSplit::train, -1), ValueError);
  CHECK_THROWS_AS(synthetic_shape_label(0, SyntheticSplit::train, -1), ValueError);
  const TemporaryDirectory temporary;
  const auto directory = temporary / "set";
  CHECK_THROWS_AS(write_synthetic_shapes(directory, {.train = -1}), ValueError);
  CHECK_THROWS_AS(write_synthetic_shapes(directory, {.test = 10'000'001}), ValueError);
  CHECK_FALSE(std::filesystem::exists(directory));

  // A file stands where the directory would be.
  std::ofstream(directory) << "in the way";
  try {
    write_synthetic_shapes(directory, {.train = 10, .test = 10});
    FAIL("no error");
  } catch (const FileError& error) {
    CHECK(std::string(error.what()).find(directory.string()) != std::string::npos);
  }
}
