#include <set>
#include <string>

#include "pleat/bench/machine.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::bench;

TEST_CASE("ceilings: the CPU's are measured once for each number of threads", "[bench]") {
  const Ceilings& first = ceilings({});
  CHECK(&ceilings({}) == &first);
  CHECK(first.threads == num_threads());
  const int threads = num_threads();
  set_num_threads(1);
  const Ceilings& alone = ceilings({});
  set_num_threads(threads);
  CHECK(alone.threads == 1);
  if (threads > 1) CHECK(&alone != &first);
}

TEST_CASE("ceilings: plausible for any processor of the last decades", "[bench]") {
  const Ceilings& found = ceilings({});
  std::set<std::string> names;
  REQUIRE(found.peaks.size() == 2);
  REQUIRE_FALSE(found.bandwidths.empty());
  for (const auto* list : {&found.peaks, &found.bandwidths})
    for (const Ceiling& ceiling : *list) {
      CAPTURE(ceiling.name, ceiling.value);
      CHECK(ceiling.value > 0.05);
      CHECK(ceiling.value < 1e6);
      names.insert(ceiling.name);
    }
  CHECK(names.size() == found.peaks.size() + found.bandwidths.size());
  CHECK(found.copy_bandwidth() == found.bandwidths[0].value);
}

TEST_CASE("ceilings: which peak counts for which type", "[bench]") {
  Ceilings cpu{.peaks = {{"FMA float32", 200}, {"FMA float64", 100}}, .bandwidths = {{"copy", 20}}};
  CHECK(cpu.peak(DType::float32).value() == 200);
  CHECK(cpu.peak(DType::bfloat16).value() == 200);
  CHECK(cpu.peak(DType::float64).value() == 100);
  CHECK_FALSE(cpu.peak(DType::int64).has_value());

  Ceilings cuda{.device = "cuda",
                .peaks = {{"GEMM float32", 50},
                          {"GEMM TF32", 400},
                          {"GEMM float32 as bfloat16", 700},
                          {"GEMM bfloat16", 800}},
                .bandwidths = {{"copy", 4000}}};
  CHECK(cuda.peak(DType::float32).value() == 50);
  CHECK(cuda.peak(DType::float32, Precision::high).value() == 400);
  CHECK(cuda.peak(DType::float32, Precision::medium).value() == 700);
  CHECK(cuda.peak(DType::bfloat16).value() == 800);
  CHECK_FALSE(cuda.peak(DType::float16).has_value());
}
