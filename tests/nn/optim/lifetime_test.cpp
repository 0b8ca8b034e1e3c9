#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/optim/clip_grad.h"
#include "pleat/nn/optim/grad_scaler.h"
#include "pleat/nn/optim/multi_optimizer.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

/// Modules, optimisers, schedules and scalers that are moved or gone while others refer to them.

namespace {

nn::Linear small() { return nn::Linear{{.in_features = 3, .out_features = 3}}; }

optim::SGD sgd_over(const std::vector<Tensor>& params) { return {params, {.lr = 0.5}}; }

Tensor weight() { return ones({2}).set_requires_grad(); }

}  // namespace

// A schedule over a temporary does not compile.
static_assert(std::is_constructible_v<optim::Schedule, optim::SGD&, optim::Rate>);
static_assert(!std::is_constructible_v<optim::Schedule, optim::SGD, optim::Rate>);
static_assert(!std::is_constructible_v<optim::Schedule, optim::MultiOptimizer, optim::Rate>);
static_assert(!std::is_constructible_v<optim::ReduceLROnPlateau, optim::SGD>);
static_assert(!std::is_copy_constructible_v<optim::SGD>);

TEST_CASE("an optimiser goes on when its module is moved or gone", "[optim]") {
  auto net = std::make_unique<nn::Sequential>(small(), small());
  const std::vector<Tensor> params = net->parameters();
  optim::SGD sgd = sgd_over(params);
  nn::Sequential moved = std::move(*net);
  net.reset();
  const auto train = [&](nn::Module& module) {
    sgd.zero_grad();
    const auto before = params[0].to_vector();
    sum(module(ones({2, 3}))).backward();
    sgd.step();
    CHECK(params[0].to_vector() != before);
    CHECK(module.parameters()[0].to_vector() == params[0].to_vector());
  };
  train(moved);
  nn::Sequential outer{std::move(moved)};
  train(outer);
  outer = nn::Sequential{};
  params[0].set_grad(ones({3, 3}));
  sgd.step();  // over parameters that no module has
}

TEST_CASE("schedules follow an optimiser that is moved, and say when it is gone", "[optim]") {
  const Tensor p = weight();
  std::optional<optim::SGD> sgd = sgd_over({p});
  optim::Schedule schedule{*sgd, optim::StepLR{.step_size = 1}};
  optim::ReduceLROnPlateau plateau{*sgd, {.maximize = false, .patience = 0}};
  optim::SGD moved = std::move(*sgd);
  schedule.step();
  CHECK(moved.lr() == Approx(0.05));
  sgd.reset();  // what is left of it
  schedule.step();
  CHECK(moved.lr() == Approx(0.005));

  // Into a MultiOptimizer, and on with that.
  const Tensor q = weight();
  optim::MultiOptimizer both{std::move(moved), sgd_over({q})};
  schedule.step();
  CHECK(both.lr(0) == Approx(0.0005));
  CHECK(both.lr(1) == 0.5);
  optim::Schedule all{both, optim::ConstantLR{.factor = 0.1}};
  optim::MultiOptimizer later = std::move(both);
  all.set_steps(5);
  CHECK(later.lr(1) == 0.5);
  plateau.step(1);
  plateau.step(1);
  CHECK(later.lr(0) == Approx(0.00005));

  std::optional<optim::SGD> brief = sgd_over({weight()});
  optim::Schedule orphan{*brief, optim::StepLR{.step_size = 1}};
  optim::ReduceLROnPlateau also{*brief, {.maximize = false}};
  brief.reset();
  const std::string gone =
      "its optimiser is gone, or another took its place; make both anew, the optimiser first";
  CHECK_THROWS_WITH(orphan.step(), "Schedule: " + gone);
  CHECK_THROWS_WITH(orphan.state_dict(), "Schedule: " + gone);
  CHECK_THROWS_WITH(also.step(1), "ReduceLROnPlateau: " + gone);

  optim::SGD one = sgd_over({weight()});
  optim::Schedule replaced{one, optim::StepLR{.step_size = 1}};
  one = sgd_over({weight()});
  CHECK_THROWS_WITH(replaced.step(), "Schedule: " + gone);

  optim::Schedule first{one, optim::StepLR{.step_size = 1}};
  optim::Schedule second = std::move(first);
  CHECK_THROWS_WITH(first.step(), "Schedule: it was moved from; use the one that it was moved to");
  second.step();
  CHECK(one.lr() == Approx(0.05));
}

