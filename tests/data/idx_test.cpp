#include <filesystem>
#include <string>

#include <zlib.h>

#include "pleat/core/base/error.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/data/datasets.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/file_fixture.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::data;
using Catch::Matchers::Contains;
using pleat_test::TemporaryDirectory;
using pleat_test::write_bytes;
namespace fs = std::filesystem;

namespace {

using namespace std::string_literals;

const std::string images = "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"s + "abcdef";
const std::string labels = "\0\0\x08\x01\0\0\0\x02\x07\x09"s;

void write_gzipped(const fs::path& file, const std::string& bytes) {
  const gzFile out = gzopen(file.string().c_str(), "wb");
  gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(out);
}

}  // namespace

TEST_CASE("idx files are read, plain and gzipped", "[data]") {
  const TemporaryDirectory folder;
  write_bytes(folder / "t10k-images-idx3-ubyte", images);
  write_gzipped(folder / "t10k-labels-idx1-ubyte.gz", labels);
  const TensorDataset set = read_mnist(folder.path(), false);
  CHECK(set.inputs().shape() == Shape{2, 1, 1, 3});
  CHECK(set.inputs().to_vector<int>() == std::vector<int>{'a', 'b', 'c', 'd', 'e', 'f'});
  CHECK(set.targets().to_vector<int>() == std::vector<int>{7, 9});
  CHECK(set.targets().dtype() == int64);
  write_bytes(folder / "numbers", "\0\0\x0C\x01\0\0\0\x02\0\0\x01\x02\xFF\xFF\xFF\xFF"s);
  CHECK(read_idx(folder / "numbers").to_vector<int>() == std::vector<int>{258, -1});
  write_bytes(folder / "floats", "\0\0\x0D\x01\0\0\0\x01\x3F\xC0\0\0"s);
  CHECK(read_idx(folder / "floats").to_vector() == std::vector<float>{1.5F});
}

TEST_CASE("idx: what other programs write is read", "[data]") {
  const TemporaryDirectory folder;
  for (const test::Json& file : test::fixture_cases("files", "idx")) {
    INFO(file.at("name"));
    write_bytes(folder / "x", test::file_bytes(file));
    CHECK(test::holds(read_idx(folder / "x"), file.at("arrays").at("array")));
  }
}

TEST_CASE("a gzipped idx file has a memory limit", "[data]") {
  const TemporaryDirectory folder;
  const std::string head = "\0\0\x08\x01\x11\xE1\xA3\x00"s;  // 300,000,000 bytes follow
  write_gzipped(folder / "x", head + std::string(300'000'000, '\0'));
  REQUIRE(fs::file_size(folder / "x") < 400'000);
  reset_peak_statistics();
  const int64_t before = allocator_statistics().peak;
  CHECK_THROWS_WITH(read_idx(folder / "x"), Contains("{.memory_limit = 300000000}"));
  CHECK(allocator_statistics().peak == before);
}

TEST_CASE("MNIST's files have two spellings, each with and without .gz", "[data]") {
  for (const char* part : {"train", "t10k"})
    for (const char* joint : {"-", "."})
      for (const char* end : {"", ".gz"}) {
        CAPTURE(part, joint, end);
        const TemporaryDirectory folder;
        const auto write = [&](const std::string& name, const std::string& bytes) {
          const fs::path path = folder / (name + end);
          *end == '\0' ? write_bytes(path, bytes) : write_gzipped(path, bytes);
        };
        write(std::string(part) + "-images" + joint + "idx3-ubyte", images);
        write(std::string(part) + "-labels" + joint + "idx1-ubyte", labels);
        // Some have folders of the other names beside them.
        fs::create_directory(folder /
                             (std::string(part) + "-labels" + (*joint == '-' ? "." : "-") + "idx1-ubyte"));
        const TensorDataset set = read_mnist(folder.path(), part == "train"s);
        CHECK(set.size() == 2);
        CHECK(set.targets().to_vector<int>() == std::vector<int>{7, 9});
      }
}

TEST_CASE("broken idx files are explained with file and offset", "[data]") {
  const TemporaryDirectory folder;
  const fs::path file = folder / "broken";
  const auto error_of = [&](const std::string& bytes) -> std::string {
    write_bytes(file, bytes);
    try {
      read_idx(file);
    } catch (const FileError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(error_of(""), Contains("broken") && Contains("truncated"));
  CHECK_THAT(error_of("PNG data here"), Contains("byte 0: an idx file begins with two zero bytes"));
  CHECK_THAT(error_of("\0\0\x0A\x01\0\0\0\x01x"s), Contains("byte 2: the type code is 0x0A"));
  CHECK_THAT(error_of(images.substr(0, images.size() - 1)), Contains("promise more than the file holds"));
  CHECK_THAT(error_of(images + "x"), Contains("byte 22"));
  CHECK_THAT(error_of("\0\0\x0E\x03\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s),
             Contains("promise more"));
  CHECK_THAT(error_of("\0\0\x0E\x03\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s), Contains("promise more"));
  write_gzipped(file, images);
  const auto size = fs::file_size(file);
  fs::resize_file(file, size - 5);
  CHECK_THROWS_AS(read_idx(file), FileError);
  CHECK_THROWS_AS(read_idx(folder / "missing"), FileError);
  CHECK_THROWS_WITH(read_mnist(folder.path(), true), Contains("holds neither train-images-idx3-ubyte nor"));
  write_bytes(folder / "train-images-idx3-ubyte", images);
  write_bytes(folder / "train-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x01\x07"s);
  CHECK_THROWS_WITH(read_mnist(folder.path(), true), Contains("must hold 2 labels"));
}

TEST_CASE("an idx file cut anywhere is refused", "[data]") {
  const TemporaryDirectory folder;
  const fs::path file = folder / "cut";
  for (std::size_t length = 0; length < images.size(); ++length) {
    write_bytes(file, images.substr(0, length));
    CHECK_THROWS_AS(read_idx(file), FileError);
  }
}
