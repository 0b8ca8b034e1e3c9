// POSIX: Windows has no pipes and devices in folders
#include <fstream>
#include <sstream>

#include <sys/stat.h>

#include "pleat/bench/conv_shape.h"
#include "pleat/bench/record.h"
#include "pleat/tests/bench/run.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat::bench;
using Catch::Matchers::Contains;
using pleat::test::has;
using pleat_test::TemporaryDirectory;

TEST_CASE("pleat-bench reads regular files only, and waits for none", "[bench]") {
  const TemporaryDirectory folder;
  const auto pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_results(pipe),
                    Contains("'" + pipe.string() + "': is not a regular file, but a pipe"));
  CHECK_THROWS_WITH(read_conv_shapes(pipe), Contains("is not a regular file, but a pipe"));
  CHECK_THROWS_WITH(read_results(folder.path()), Contains("a folder"));
  CHECK_THROWS_WITH(read_conv_shapes("/dev/zero"), Contains("a device"));
}

TEST_CASE("pleat-bench fails when what it says goes nowhere", "[bench]") {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"--help"}, {"list"}, {"list", "--json", "-"}}) {
    std::ofstream full("/dev/full");
    std::ostringstream err;
    CAPTURE(arguments);
    CHECK(pleat::bench::run_program(arguments, full, err) == 1);
    CHECK(has(err.str(), "cannot write to standard output"));
  }
  const pleat::test::BenchOutcome outcome = pleat::test::run_bench({"list", "--csv", "/dev/full"});
  CHECK(outcome.status == 1);
  CHECK(has(outcome.err, "cannot write '/dev/full': No space left on device"));
  CHECK(pleat::test::run_bench({"list", "--csv", "/dev/null"}).status == 0);
}
