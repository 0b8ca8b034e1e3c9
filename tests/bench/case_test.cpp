#include "pleat/bench/case.h"

#include <cmath>
#include <limits>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench;

namespace {

Case doubling(const Shape& shape) {
  Case result{.record = {.subcommand = "test", .labels = {{"problem", "x + x"}}}, .prepare = {}};
  result.operands = {operand(shape, {})};
  result.prepare = [](const std::vector<Tensor>& operands) -> Compute {
    return [x = operands[0]] { return std::vector<Tensor>{ops::add(x, x)}; };
  };
  result.flops = 1000;
  result.bytes = 8000;
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

TEST_CASE("cases: operands are the same at each call and lie as asked", "[bench]") {
  const Tensor a = operand({2, 3, 4, 5}, {"float32", "channels_last"}, 7);
  CHECK(a.memory_format() == MemoryFormat::channels_last);
  CHECK(a.to_vector<float>() == operand({2, 3, 4, 5}, {"float32", "contiguous"}, 7).to_vector<float>());
  CHECK(a.to_vector<float>() != operand({2, 3, 4, 5}, {"float32", "contiguous"}, 8).to_vector<float>());
  CHECK(operand({2, 3}, {"bfloat16", "channels_last"}).dtype() == DType::bfloat16);
}

TEST_CASE("cases: rates are of the median and shares of the ceilings", "[bench]") {
  const std::vector<Record> records = measure({doubling({10, 10})}, quick, true);
  REQUIRE(records.size() == 1);
  const Record& record = records[0];
  CHECK(record.subcommand == "test");
  CHECK(record.label("problem") == "x + x");
  REQUIRE(record.time.has_value());
  CHECK(record.value("gflops").value() == Approx(1000 / record.time->median / 1e9));
  CHECK(record.value("gbytes").value() == Approx(8000 / record.time->median / 1e9));
  CHECK(record.value("intensity").value() == Approx(0.125));
  CHECK(record.value("share_of_peak").value() > 0);
  CHECK(record.value("share_of_copy").value() > 0);
  CHECK(record.value("error").value() == 0);  // a sum of two equal numbers is exact
}

TEST_CASE("cases: what is not known is left out", "[bench]") {
  Case one = doubling({10});
  one.flops = 0;
  one.bytes = 0;
  const Record record = measure({one}, quick, false).at(0);
  CHECK(record.values.empty());
}

TEST_CASE("cases: one that fails says why, and the others are timed", "[bench]") {
  Case early = doubling({10}), late = doubling({10});
  early.record.labels = {{"problem", "early"}};
  early.prepare = [](const std::vector<Tensor>&) -> Compute { throw ValueError("cannot be prepared"); };
  late.record.labels = {{"problem", "late"}};
  int runs = 0;
  late.prepare = [&runs](const std::vector<Tensor>&) -> Compute {
    return [&runs]() -> std::vector<Tensor> {
      if (++runs > 3) throw ShapeError("does not fit any more");
      return {};
    };
  };
  const std::vector<Record> records = measure({early, doubling({10}), late}, quick, true);
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

TEST_CASE("cases: errors are told against the reference in float64", "[bench]") {
  Case wrong = doubling({1000});
  wrong.reference = [](const std::vector<Tensor>& operands) -> Compute {
    CHECK(operands[0].dtype() == DType::float64);
    return [x = operands[0]] { return std::vector<Tensor>{ops::multiply(x, ops::number_like(2.02, x))}; };
  };
  CHECK(measure({wrong}, quick, true).at(0).value("error").value() == Approx(0.02 / 2.02).epsilon(1e-4));
}

TEST_CASE("cases: what is right may come from elsewhere, and more may be added to what was measured",
          "[bench]") {
  Case one = doubling({1000});
  one.reference = function_of(
      [x = one.operands[0]](const Tensors&) { return Tensors{ops::multiply(x, ops::number_like(2.02, x))}; });
  int tuned = 0;
  one.tune = [&tuned] { ++tuned; };
  one.finish = [](Record& record) { record.set_value("more", record.value("flops").value() + 1); };
  const Record record = measure({one}, quick, true).at(0);
  CHECK(record.value("error").value() == Approx(0.02 / 2.02).epsilon(1e-4));
  CHECK(record.value("more") == 1001.0);
  CHECK(tuned == 1);
  CHECK(record.time.value().tuning > 0);
  one.reference = [](const Tensors&) -> Compute { throw OutOfMemoryError("no room"); };
  const Record unchecked = measure({one}, quick, true).at(0);
  CHECK(unchecked.label("not_checked") == "no room");
  CHECK_FALSE(unchecked.value("error").has_value());
  one.tune = [] { throw ValueError("no plan"); };
  CHECK(measure({one}, quick, true).at(0).failure == "no plan");
}

TEST_CASE("a case is labelled by its problem and operands", "[bench]") {
  const Record::Texts all{{"problem", "p"}, {"pass", "forward"}, {"dtype", "float64"}, {"device", "cpu"}};
  CHECK(make_case("norm", "p", {{"pass", "forward"}}, {"float64", ""}).record.labels == all);
  CHECK(make_case("norm", "p", {}, {"float64", "contiguous"}).record.label("format") == "contiguous");
  CHECK(make_case("norm", "p", {}, {"float64"}).dtype == float64);
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
