#include <string>

#include "pleat/bench/conv_shape.h"
#include "pleat/bench/record.h"
#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat::bench;
using Catch::Matchers::Contains;
using pleat_test::TemporaryDirectory;
using pleat_test::write_bytes;

TEST_CASE("a baseline from elsewhere is neither deep nor slow, and its counts are counts", "[bench]") {
  const TemporaryDirectory folder;
  const auto path = folder / "x.json";
  write_bytes(path, std::string(1'000'000, '['));
  CHECK_THROWS_WITH(read_results(path), Contains("nested too deeply"));
  std::string object = "{\"pleat_bench\":2,\"results\":{";
  for (int i = 0; i < 100'000; ++i) object += '"' + std::to_string(i) + "\":0,";
  write_bytes(path, object + "\"x\":0}}");
  CHECK_THROWS_WITH(read_results(path), Contains("more than 1000 members"));
  for (const char* size : {"1e+300", "-1", "0.5", "18446744073709551615", "true"}) {
    write_bytes(
        path, std::string(R"({"pleat_bench":2,"machine":"","command":"","results":[{"subcommand":"conv",)") +
                  R"("labels":{},"time":{"first_call":1,"tuning":0,"threads":1,"cold_cache":false,)" +
                  R"("times":[1],"block_size":)" + size + "}}]}");
    CHECK_THROWS_WITH(read_results(path),
                      Contains("block_size must be a whole number, got " + std::string(size)));
  }
}
