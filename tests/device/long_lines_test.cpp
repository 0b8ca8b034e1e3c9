// Reductions, scans, softmax and norms of long lines on the other device.

#include <functional>

#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/softmax/softmax.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"

using namespace pleat;
using namespace pleat::test;

TEST_CASE("device: reductions of many elements", "[device]") {
  agrees_in_value({integers({70, 80}, -9, 9)}, [](const Tensors& t) { return sum(t[0], {0}); });
  agrees_in_value({uniform({300, 700}, 0, 0.1)}, [](const Tensors& t) {
    return Tensors{sum(t[0]),      sum(t[0], {0}), mean(t[0], {1}),
                   max(t[0], {0}), norm(t[0]),     logsumexp(t[0], {1})};
  });
}

TEST_CASE("device: scans of long lines", "[device]") {
  agrees_in_value({uniform({3, 5000}, 0, 1)}, [](const Tensors& t) {
    return Tensors{cumsum(t[0], 1), cumsum(t[0], 1, true), cumprod(t[0] / 8 + 0.9375, 1)};
  });
}

// Lines that one round of a block's threads does not hold; few long ones are cut into parts, which a second
// launch merges.
TEST_CASE("device: softmax, reductions and norms of long lines", "[device]") {
  for (const int64_t n : {700, 1025, 4099})
    for (const bool rows : {true, false}) {
      CAPTURE(n, rows);
      const int64_t dim = rows ? 1 : 0;
      const Tensor x = rows ? normal({2, n}) : normal({n, 3});
      const AgreeOptions once{.differences = false};
      const auto along = [&](const std::function<Outputs(const Tensor&)>& f) {
        agrees(
            {x}, [&](const Tensors& t) { return f(t[0]); }, once);
      };
      along([&](const Tensor& t) { return softmax(t, {dim}); });
      along([&](const Tensor& t) { return log_softmax(t, {dim}); });
      along([&](const Tensor& t) { return logsumexp(t, {dim}); });
      along([&](const Tensor& t) { return mean(t, {dim}); });
      along([&](const Tensor& t) { return var(t, {dim}); });
      along([&](const Tensor& t) { return max(t, {dim}); });
      along([&](const Tensor& t) { return norm(t, {dim}); });
      along([&](const Tensor& t) { return cumsum(t * t, dim); });
      along([&](const Tensor& t) { return sum(t * t, {dim}); });
      agrees({x}, [&](const Tensors& t) { return argmax(t[0], dim); }, {.differentiable = false});
      if (!rows) {
        agrees(
            {x, normal({3}, 2), normal({3}, 3)},
            [](const Tensors& t) {
              return batch_norm(t[0], t[1], t[2], {}, {}, {.training = true, .implementation = "native"});
            },
            once);
        continue;
      }
      agrees(
          {x, normal({n}, 2), normal({n}, 3)},
          [&](const Tensors& t) { return layer_norm(t[0], t[1], t[2], {.normalized_shape = {n}}); }, once);
      agrees(
          {normal({2, 4, n}), normal({4}, 2), normal({4}, 3)},
          [](const Tensors& t) { return group_norm(t[0], t[1], t[2], {.num_groups = 2}); }, once);
      agrees(
          {normal({2, 3, n}), normal({3}, 2), normal({3}, 3)},
          [](const Tensors& t) {
            return batch_norm(t[0], t[1], t[2], {}, {}, {.training = true, .implementation = "native"});
          },
          once);
    }
}
