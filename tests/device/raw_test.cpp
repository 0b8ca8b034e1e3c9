// Raw operations that no differentiable function is made of, on the other device.

#include "pleat/ops/reduce/reduce_kernels.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"

using namespace pleat;
using namespace pleat::test;

TEST_CASE("device: raw spread", "[device]") {
  agrees_in_value({normal({2, 3, 7, 6})}, [](const Tensors& t) {
    return Tensors{ops::var(t[0], {1, 3}), ops::stddev(t[0], {0})};
  });
}
