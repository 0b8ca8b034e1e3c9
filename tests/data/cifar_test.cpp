#include <string>

#include "pleat/core/base/error.h"
#include "pleat/data/datasets.h"
#include "pleat/data/synthetic_shapes.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::data;
using Catch::Matchers::Contains;
using pleat_test::TemporaryDirectory;
using pleat_test::write_bytes;

namespace {

std::string record(char label, char value) { return label + std::string(3072, value); }

}  // namespace

TEST_CASE("CIFAR-10 files are read", "[data]") {
  const TemporaryDirectory folder;
  write_bytes(folder / "data_batch_1.bin", record(3, 7) + record(9, 8));
  write_bytes(folder / "data_batch_2.bin", record(0, 1));
  write_bytes(folder / "test_batch.bin", record(5, 2));
  const CifarDataset train = read_cifar10(folder.path(), true);
  CHECK(train.inputs().shape() == Shape{3, 3, 32, 32});
  CHECK(train.targets().to_vector<int>() == std::vector<int>{3, 9, 0});
  CHECK(train.inputs().data<uint8_t>()[3072] == 8);
  CHECK(train.class_names.empty());
  CHECK(read_cifar10(folder.path(), false).size() == 1);
}

TEST_CASE("names of classes are read from a file that was edited on Windows", "[data]") {
  const TemporaryDirectory folder;
  write_bytes(folder / "data_batch_1.bin", record(3, 7));
  write_bytes(folder / "batches.meta.txt",
              "\xef\xbb\xbf"
              "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng\r\nh\r\ni\r\nj j\r\n\r\n");
  const CifarDataset set = read_cifar10(folder.path(), true);
  CHECK(set.class_names == std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j j"});
}

TEST_CASE("CIFAR-10's files are read in the order of their numbers", "[data]") {
  const TemporaryDirectory folder;
  for (const int number : {10, 2, 1, 9, 11, 3})
    write_bytes(folder / ("data_batch_" + std::to_string(number) + ".bin"),
                record(static_cast<char>(number % 10), static_cast<char>(number)));
  write_bytes(folder / "data_batch_x.bin", record(7, 99));
  write_bytes(folder / "data_batch_.bin", "not one of them");
  const CifarDataset train = read_cifar10(folder.path(), true);
  CHECK(train.targets().to_vector<int>() == std::vector<int>{1, 2, 3, 9, 0, 1, 7});
  CHECK(train.inputs().data<uint8_t>()[4 * 3072] == 10);
}

TEST_CASE("a CIFAR set has a memory limit", "[data]") {
  const TemporaryDirectory folder;
  write_bytes(folder / "data_batch_1.bin", record(3, 7));
  write_bytes(folder / "data_batch_2.bin", record(3, 7));
  CHECK_THROWS_WITH(read_cifar10(folder.path(), true, {.memory_limit = 6000}),
                    Contains("data_batch_2.bin'") && Contains("{.memory_limit = 6160}"));
  CHECK(read_cifar10(folder.path(), true, {.memory_limit = 6160}).size() == 2);
}

TEST_CASE("the synthetic set reads as CIFAR-10", "[data]") {
  const TemporaryDirectory folder;
  write_synthetic_shapes(folder.path(), {.train = 20, .test = 10});
  const CifarDataset train = read_cifar10(folder.path(), true);
  CHECK(train.size() == 20);
  CHECK(train.class_names.size() == 10);
}

TEST_CASE("CIFAR-100 takes the fine label", "[data]") {
  const TemporaryDirectory folder;
  write_bytes(folder / "train.bin", std::string("\x13\x63") + std::string(3072, 'a'));
  CHECK(read_cifar100(folder.path(), true).targets().to_vector<int>() == std::vector<int>{99});
}

TEST_CASE("broken CIFAR files are explained with file and offset", "[data]") {
  const TemporaryDirectory folder;
  CHECK_THROWS_WITH(read_cifar10(folder.path(), true), Contains("holds no data_batch_1.bin"));
  CHECK_THROWS_AS(read_cifar10(folder / "missing", true), FileError);
  CHECK_THROWS_WITH(read_cifar10(folder.path(), false), Contains("test_batch.bin': cannot open"));
  write_bytes(folder / "test_batch.bin", record(5, 2) + record(1, 2).substr(0, 100));
  CHECK_THROWS_WITH(
      read_cifar10(folder.path(), false),
      Contains("test_batch.bin': 3173 bytes are no whole number of records of 3073 bytes; the last one "
               "breaks off at offset 3073"));
  write_bytes(folder / "test_batch.bin", record(5, 2) + record(10, 2));
  CHECK_THROWS_WITH(read_cifar10(folder.path(), false), Contains("label 10 at offset 3073 is outside 0-9"));
  write_bytes(folder / "test_batch.bin", "");
  CHECK_THROWS_AS(read_cifar10(folder.path(), false), FileError);
}
