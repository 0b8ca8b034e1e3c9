// POSIX: Windows has no pipes and devices in folders, and links only for some users
#include <functional>
#include <string>

#include <sys/stat.h>

#include "pleat/core/base/error.h"
#include "pleat/data/datasets.h"
#include "pleat/data/image.h"
#include "pleat/io/csv.h"
#include "pleat/io/npy.h"
#include "pleat/io/npz.h"
#include "pleat/io/safetensors.h"
#include "pleat/ops/tune/tuner.h"
#include "pleat/profile/profiler.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/io/readers.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using Catch::Matchers::Contains;
using pleat_test::Reader;
using pleat_test::readers;
using pleat_test::TemporaryDirectory;
using pleat_test::write_bytes;
namespace fs = std::filesystem;

namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("every reader waits for no pipe, and reads no device", "[io][data]") {
  const TemporaryDirectory folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink(folder / "pipe", folder / "link");
  for (const Reader& reader : readers()) {
    INFO(reader.name);
    for (const auto& [name, kind] : {std::pair<std::string, std::string>{"pipe", "a pipe"},
                                     {"link", "a pipe"},
                                     {"/dev/zero", "a device"}}) {
      const fs::path path = folder.path() / name;
      const std::string message = message_of([&] { reader.read(path, {}); });
      CHECK_THAT(message, Contains("'" + path.string() + "': is not a regular file, but " + kind));
    }
  }
  for (const bool train : {true, false}) {
    const char* name = train ? "data_batch_1.bin" : "test_batch.bin";
    fs::create_symlink(folder / "pipe", folder / name);
    CHECK_THAT(message_of([&] { data::read_cifar10(folder.path(), train); }), Contains("a pipe"));
  }
}

TEST_CASE("links to files are followed", "[io]") {
  const TemporaryDirectory folder;
  write_bytes(folder / "x.npy", std::string("nonsense"));
  fs::create_symlink(folder / "x.npy", folder / "link.npy");
  CHECK_THAT(message_of([&] { io::read_npy(folder / "link.npy"); }), Contains("is not a .npy file"));
}

TEST_CASE("a CSV file may be a device, and is no pipe that nobody reads from", "[io]") {
  const TemporaryDirectory directory;
  CHECK_THROWS_AS(io::CsvWriter("/dev/full", {"a"}), FileError);
  io::CsvWriter nowhere("/dev/null", {"a"});
  nowhere.row({1});
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(io::CsvWriter(directory / "pipe", {"a"}), Contains("is a pipe that nobody reads from"));
}

TEST_CASE("a trace is written to a device, and says when that is full", "[profile]") {
  profile::Profiler profiler;
  profiler.stop();
  profiler.profile().export_chrome_trace("/dev/null");
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_THROWS_WITH(profiler.profile().export_chrome_trace("/dev/full"),
                    "export_chrome_trace: cannot write '/dev/full': No space left on device");
}