TEST_CASE("an optimiser that was moved from is refused wherever it is used", "[optim]") {
  optim::SGD sgd = sgd_over({weight()});
  optim::SGD other = std::move(sgd);
  const std::string moved = "SGD: this optimiser was moved from; use the one that it was moved to";
  CHECK_THROWS_WITH(sgd.step(), moved);
  CHECK_THROWS_WITH(sgd.zero_grad(), moved);
  CHECK_THROWS_WITH(sgd.parameters(), moved);
  CHECK_THROWS_WITH(sgd.num_groups(), moved);
  CHECK_THROWS_WITH(sgd.lr(), moved);
  CHECK_THROWS_WITH(sgd.set_lr(0.1), moved);
  CHECK_THROWS_WITH(sgd.set_lr(0, 0.1), moved);
  CHECK_THROWS_WITH(sgd.momentum(), moved);
  CHECK_THROWS_WITH(sgd.set_momentum(0, 0.1), moved);
  CHECK_THROWS_WITH(sgd.options(), moved);
  CHECK_THROWS_WITH(sgd.state_dict(), moved);
  CHECK_THROWS_WITH(sgd.load_state_dict({}), moved);
  CHECK_THROWS_WITH((optim::Schedule{sgd, optim::ConstantLR{}}), moved);
  CHECK_THROWS_WITH((optim::MultiOptimizer{std::move(sgd), sgd_over({weight()})}), moved);
  sgd = std::move(other);
  sgd.set_lr(0.1);

  optim::MultiOptimizer both{sgd_over({weight()}), sgd_over({weight()})};
  optim::MultiOptimizer taken = std::move(both);
  const std::string multi = "MultiOptimizer: this optimiser was moved from; use the one that it was moved to";
  CHECK_THROWS_WITH(both.step(), multi);
  CHECK_THROWS_WITH(both.num_groups(), multi);
  CHECK_THROWS_WITH(both.lr(), multi);
  CHECK_THROWS_WITH(both.part(0), multi);
  CHECK_THROWS_WITH(both.state_dict(), multi);
  CHECK_THROWS_WITH(taken.part(2), "MultiOptimizer: there are 2 parts, no part 2");
}

TEST_CASE("a parameter group that there is not is an IndexError", "[optim]") {
  optim::SGD sgd = sgd_over({weight()});
  const std::string none = "SGD: parameter group 1 is outside [0, 1)";
  CHECK_THROWS_WITH(sgd.options(1), none);
  CHECK_THROWS_WITH(sgd.lr(1), none);
  CHECK_THROWS_WITH(sgd.set_lr(1, 0.1), none);
  CHECK_THROWS_WITH(sgd.momentum(1), none);
  CHECK_THROWS_AS(sgd.set_momentum(1, 0.1), IndexError);
}

TEST_CASE("a scaler knows an optimiser that is moved between its calls", "[optim][amp]") {
  const Tensor p = weight();
  optim::SGD sgd = sgd_over({p});
  optim::GradScaler scaler{{.init_scale = 4}};
  p.set_grad(full({2}, 8));
  scaler.unscale_(sgd);
  optim::SGD moved = std::move(sgd);
  CHECK(scaler.step(moved));
  CHECK(p.grad().to_vector() == std::vector<float>{2, 2});  // divided once
  CHECK_THROWS_WITH(scaler.step(sgd), Contains("SGD: this optimiser was moved from"));
  optim::GradScaler other = std::move(scaler);
  CHECK_THROWS_WITH(scaler.update(), "GradScaler: it was moved from; use the one that it was moved to");
  other.update();
}

TEST_CASE("what needs gradients says why there are none", "[optim]") {
  nn::Linear fc = small();
  optim::SGD sgd = sgd_over(fc.parameters());
  const std::string none_yet =
      "no parameter (of 2) has a gradient: no backward() has reached them since they were made or "
      "zero_grad() was called; call loss.backward() first, of a loss that was computed from them and not "
      "under "
      "NoGrad";
  CHECK_THROWS_WITH(sgd.step(), "SGD: " + none_yet);
  CHECK_THROWS_WITH(optim::clip_grad_norm_(fc.parameters(), {.max_norm = 1}), "clip_grad_norm_: " + none_yet);
  CHECK_THROWS_WITH(optim::clip_grad_value_(fc.parameters(), {.clip_value = 1}),
                    "clip_grad_value_: " + none_yet);
  optim::GradScaler scaler;
  CHECK_THROWS_WITH(scaler.step(sgd), "GradScaler: " + none_yet);
  CHECK_THROWS_WITH(optim::clip_grad_norm_({}, {.max_norm = 1}),
                    Contains("clip_grad_norm_: got no parameters"));

  fc.requires_grad_(false);
  CHECK_THROWS_WITH(sgd.step(), Contains("none requires one; call requires_grad_(true) of the module"));
  fc.requires_grad_(true);
  CHECK_THROWS_WITH(optim::clip_grad_norm_({fc(ones({1, 3}))}, {.max_norm = 1}), Contains("retain_grad()"));

  // One gradient is enough, in any part of several optimisers.
  optim::MultiOptimizer both{sgd_over(fc.parameters()), sgd_over({weight()})};
  CHECK_THROWS_WITH(both.step(), Contains("MultiOptimizer: no parameter (of 3) has a gradient"));
  fc.bias.set_grad(ones({3}));
  both.step();
}
