#include "pleat/bench/candidate.h"

#include <cmath>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench;

namespace {

Candidate doubling(const Shape& shape, DType dtype = DType::float32) {
  Candidate result;
  result.labels = {{"problem", "x + x"}};
  result.operands = {operand(shape, dtype, {})};
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

TEST_CASE("candidates: operands are the same at each call and lie as asked", "[bench]") {
  const Tensor a = operand({2, 3, 4, 5}, DType::float32, {}, "channels_last", 7);
  CHECK(a.memory_format() == MemoryFormat::channels_last);
  CHECK(a.to_vector<float>() ==
        operand({2, 3, 4, 5}, DType::float32, {}, "contiguous", 7).to_vector<float>());
  CHECK(a.to_vector<float>() !=
        operand({2, 3, 4, 5}, DType::float32, {}, "contiguous", 8).to_vector<float>());
  CHECK(operand({2, 3}, DType::bfloat16, {}, "channels_last").dtype() == DType::bfloat16);
}

TEST_CASE("candidates: rates are of the median and shares of the ceilings", "[bench]") {
  const std::vector<Record> records = measure("test", {doubling({10, 10})}, quick, true);
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

TEST_CASE("candidates: what is not known is left out", "[bench]") {
  Candidate candidate = doubling({10});
  candidate.flops = candidate.bytes = 0;
  const Record record = measure("test", {candidate}, quick, false).at(0);
  CHECK(record.values.empty());
}

TEST_CASE("candidates: one that fails says why, and the others are timed", "[bench]") {
  Candidate early = doubling({10}), late = doubling({10});
  early.labels = {{"problem", "early"}};
  early.prepare = [](const std::vector<Tensor>&) -> Compute { throw ValueError("cannot be prepared"); };
  late.labels = {{"problem", "late"}};
  int runs = 0;
  late.prepare = [&runs](const std::vector<Tensor>&) -> Compute {
    return [&runs]() -> std::vector<Tensor> {
      if (++runs > 3) throw ShapeError("does not fit any more");
      return {};
    };
  };
  const std::vector<Record> records = measure("test", {early, doubling({10}), late}, quick, true);
  REQUIRE(records.size() == 3);
  CHECK(records[0].failure == "cannot be prepared");
  CHECK_FALSE(records[0].time.has_value());
  CHECK(records[1].failure.empty());
  CHECK(records[1].time.has_value());
  CHECK(records[2].failure == "does not fit any more");
  CHECK_FALSE(records[2].time.has_value());
  CHECK(runs == 4);
  CHECK(measure("test", {early}, quick, true).at(0).failure == "cannot be prepared");
}

TEST_CASE("candidates: errors are told against the reference in float64", "[bench]") {
  Candidate wrong = doubling({1000});
  wrong.reference = [](const std::vector<Tensor>& operands) -> Compute {
    CHECK(operands[0].dtype() == DType::float64);
    return [x = operands[0]] { return std::vector<Tensor>{ops::multiply(x, ops::number_like(2.02, x))}; };
  };
  CHECK(measure("test", {wrong}, quick, true).at(0).value("error").value() ==
        Approx(0.02 / 2.02).epsilon(1e-4));
}
