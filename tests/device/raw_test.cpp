// Raw operations that no differentiable function is made of, on the other device.

#include "pleat/ops/index/index.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/ops/matmul/einsum.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"

using namespace pleat;
using namespace pleat::test;

TEST_CASE("device: raw pooling and resampling", "[device]") {
  agrees_in_value({normal({2, 3, 7, 6})}, [](const Tensors& t) {
    return Tensors{ops::avg_pool(t[0], {.kernel_size = 3, .padding = 1}),
                   ops::adaptive_avg_pool(t[0], {.output_size = {3, 4}}),
                   ops::interpolate(t[0], {.scale_factor = 1.5, .mode = Interpolation::linear})};
  });
}
TEST_CASE("device: raw spread", "[device]") {
  agrees_in_value({normal({2, 3, 7, 6})}, [](const Tensors& t) {
    return Tensors{ops::var(t[0], {1, 3}), ops::stddev(t[0], {0})};
  });
}
TEST_CASE("device: raw einsum", "[device]") {
  agrees_in_value({normal({4, 5}), normal({5, 3}, 2)}, [](const Tensors& t) {
    return ops::einsum("ij,jk->ki", {t[0], t[1]});
  });
}
TEST_CASE("device: raw splitting, tiling and choosing", "[device]") {
  agrees_in_value({normal({4, 5}), coins({4, 5})}, [](const Tensors& t) {
    Tensors results = ops::split(t[0], 2, 1);
    for (const Tensor& part : ops::chunk(t[0], 2)) results.push_back(part);
    results.push_back(ops::tile(t[0], {2, 1, 3}));
    results.push_back(ops::masked_select(t[0], t[1]));
    return results;
  });
}
