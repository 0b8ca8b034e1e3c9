#include "pleat/core/files/input_file.h"

#include <functional>
#include <string>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/datasets.h"
#include "pleat/data/image.h"
#include "pleat/io/npy.h"
#include "pleat/io/npz.h"
#include "pleat/io/safetensors.h"
#include "pleat/ops/tune/tuner.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/io/readers.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using pleat_test::Reader;
using pleat_test::readers;
using pleat_test::TemporaryDirectory;
using pleat_test::write_bytes;
namespace fs = std::filesystem;

namespace {

template <class E = FileError>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("every reader takes regular files only, and names the others", "[io][data]") {
  const TemporaryDirectory folder;
  for (const Reader& reader : readers()) {
    INFO(reader.name);
    CHECK_THAT(message_of([&] { reader.read(folder.path(), {}); }),
               Contains("'" + folder.path().string() + "': is not a regular file, but a folder"));
    CHECK_THAT(message_of([&] { reader.read(folder / "none", {}); }),
               Contains((folder / "none").string()) && Contains("No such file"));
    // Nothing opens the file before a zero byte.
    CHECK_THAT(message_of([&] { reader.read(fs::path(std::string("x\0y", 3)), {}); }), Contains("zero byte"));
  }
}

TEST_CASE("a memory limit is a number of bytes", "[io]") {
  const TemporaryDirectory folder;
  write_bytes(folder / "x", std::string(1000, 'x'));
  CHECK_THAT(message_of<ValueError>([&] { InputFile("read", folder / "x", {.memory_limit = -1}); }),
             Contains("memory_limit must be a number of bytes, or 0 for the default, got -1"));
  CHECK(InputFile("read", folder / "x").memory().limit == int64_t{256} << 20);
  CHECK(InputFile("read", folder / "x", {.memory_limit = 7}).memory().limit == 7);
  write_bytes(folder / "large", "");
  fs::resize_file(folder / "large", int64_t{5} << 20);
  CHECK(InputFile("read", folder / "large").memory().limit == int64_t{500} << 20);
}

TEST_CASE("what is above the limit is refused with the remedy", "[io]") {
  const TemporaryDirectory folder;
  io::write_npy(folder / "x.npy", zeros({1000}));
  const std::string message = message_of([&] { io::read_npy(folder / "x.npy", {.memory_limit = 3999}); });
  CHECK_THAT(message, StartsWith("read_npy: '" + (folder / "x.npy").string() + "', byte "));
  CHECK_THAT(message,
             Contains("an array of shape [1000] takes 3.9 KiB, more than the 3.9 KiB that may be "
                      "taken for this file; if you trust it, raise the limit: {.memory_limit = 4000}"));
  CHECK_NOTHROW(io::read_npy(folder / "x.npy", {.memory_limit = 4000}));
}

TEST_CASE("whatever goes wrong names the file", "[io]") {
  const std::string name = "read: 'x'";
  const auto thrown = [&](const auto& error) {
    return [&] { reading(name, [&]() -> int { throw error; }); };
  };
  CHECK_THAT(message_of<OutOfMemoryError>(thrown(std::bad_alloc())), StartsWith("read: 'x': no memory"));
  CHECK_THAT(message_of<OutOfMemoryError>(thrown(std::length_error("vector"))), StartsWith("read: 'x': "));
  CHECK(message_of<OutOfMemoryError>(thrown(OutOfMemoryError("4 GiB"))) == "read: 'x': 4 GiB");
  CHECK(message_of(thrown(ShapeError("too large"))) == "read: 'x': too large");
  CHECK(message_of(thrown(std::runtime_error("what"))) == "read: 'x': what");
  CHECK(message_of(thrown(FileError("read: 'x', byte 3: what"))) == "read: 'x', byte 3: what");
}

TEST_CASE("JSON of a stranger is neither deep nor slow", "[io]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x.json";
  const auto message = [&](ReadOptions options) {
    return message_of([&] { ops::Tuner::load(path, options); });
  };
  write_bytes(path, std::string(1'000'000, '[') + std::string(1'000'000, ']'));
  CHECK_THAT(message({}), Contains("nested too deeply"));
  std::string object = "{";
  for (int i = 0; i < 100'000; ++i) object += '"' + std::to_string(i) + "\":0,";
  write_bytes(path, object + "\"x\":0}");
  CHECK_THAT(message({}), Contains("more than 1000 members"));
  // The token that the parser quotes is not repeated as a whole.
  write_bytes(path, "\"" + std::string(100'000, 'x'));
  CHECK_THAT(message({}), Contains("is not JSON"));
  CHECK(message({}).size() < 600);
  write_bytes(path, std::string(1000, ' ') + "{}");
  CHECK_THAT(message({.memory_limit = 1000}), Contains(".memory_limit = "));
}
