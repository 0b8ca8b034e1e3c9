#include "pleat/train/run_folder.h"

#include <optional>

#include "pleat/core/base/error.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat::train;
using namespace pleat_test;
namespace fs = std::filesystem;

namespace {
const std::vector<std::string> results{"metrics.csv", "weights.safetensors"};
}

TEST_CASE("an earlier run's results make room under one number", "[train]") {
  const TemporaryDirectory directory;
  const fs::path folder = directory / "deep" / "runs";
  {
    RunFolder first(folder, results);
    CHECK(first.notice().empty());
    first.make_room();
    write_bytes(first / "metrics.csv", "first");
    write_bytes(folder / "weights.1.safetensors", "of others");
  }
  {
    const RunFolder failing(folder, results);
    CHECK(failing.notice() == folder.string() + " holds an earlier run; it will be kept as metrics.2.csv");
  }
  CHECK(fs::exists(folder / "metrics.csv"));
  RunFolder second(folder, results);
  second.make_room();
  CHECK_FALSE(fs::exists(folder / "metrics.csv"));
  CHECK(read_bytes(folder / "metrics.2.csv").size() == 5);
  CHECK(read_bytes(folder / "weights.1.safetensors").size() == 9);
  write_bytes(second / "metrics.csv", "second");
  second.make_room();  // once
  CHECK(fs::exists(folder / "metrics.csv"));
}

TEST_CASE("a folder is one run's alone", "[train]") {
  const TemporaryDirectory directory;
  std::optional<RunFolder> first;
  first.emplace(directory.path(), results);
  CHECK_THROWS_WITH(RunFolder(directory.path(), results),
                    "another run writes into '" + directory.path().string() +
                        "'; wait for its end, or give this one another --output");
  first.reset();
  CHECK(fs::is_empty(directory.path()));
  // The lock of a run that was killed.
  write_bytes(directory / ".lock", "");
  CHECK_NOTHROW(RunFolder(directory.path(), results));
}

TEST_CASE("what a killed run was writing in its folders is not kept", "[train]") {
  const TemporaryDirectory directory;
  fs::create_directory(directory / "tensorboard");
  write_bytes(directory / "tensorboard" / "events.1", "whole");
  write_bytes(directory / "tensorboard" / "events.2.pleat-4711-0.tmp", "half");
  pleat::AtomicFile written("test", directory / "tensorboard" / "events.3");  // by a process that lives
  RunFolder run(directory.path(), {"tensorboard/"});
  run.make_room();
  CHECK(fs::exists(directory / "tensorboard.1" / "events.1"));
  CHECK(std::distance(fs::directory_iterator(directory / "tensorboard.1"), {}) == 2);
}

TEST_CASE("a folder that cannot take results is an error at once", "[train]") {
  const TemporaryDirectory directory;
  write_bytes(directory / "file", "x");
  CHECK_THROWS_AS(RunFolder(directory / "file", results), pleat::FileError);
  CHECK_THROWS_AS(RunFolder(directory / "file" / "below", results), pleat::FileError);
  fs::create_directory(directory / "metrics.csv");
  CHECK_THROWS_WITH(RunFolder(directory.path(), results), Catch::Matchers::Contains("is a folder"));
}
