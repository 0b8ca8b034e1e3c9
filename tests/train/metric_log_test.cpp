#include "pleat/train/metric_log.h"

#include <limits>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/skip.h"
#include "pleat/tests/system.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;
using Catch::Matchers::Contains;

namespace {
std::string text_of(const std::filesystem::path& file) {
  const auto bytes = read_bytes(file);
  return {bytes.begin(), bytes.end()};
}
}  // namespace

TEST_CASE("a log keeps rows in memory, in its file and in checkpoints", "[train][cpu]") {
  if (!replaces_open_files()) return skip("the system replaces no file that is open");
  const TemporaryDirectory folder;
  train::MetricLog log(folder / "metrics.csv");
  CHECK_FALSE(std::filesystem::exists(folder / "metrics.csv"));
  CHECK(log.rows() == 0);
  log.add({{"epoch", 1}, {"a.loss", 0.1}});
  log.add({{"epoch", 2}, {"a.loss", std::numeric_limits<double>::quiet_NaN()}});
  const std::string written = "epoch,a.loss\n1,0.1\n2,nan\n";
  CHECK(text_of(folder / "metrics.csv") == written);
  CHECK(log.names() == std::vector<std::string>{"epoch", "a.loss"});
  CHECK(log["epoch"] == std::vector<double>{1, 2});
  const nn::StateDict saved = log.state_dict();

  log.add({{"epoch", 3}, {"a.loss", 0.3}});
  train::MetricLog again(folder / "metrics.csv");
  train::MetricLog other(folder / "metrics.csv");  // that of a process which adds no rows
  again.load_state_dict(saved);
  again.add({{"epoch", 3}, {"a.loss", 0.5}});  // that of 0.3 came after the checkpoint
  other.load_state_dict(saved);
  again.add({{"epoch", 4}, {"a.loss", 0.6}});
  CHECK(text_of(folder / "metrics.csv") == written + "3,0.5\n4,0.6\n");
  CHECK(again["epoch"].size() == 4);
}

TEST_CASE("a log has integers with all their digits, or refuses them", "[train][cpu]") {
  const TemporaryDirectory folder;
  train::MetricLog log(folder / "metrics.csv");
  constexpr int64_t large = (int64_t{1} << 53) + 1;
  log.add({{"samples", large + 1}});
  CHECK(text_of(folder / "metrics.csv") == "samples\n9007199254740994\n");
  CHECK_THROWS_WITH(log.add({{"samples", large}}), Contains("9007199254740993 would be rounded"));
  CHECK(log.rows() == 1);
}

TEST_CASE("a log refuses rows and states that are not its own", "[train][cpu]") {
  const TemporaryDirectory folder;
  train::MetricLog log(folder / "metrics.csv");
  CHECK_THROWS_WITH(log.add({}), Contains("must have figures"));
  CHECK_THROWS_WITH(log["loss"], Contains("there is no figure \"loss\", but none yet"));
  log.add({{"epoch", 1}, {"loss", 2}});
  CHECK_THROWS_WITH(log.add({{"loss", 1}, {"epoch", 2}}),
                    Contains("must have the figures epoch loss, got loss epoch"));
  CHECK_THROWS_WITH(log["accuracy"], Contains("but epoch loss"));
  const Tensor row = zeros({1}, float64);
  for (const nn::StateDict& state : {nn::StateDict{{"loss", row}},
                                     {{"1.loss", row}},
                                     {{"0.", row}},
                                     {{"0.a", row}, {"1.b", zeros({2}, float64)}},
                                     {{"0.a", zeros({1}, float32)}},
                                     {{"0.a", row}, {"00.b", row}}})
    CHECK_THROWS_AS(log.load_state_dict(state), ValueError);
  CHECK(log.rows() == 1);
}
