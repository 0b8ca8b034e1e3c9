// The tuner on the other device.

#include "pleat/autograd/functions/conv.h"
#include "pleat/ops/conv/tune/tune.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using namespace pleat::test;

TEST_CASE("device: a tuned convolution", "[device]") {
  if (pleat_test::lacks_gpus()) return;
  const Shape input{2, 5, 9, 7};  // of no other test
  const Tensors x{normal(input), normal({4, 5, 3, 3}, 2), normal({4}, 3)};
  const auto on = [&](Device device) {
    Tensors there;
    for (const Tensor& t : x) there.push_back(ops::to_device(ops::cast(t, float32), device));
    return there;
  };
  {
    const Device other(DeviceType::cuda);
    const Tensors there = on(other);
    const auto timings =
        ops::tune_conv(there[0], there[1], there[2], {.padding = 1}, {.warmups = 1, .samples = 2});
    REQUIRE(timings.size() >= 3);  // of each pass
    for (const ops::ConvTiming& timing : timings) {
      INFO(describe(timing));
      CHECK((timing.milliseconds > 0 || !timing.failure.empty()));
    }
  }
  agrees(x, [](const Tensors& t) {
    const ConvPolicy guard{{.benchmark = true}};
    return conv2d(t[0], t[1], t[2], {.padding = 1});
  });
}
