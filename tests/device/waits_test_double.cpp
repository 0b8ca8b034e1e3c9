// How often the host waits for a GPU: once where a function must know what only the GPU knows, else never.

#include <functional>
#include <string>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/embedding.h"
#include "pleat/nn/loss.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/cuda_double/double.h"

using namespace pleat;

namespace {

const Device gpu(DeviceType::cuda);

/// How often `f` made the host wait: for values that it reads, or writes from memory that is not pinned.
int64_t waits(const std::function<void()>& f) {
  cuda::synchronize();
  cuda_double::reset_counts();
  f();
  return cuda_double::counts().blocking_copies;
}

}  // namespace

TEST_CASE("double: functions wait for indices once, and their backwards never", "[ops][cuda]") {
  const auto square = [] { return ones({6, 6}, {.device = gpu}).set_requires_grad(); };
  const Tensor source = ones({6, 6}, {.device = gpu});
  const Tensor flat = tensor({0, 5, 2, -1, 3, 3}).to(gpu);
  const Tensor labels = tensor({0, 5, 2, 1, 3, 3}).to(gpu);
  const Tensor grid = ops::to_device(full({6, 6}, 2, {.dtype = int64}), gpu);
  const Tensor mask = source.detach() > 0;
  using Function = std::function<Tensor(const Tensor&)>;
  const std::vector<std::pair<std::string, Function>> functions = {
      {"gather", [&](const Tensor& x) { return gather(x, 1, grid); }},
      {"scatter", [&](const Tensor& x) { return scatter(x, 1, grid, source); }},
      {"scatter of a number", [&](const Tensor& x) { return scatter(x, 1, grid, 3); }},
      {"scatter of x", [&](const Tensor& x) { return scatter(source, 1, grid, x); }},
      {"scatter_add", [&](const Tensor& x) { return scatter_add(x, 1, grid, source); }},
      {"scatter_add of x", [&](const Tensor& x) { return scatter_add(source, 1, grid, x); }},
      {"index_select", [&](const Tensor& x) { return index_select(x, 0, flat); }},
      {"index_add", [&](const Tensor& x) { return index_add(x, 0, flat, source); }},
      {"index_add of x", [&](const Tensor& x) { return index_add(source, 1, flat, x); }},
      {"index_copy", [&](const Tensor& x) { return index_copy(x, 0, flat, source); }},
      {"index_copy of x", [&](const Tensor& x) { return index_copy(source, 0, flat, x); }},
      {"index_fill", [&](const Tensor& x) { return index_fill(x, 0, flat, 2); }},
      {"index_put",
       [&](const Tensor& x) {
         return index_put(x, {flat, flat}, source[0].detach());
       }},
      {"index_put, added", [&](const Tensor& x) { return index_put(x, {flat}, source, true); }},
      {"index_put of x", [&](const Tensor& x) { return index_put(source, {flat}, x); }},
      {"index_put of x, added", [&](const Tensor& x) { return index_put(source, {flat}, x, true); }},
      {"index_put by a mask", [&](const Tensor& x) { return index_put(x, {mask}, 2); }},
      {"masked_select", [&](const Tensor& x) { return masked_select(x, mask); }},
      {"nonzero", [&](const Tensor& x) { return x * nonzero(mask).size(0); }},
      {"one_hot", [&](const Tensor& x) { return x * one_hot(labels, 6); }},
      {"bincount", [&](const Tensor& x) { return x * bincount(labels); }},
      {"one_hot of all", [&](const Tensor& x) { return x * one_hot(labels); }},
      {"embedding", [&](const Tensor& x) { return embedding(labels, x); }},
      {"embedding of int32", [&](const Tensor& x) { return embedding(labels.to(int32), x); }},
      {"embedding with padding", [&](const Tensor& x) { return embedding(labels, x, {.padding_idx = 3}); }},
      {"sort", [&](const Tensor& x) { return sort(x).values; }},
      {"topk", [&](const Tensor& x) { return topk(x, 2).values; }},
      {"cross_entropy", [&](const Tensor& x) { return cross_entropy(x, labels); }},
      {"nll_loss", [&](const Tensor& x) { return nll_loss(x, labels); }},
  };
  for (const auto& [name, function] : functions) {
    CAPTURE(name);
    const Tensor x = square();
    Tensor y;
    CHECK(waits([&, &function = function] { y = function(x); }) <= 1);
    const Tensor dy = ones(y.shape(), {.device = gpu}).set_requires_grad();
    std::vector<Tensor> dx;
    CHECK(waits([&] { dx = grad({y}, {x}, {dy}, {.create_graph = true}); }) == 0);
    if (dx[0].requires_grad())
      CHECK(waits([&] { grad({sum(dx[0])}, {dy}, {}, {.allow_unused = true}); }) == 0);
  }
  // Labels that were checked before are not checked again.
  const Tensor x = square();
  CHECK(waits([&] { cross_entropy(x, labels, {.check_target = false}).backward(); }) == 0);
  // Wrong indices are still found, first in the order of the dimensions.
  const Tensor wrong = tensor({0, 6, 2, 1, 3, 3}).to(gpu);
  CHECK_THROWS_WITH(index_put(x, {flat, wrong}, source[0]),
                    "index_put: index 6 at [1] is outside [-6, 6), dimension 1 of [6, 6]");
  CHECK_THROWS_WITH(embedding(flat, x),
                    "embedding: index -1 at [3] is outside [0, 6), dimension 0 of [6, 6]");
}
