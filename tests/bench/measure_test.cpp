#include "pleat/bench/measure.h"

#include <cmath>
#include <limits>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench;

namespace {

Case doubling(double bytes = 8000) {
  Case result{.record = {.subcommand = "test", .labels = {{"problem", "x + x"}}}, .prepare = {}};
  const Tensor x = operand({10, 10}, {});
  result.prepare = [=] { return Prepared{[=] { return Tensors{x + x}; }, bytes}; };
  result.exact = [=] { return Tensors{ops::cast(x, float64) * 2}; };
  result.flops = 1000;
  return result;
}

const CommonOptions quick = [] {
  CommonOptions options;
  options.device = "cpu";
  options.seconds = 1e-4;
  options.quick = true;
  return options;
}();

}  // namespace

TEST_CASE("measure: operands are the same at each call and lie as asked", "[bench]") {
  const Tensor a = operand({2, 3, 4, 5}, {"float32", "channels_last"}, 7);
  CHECK(a.memory_format() == MemoryFormat::channels_last);
  CHECK(a.to_vector<float>() == operand({2, 3, 4, 5}, {"float32", "contiguous"}, 7).to_vector<float>());
  CHECK(a.to_vector<float>() != operand({2, 3, 4, 5}, {"float32", "contiguous"}, 8).to_vector<float>());
  CHECK(operand({2, 3}, {"bfloat16", "channels_last"}).dtype() == DType::bfloat16);
}

TEST_CASE("measure: rates are of the median and shares of the ceilings", "[bench]") {
  const std::vector<Record> records = measure({doubling()}, quick, true);
  REQUIRE(records.size() == 1);
  const Record& record = records[0];
  CHECK(record.subcommand == "test");
  CHECK(record.label("problem") == "x + x");
  REQUIRE(record.time.has_value());
  CHECK(record.value("gflops").value() == Approx(1000 / record.time->median() / 1e9));
  CHECK(record.value("gbytes").value() == Approx(8000 / record.time->median() / 1e9));
  CHECK(record.value("intensity").value() == Approx(0.125));
  CHECK(record.value("share_of_peak").value() > 0);
  CHECK(record.value("share_of_copy").value() > 0);
  CHECK(record.value("error").value() == 0);  // a sum of two equal numbers is exact
}

TEST_CASE("measure: what is not known is left out", "[bench]") {
  Case one = doubling(0);
  one.flops = 0;
  CHECK(measure({one}, quick, false).at(0).values.empty());
}

TEST_CASE("measure: one that fails says why, and the others are timed", "[bench]") {
  Case early = doubling(), late = doubling();
  early.prepare = []() -> Prepared { throw ValueError("cannot be prepared"); };
  int runs = 0;
  late.prepare = [&runs] {
    return Prepared{[&runs]() -> Tensors {
      if (++runs > 3) throw ShapeError("does not fit any more");
      return {};
    }};
  };
  const std::vector<Record> records = measure({early, doubling(), late}, quick, true);
  REQUIRE(records.size() == 3);
  CHECK(records[0].failure == "cannot be prepared");
  CHECK_FALSE(records[0].time.has_value());
  CHECK(records[1].failure.empty());
  CHECK(records[1].time.has_value());
  CHECK(records[2].failure == "does not fit any more");
  CHECK_FALSE(records[2].time.has_value());
  CHECK(runs == 4);
  CHECK(measure({early}, quick, true).at(0).failure == "cannot be prepared");
}

TEST_CASE("measure: errors are told against what is right, and more may be added", "[bench]") {
  Case one = doubling();
  const Tensor x = operand({10, 10}, {"float64"});
  one.exact = [=] { return Tensors{x * 2.02}; };
  int tuned = 0;
  one.tune = [&tuned] { ++tuned; };
  one.finish = [](Record& record) { record.set_value("more", record.value("flops").value() + 1); };
  const Record record = measure({one}, quick, true).at(0);
  CHECK(record.value("error").value() == Approx(0.02 / 2.02).epsilon(1e-4));
  CHECK(record.value("more") == 1001.0);
  CHECK(tuned == 1);
  CHECK(record.time.value().tuning > 0);
  one.exact = []() -> Tensors { throw OutOfMemoryError("no room"); };
  const Record unchecked = measure({one}, quick, true).at(0);
  CHECK(unchecked.label("not_checked") == "no room");
  CHECK_FALSE(unchecked.value("error").has_value());
  one.tune = [] { throw ValueError("no plan"); };
  CHECK(measure({one}, quick, true).at(0).failure == "no plan");
}

TEST_CASE("an error is relative to what is right", "[bench]") {
  const Tensor right = tensor({3.0, 4.0});
  CHECK(bench::relative_error(tensor({3.0, 4.0}), right) == 0);
  CHECK(bench::relative_error(tensor({3.0, 4.5}), right) == Approx(0.1));
  CHECK(bench::relative_error(tensor({0.1, 0.0}), tensor({0.0, 0.0})) == Approx(0.1));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isinf(bench::relative_error(tensor({nan, 4.0}), right)));
  CHECK_THROWS_AS(bench::relative_error(tensor({1.0}), right), ShapeError);
}
