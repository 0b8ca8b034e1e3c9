#include "pleat/dist/sync_batch_norm.h"

#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/dist/collectives.h"
#include "pleat/dist/data_parallel.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/norm.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/dist/world.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using test::part_of;
using test::relative_error;
using test::world;

namespace {

Tensor same(const Shape& shape, uint64_t seed, DType dtype = float64) {
  Generator generator(seed);
  return randn(shape, float64, generator).to(dtype);
}
int64_t batch() { return 2 * world().size() + 1; }

}  // namespace

TEST_CASE("sync_batch_norm: values and gradients to second order are those of one process", "[dist]") {
  for (const Shape& sample : {Shape{3}, Shape{3, 4}, Shape{3, 2, 4}, Shape{3, 2, 2, 2}}) {
    Shape shape = sample;
    shape.insert(shape.begin(), batch());
    CAPTURE(shape);
    const Tensor x = (same(shape, 1) * 2.0 + 30.0).set_requires_grad(), factors = same(shape, 2);
    const Tensor w = same({3}, 3).set_requires_grad(), b = same({3}, 4).set_requires_grad();
    const BatchNormOptions options{.training = true, .bounds = {.min = -1.5, .max = 2}};
    Tensor mean = zeros({3}, float64), var = ones({3}, float64);
    const Tensor y = batch_norm(x, w, b, mean, var, options);
    const Grads d = grad({sum(y * y * factors)}, {x, w, b}, {}, {.create_graph = true});
    const Grads dd = grad({sum(d[0] * d[0]) + sum(d[1] * d[1]) + sum(d[2] * d[2])}, {x, w, b});

    // All ranks' losses together are the one above; each rank has its own part of x.
    const Tensor own = part_of(x.detach()).clone().set_requires_grad(), own_factors = part_of(factors);
    Tensor own_mean = zeros({3}, float64), own_var = ones({3}, float64);
    const Tensor own_y = dist::sync_batch_norm(own, w, b, own_mean, own_var, world(), options);
    CHECK(relative_error(own_y, part_of(y.detach())) < 1e-12);
    CHECK(relative_error(own_mean, mean) < 1e-13);
    CHECK(relative_error(own_var, var) < 1e-13);
    const Grads own_d = grad({sum(own_y * own_y * own_factors)}, {own, w, b}, {}, {.create_graph = true});
    CHECK(relative_error(own_d[0], part_of(d[0].detach())) < 1e-11);
    // Of weight and bias each rank has its part of the sum.
    const Tensor dw = dist::all_reduce(own_d[1], world()), db = dist::all_reduce(own_d[2], world());
    CHECK(relative_error(dw, d[1]) < 1e-11);
    CHECK(relative_error(db, d[2]) < 1e-11);
    const double share = 1.0 / world().size();  // every rank has the whole of dw and db
    const Grads own_dd =
        grad({sum(own_d[0] * own_d[0]) + (sum(dw * dw) + sum(db * db)) * share}, {own, w, b});
    CHECK(relative_error(own_dd[0], part_of(dd[0])) < 1e-10);
    CHECK(relative_error(dist::all_reduce(own_dd[1], world()), dd[1]) < 1e-10);
    CHECK(relative_error(dist::all_reduce(own_dd[2], world()), dd[2]) < 1e-10);
  }
}

TEST_CASE("sync_batch_norm: a network in training is that of one process", "[dist]") {
  for (const bool cumulative : {false, true}) {
    nn::BatchNormModuleOptions options{.num_features = 4};
    if (cumulative) options.momentum.reset();
    nn::Sequential net(nn::Conv2d{{.in_channels = 3, .out_channels = 4, .kernel_size = 3}},
                       nn::BatchNorm2d{options},
                       nn::Conv2d{{.in_channels = 4, .out_channels = 4, .kernel_size = 3}},
                       nn::BatchNorm2d{{.num_features = 4, .bounds = {.min = 0}}});
    net.to(float64);
    nn::Sequential alone = nn::clone(net);
    CHECK(dist::convert_sync_batch_norm(net, world()) == (world().size() > 1 ? 2 : 0));
    dist::DataParallel ddp{net, world()};
    alone.load_state_dict(net.state_dict());
    for (uint64_t step = 0; step < 3; ++step) {
      const Tensor x = same({batch(), 3, 8, 8}, step);
      mean(square(ddp(part_of(x)))).backward();
      mean(square(alone(x))).backward();
      const auto a = net.named_parameters(), b = alone.named_parameters();
      for (std::size_t i = 0; i < a.size(); ++i) {
        CAPTURE(a[i].first);
        // Absolutely: a shift before a batch norm has no part in the result, so that its gradient is 0.
        CHECK(max(abs(a[i].second.grad() - b[i].second.grad())).item() < 1e-12);
      }
      net.zero_grad();
      alone.zero_grad();
    }
    for (const auto& [name, tensor] : net.state_dict()) {
      CAPTURE(name);
      CHECK(relative_error(tensor, alone.state_dict().at(name)) < 1e-12);
    }
    net.eval();
    alone.eval();
    CHECK(relative_error(net(same({1, 3, 8, 8}, 9)), alone(same({1, 3, 8, 8}, 9))) < 1e-12);
  }
}

TEST_CASE("sync_batch_norm: float32 far from 0 keeps its variance, and halves their type", "[dist]") {
  const Tensor x = same({batch(), 3, 4, 4}, 1) + 1000.0;
  const BatchNormOptions options{.training = true};
  const Tensor y = batch_norm(x, {}, {}, {}, {}, options);
  const auto run = [&](DType dtype) {
    return dist::sync_batch_norm(part_of(x).to(dtype), {}, {}, {}, {}, world(), options);
  };
  CHECK(relative_error(run(float32), part_of(y)) < 1e-4);
  CHECK(run(bfloat16).dtype() == bfloat16);
}

TEST_CASE("sync_batch_norm: wrong operands are errors", "[dist]") {
  if (world().size() == 1) return;
  const BatchNormOptions options{.training = true};
  CHECK_THROWS_AS(dist::sync_batch_norm(ones({3}), {}, {}, {}, {}, world(), options), ShapeError);
  CHECK_THROWS_AS(dist::sync_batch_norm(ones({2, 3}), ones({2}), {}, {}, {}, world(), options), ShapeError);
  CHECK_THROWS_AS(dist::sync_batch_norm(ones({2, 3}, int64), {}, {}, {}, {}, world(), options), DTypeError);
}
