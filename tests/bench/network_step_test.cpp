#include "pleat/bench/network_step.h"

#include <map>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"

using pleat::bench::make_network_step;

TEST_CASE("network steps: networks have the parameters that scripts/torch_networks.py counts", "[bench]") {
  const std::map<std::string, int64_t> parameters{
      {"lenet", 61706},  {"mobilenet_v2", 2236682}, {"unet", 1927042}, {"dcgan", 6342272},
      {"voxels", 69906}, {"chars", 818241},         {"small", 113962}};
  for (const auto& [name, wanted] : parameters) DYNAMIC_SECTION(name) {
      const auto step = make_network_step(name, 2, "channels_last");
      CHECK(step.parameters == wanted);
      step.run();
      step.run();
    }
  make_network_step("small", 2, "channels_last", pleat::bfloat16).run();
  make_network_step("small", 2, "contiguous", pleat::float64).run();
  CHECK_THROWS_AS(make_network_step("alexnet", 2, "contiguous"), pleat::ValueError);
}
