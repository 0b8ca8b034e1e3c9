// Reductions, scans, softmax and sorting on the other device.

#include "pleat/autograd/functions/reduce.h"

#include <functional>
#include <limits>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/index.h"
#include "pleat/autograd/functions/norm.h"
#include "pleat/autograd/functions/scan.h"
#include "pleat/autograd/functions/softmax.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"

using namespace pleat;
using namespace pleat::test;

namespace {

using Reduction = std::function<Outputs(const Tensor&, const Dims&, bool keepdim)>;

/// Over everything, rows, columns, and what lies between.
void agrees_over(const Tensor& x, const Reduction& reduce) {
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{}, {-1}, {0}, {0, 2, 3}, {1}, {1, 3}}) {
    CAPTURE(to_string(dims));
    agrees({x}, [&](const Tensors& t) { return reduce(t[0], dims, dims.size() > 1); });
  }
}

Tensor image() { return normal({3, 4, 5, 2}); }

void agrees_along(const Tensor& x, const std::function<Outputs(const Tensor&, int64_t dim)>& f) {
  for (const int64_t dim : {0, 1, -1}) {
    CAPTURE(dim);
    agrees({x}, [&](const Tensors& t) { return f(t[0], dim); });
  }
}

}  // namespace

TEST_CASE("device: sum", "[device]") {
  agrees_over(image(), [](const Tensor& x, const Dims& dims, bool keepdim) { return sum(x, dims, keepdim); });
  agrees({image()}, [](const Tensors& t) { return sum_to(t[0], {4, 1, 2}); });
  agrees_in_value({integers({70, 80}, -9, 9)}, [](const Tensors& t) { return sum(t[0], {0}); });
}
TEST_CASE("device: reductions of many elements", "[device]") {
  agrees_in_value({uniform({300, 700}, 0, 0.1)}, [](const Tensors& t) {
    return Tensors{sum(t[0]),      sum(t[0], {0}), mean(t[0], {1}),
                   max(t[0], {0}), norm(t[0]),     logsumexp(t[0], {1})};
  });
}
TEST_CASE("device: mean", "[device]") {
  agrees_over(image(),
              [](const Tensor& x, const Dims& dims, bool keepdim) { return mean(x, dims, keepdim); });
}
TEST_CASE("device: prod", "[device]") {
  agrees_over(uniform({2, 3, 2, 2}, 0.5, 1.5),
              [](const Tensor& x, const Dims& dims, bool keepdim) { return prod(x, dims, keepdim); });
}
TEST_CASE("device: var", "[device]") {
  agrees_over(image(), [](const Tensor& x, const Dims& dims, bool keepdim) {
    return var(x, dims, {.correction = 0, .keepdim = keepdim});
  });
}
TEST_CASE("device: stddev", "[device]") {
  agrees_over(image(), [](const Tensor& x, const Dims& dims, bool keepdim) {
    return stddev(x, dims, {.keepdim = keepdim});
  });
}
TEST_CASE("device: var_mean", "[device]") {
  agrees_over(image(), [](const Tensor& x, const Dims& dims, bool keepdim) {
    return var_mean(x + 3, dims, {.keepdim = keepdim});
  });
}
TEST_CASE("device: norm", "[device]") {
  for (const double p : {1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
    CAPTURE(p);
    agrees_over(image(), [&](const Tensor& x, const Dims& dims, bool keepdim) {
      return norm(x, dims, {.p = p, .keepdim = keepdim});
    });
  }
}
TEST_CASE("device: logsumexp", "[device]") {
  agrees_over(image(),
              [](const Tensor& x, const Dims& dims, bool keepdim) { return logsumexp(x, dims, keepdim); });
}
TEST_CASE("device: max", "[device]") {
  agrees_over(image(), [](const Tensor& x, const Dims& dims, bool keepdim) { return max(x, dims, keepdim); });
  agrees_along(image(), [](const Tensor& x, int64_t dim) { return max_with_indices(x, dim, true); });
}
TEST_CASE("device: min", "[device]") {
  agrees_over(image(), [](const Tensor& x, const Dims& dims, bool keepdim) { return min(x, dims, keepdim); });
  agrees_along(image(), [](const Tensor& x, int64_t dim) { return min_with_indices(x, dim); });
}
TEST_CASE("device: argmax and argmin", "[device]") {
  agrees_in_value({integers({3, 4, 5}, 0, 4), image()}, [](const Tensors& t) {  // with equal ones
    return Tensors{argmax(t[0], 1), argmin(t[0], -1, true), argmax(t[0]), argmax(t[1], 0), argmin(t[1], 2)};
  });
}
TEST_CASE("device: any and all", "[device]") {
  agrees_in_value({coins({3, 2, 4})}, [](const Tensors& t) {
    return Tensors{any(t[0], {1}), all(t[0], {1}), any(t[0]), all(t[0]), all(t[0], {0, 2}, true)};
  });
}

TEST_CASE("device: cumsum", "[device]") {
  agrees_along(image(), [](const Tensor& x, int64_t dim) {
    return Tensors{cumsum(x, dim), cumsum(x, dim, true)};
  });
}
TEST_CASE("device: cumprod", "[device]") {
  agrees_along(uniform({3, 4, 5}, -1.5, 1.5), [](const Tensor& x, int64_t dim) {
    return Tensors{cumprod(x, dim), cumprod(x, dim, true)};
  });
}
TEST_CASE("device: linear_scan", "[device]") {
  for (const bool reverse : {false, true})
    agrees({uniform({3, 4, 5}, -1, 1), normal({3, 4, 5}, 2)},
           [&](const Tensors& t) { return linear_scan(t[0], t[1], 1, reverse); });
}
TEST_CASE("device: shifted", "[device]") {
  agrees_along(image(), [](const Tensor& x, int64_t dim) {
    return Tensors{shifted(x, dim, 1, 0.5), shifted(x, dim, -1, 0)};
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
TEST_CASE("device: softmax", "[device]") {
  agrees_along(image(), [](const Tensor& x, int64_t dim) { return softmax(x, dim); });
}
TEST_CASE("device: log_softmax", "[device]") {
  agrees_along(image(), [](const Tensor& x, int64_t dim) { return log_softmax(x, dim); });
}

TEST_CASE("device: sort", "[device]") {
  agrees_along(image(), [](const Tensor& x, int64_t dim) { return sort(x, {.dim = dim}); });
  agrees_along(image(),
               [](const Tensor& x, int64_t dim) { return sort(x, {.dim = dim, .descending = true}); });
  agrees_in_value({integers({4, 900}, 0, 50)}, [](const Tensors& t) {  // equal ones keep their order
    return Tensors{argsort(t[0]), argsort(t[0], {.dim = 0, .descending = true})};
  });
}
TEST_CASE("device: topk", "[device]") {
  agrees_along(image(), [](const Tensor& x, int64_t dim) { return topk(x, 2, {.dim = dim}); });
  agrees_along(image(),
               [](const Tensor& x, int64_t dim) { return topk(x, 2, {.dim = dim, .largest = false}); });
}
