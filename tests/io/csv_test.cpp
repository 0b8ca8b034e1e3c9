#include "pleat/io/csv.h"

#include <limits>
#include <string>

#include <sys/stat.h>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;

TEST_CASE("a table is written line by line", "[io]") {
  const TemporaryDirectory directory;
  const auto path = directory / "metrics.csv";
  const auto text = [&] {
    const auto bytes = read_bytes(path);
    return std::string(bytes.begin(), bytes.end());
  };
  io::CsvWriter table(path, {"epoch", "loss", "a, \"note\""});
  CHECK(text() == "epoch,loss,\"a, \"\"note\"\"\"\n");
  table.row({1, 0.1, "plain"});
  table.row({std::int64_t{1} << 40, 1e-30, ""});
  table.row({"", 2.5f, "two\nlines"});
  // Without closing the file.
  CHECK(text() == "epoch,loss,\"a, \"\"note\"\"\"\n1,0.1,plain\n1099511627776,1e-30,\n,2.5,\"two\nlines\"\n");
  const std::size_t before = text().size();
  table.row({std::numeric_limits<std::int64_t>::max(), 0x1p62, 1e300});  // no digit is rounded
  CHECK(text().substr(before) == "9223372036854775807,4611686018427387904,1e+300\n");
  CHECK_THROWS_AS(table.row({1, 2.0}), ValueError);
  CHECK_THROWS_AS(io::CsvWriter(path, {}), ValueError);
  CHECK_THROWS_AS(io::CsvWriter(directory / "none" / "x.csv", {"a"}), FileError);
  CHECK_THROWS_AS(io::CsvWriter(directory.path(), {"a"}), FileError);
  CHECK_THROWS_AS(io::CsvWriter("/dev/full", {"a"}), FileError);
  io::CsvWriter nowhere("/dev/null", {"a"});
  nowhere.row({1});
  // A pipe without a reader is not waited for.
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(io::CsvWriter(directory / "pipe", {"a"}),
                    Catch::Matchers::Contains("is a pipe that nobody reads from"));
}
