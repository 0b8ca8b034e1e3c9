#include "pleat/nn/optim/schedule.h"

#include <cmath>
#include <limits>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"

using namespace pleat;
using namespace pleat::optim;
using test::Json;

namespace {

/// The rate with the options that PyTorch knows it by; `group` chooses from options that differ between
/// groups.
Rate rate_from(const std::string& op, const Json& o, std::size_t group) {
  const auto number = [&](const char* key) { return o.at(key).get<double>(); };
  const auto count = [&](const char* key) { return o.at(key).get<int64_t>(); };
  if (op == "StepLR") return StepLR{.step_size = count("step_size"), .gamma = number("gamma")};
  if (op == "MultiStepLR")
    return MultiStepLR{o.at("milestones").get<std::vector<int64_t>>(), number("gamma")};
  if (op == "ExponentialLR") return ExponentialLR{number("gamma")};
  if (op == "CosineAnnealingLR") return CosineAnnealingLR{count("T_max"), number("eta_min")};
  if (op == "CosineAnnealingWarmRestarts")
    return CosineAnnealingWarmRestarts{count("T_0"), count("T_mult"), number("eta_min")};
  if (op == "ConstantLR") return ConstantLR{number("factor"), count("total_iters")};
  if (op == "LinearLR") return LinearLR{number("start_factor"), number("end_factor"), count("total_iters")};
  if (op == "PolynomialLR") return PolynomialLR{count("total_iters"), number("power")};
  if (op == "LambdaLR") {
    const auto text = o.at("lr_lambda").at(group).get<std::string>();
    if (text == "0.95 ** step") return LambdaLR{[](int64_t step) { return std::pow(0.95, step); }};
    REQUIRE(text == "1 / (1 + 0.1 * step)");
    return LambdaLR{[](int64_t step) { return 1 / (1 + 0.1 * static_cast<double>(step)); }};
  }
  if (op == "OneCycleLR")
    return OneCycleLR{
        .max_lr = o.at("max_lr").is_array() ? o.at("max_lr").at(group).get<double>() : number("max_lr"),
        .total_steps = count("total_steps"),
        .pct_start = number("pct_start"),
        .linear = o.at("anneal_strategy") == "linear",
        .cycle_momentum = o.at("cycle_momentum").get<bool>(),
        .base_momentum = number("base_momentum"),
        .max_momentum = number("max_momentum"),
        .div_factor = number("div_factor"),
        .final_div_factor = number("final_div_factor"),
        .three_phase = o.at("three_phase").get<bool>()};
  if (op == "CyclicLR") {
    CyclicLR cycle{.base_lr = number("base_lr"),
                   .max_lr = number("max_lr"),
                   .steps_up = count("step_size_up"),
                   .mode = o.at("mode") == "triangular"    ? CyclicLR::Mode::triangular
                           : o.at("mode") == "triangular2" ? CyclicLR::Mode::triangular2
                                                           : CyclicLR::Mode::exp_range,
                   .gamma = number("gamma"),
                   .cycle_momentum = o.at("cycle_momentum").get<bool>(),
                   .base_momentum = number("base_momentum"),
                   .max_momentum = number("max_momentum")};
    if (!o.at("step_size_down").is_null()) cycle.steps_down = count("step_size_down");
    return cycle;
  }
  std::vector<Rate> parts;
  for (const Json& part : o.at("schedulers"))
    parts.push_back(rate_from(part.at("op"), part.at("options"), group));
  if (op == "SequentialLR") return SequentialLR{parts, o.at("milestones").get<std::vector<int64_t>>()};
  REQUIRE(op == "ChainedScheduler");
  return ChainedLR{parts};
}

std::unique_ptr<Optimizer> optimizer_for(const Json& c) {
  std::vector<SGD::Group> sgd;
  std::vector<Adam::Group> adam;
  for (const Json& group : c.at("groups")) {
    sgd.push_back({{zeros({1})}, {.lr = group.at("base_lr"), .momentum = 0.9}});
    adam.push_back({{zeros({1})}, {.lr = group.at("base_lr")}});
  }
  if (c.at("optimizer") == "SGD") return std::make_unique<SGD>(std::move(sgd));
  REQUIRE(c.at("optimizer") == "Adam");
  return std::make_unique<Adam>(std::move(adam));
}

void check_step(const Json& c, const Optimizer& optimizer, std::size_t step) {
  for (std::size_t g = 0; g < optimizer.num_groups(); ++g) {
    const Json& group = c.at("groups").at(g);
    INFO(c.at("name") << ", group " << g << ", after " << step << " steps");
    CHECK(std::abs(optimizer.lr(g) - group.at("lr").at(step).get<double>()) < 1e-14);
    if (group.contains("momentum") && c.at("options").at("cycle_momentum").get<bool>())
      CHECK(std::abs(*optimizer.momentum(g) - group.at("momentum").at(step).get<double>()) < 1e-14);
  }
}

}  // namespace

TEST_CASE("schedules follow PyTorch step by step", "[optim]") {
  for (const Json& c : test::fixture("schedules").at("cases")) {
    if (c.at("op") == "ReduceLROnPlateau") continue;
    const auto optimizer = optimizer_for(c);
    std::vector<Rate> rates;
    for (std::size_t g = 0; g < optimizer->num_groups(); ++g)
      rates.push_back(rate_from(c.at("op"), c.at("options"), g));
    Schedule schedule(*optimizer, rates);
    const std::size_t steps = c.at("groups").at(0).at("lr").size();
    REQUIRE(steps == 30);
    for (std::size_t step = 0; step < steps; ++step, schedule.step()) check_step(c, *optimizer, step);
    schedule.set_steps(3);
    check_step(c, *optimizer, 3);
  }
}

TEST_CASE("ReduceLROnPlateau follows PyTorch step by step", "[optim]") {
  for (const Json& c : test::fixture_cases("schedules", "ReduceLROnPlateau")) {
    const Json& o = c.at("options");
    const auto optimizer = optimizer_for(c);
    ReduceLROnPlateau schedule(
        *optimizer, {.maximize = o.at("mode") == "max",
                     .factor = o.at("factor"),
                     .patience = o.at("patience"),
                     .threshold = o.at("threshold"),
                     .absolute = o.at("threshold_mode") == "abs",
                     .cooldown = o.at("cooldown"),
                     .min_lr = o.at("min_lr").is_array() ? o.at("min_lr").get<std::vector<double>>()
                                                         : std::vector<double>{o.at("min_lr").get<double>()},
                     .eps = o.at("eps")});
    const auto metrics = c.at("metrics").get<std::vector<double>>();
    REQUIRE(metrics.size() == 29);
    check_step(c, *optimizer, 0);
    for (std::size_t step = 1; step <= metrics.size(); ++step) {
      schedule.step(metrics[step - 1]);
      check_step(c, *optimizer, step);
    }
  }
}

TEST_CASE("a linear warm-up, then a cosine", "[optim]") {
  SGD sgd{{zeros({1})}, {.lr = 1.0}};
  Schedule schedule(sgd, warm_up(2, CosineAnnealingLR{.steps = 4}, 0.5));
  std::vector<double> lrs;
  for (int i = 0; i < 7; ++i, schedule.step()) lrs.push_back(sgd.lr());
  const std::vector<double> expected = {0.5, 0.75, 1, 0.5 + std::sqrt(0.125), 0.5, 0.5 - std::sqrt(0.125), 0};
  for (std::size_t i = 0; i < lrs.size(); ++i) CHECK(lrs[i] == Approx(expected[i]).margin(1e-15));
}

TEST_CASE("warm_up rises to the base rate and goes on", "[optim]") {
  SGD sgd{{zeros({1})}, {.lr = 1.0}};
  Schedule schedule(sgd, warm_up(4, ExponentialLR{.gamma = 0.5}, 0.2));
  std::vector<double> lrs;
  for (int i = 0; i < 7; ++i, schedule.step()) lrs.push_back(sgd.lr());
  const std::vector<double> expected = {0.2, 0.4, 0.6, 0.8, 1, 0.5, 0.25};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(lrs[i] == Approx(expected[i]));
}

TEST_CASE("a one-cycle schedule has an end", "[optim]") {
  SGD sgd{{zeros({1})}, {.lr = 1.0}};
  Schedule schedule(sgd, OneCycleLR{.max_lr = 1, .total_steps = 5});
  schedule.set_steps(4);
  const double last = sgd.lr();
  schedule.step();  // as after the last update of a training
  CHECK(sgd.lr() == last);
  CHECK_THROWS_WITH(schedule.step(), Catch::Matchers::Contains("step 6 of a cycle of 5 steps"));
  CHECK(schedule.steps() == 5);
}

TEST_CASE("the momentum of a one-cycle rate passes through sequences and chains", "[optim]") {
  SGD sgd{{zeros({1})}, {.lr = 1.0, .momentum = 0.5}};
  const OneCycleLR cycle{.max_lr = 1, .total_steps = 10};
  Schedule schedule(sgd, warm_up(3, cycle));
  CHECK(*sgd.momentum() == 0.5);
  schedule.set_steps(3 + 4);
  CHECK(*sgd.momentum() == *cycle.momentum(4));
  CHECK(sgd.lr() == cycle(4, 1));
  CHECK(*Rate(ChainedLR{{ConstantLR{}, cycle}}).momentum(2) == *cycle.momentum(2));
}

TEST_CASE("a schedule with other options does not go on from a saved state", "[optim]") {
  const auto state_of = [](const Rate& rate, int64_t steps) {
    SGD sgd{{zeros({1})}, {.lr = 0.5}};
    Schedule schedule(sgd, rate);
    schedule.set_steps(steps);
    return schedule.state_dict();
  };
  const auto refuses = [&](const Rate& saved, const Rate& other, int64_t steps) {
    SGD sgd{{zeros({1})}, {.lr = 0.5}};
    Schedule schedule(sgd, other);
    const double before = sgd.lr();
    CHECK_THROWS_WITH(schedule.load_state_dict(state_of(saved, steps)),
                      Catch::Matchers::Contains("Schedule: its rate at step " + std::to_string(steps)));
    CHECK(sgd.lr() == before);
    CHECK(schedule.steps() == 0);
    schedule.load_state_dict(state_of(other, steps));  // with the same options it goes on
    CHECK(schedule.steps() == steps);
  };
  refuses(CosineAnnealingLR{.steps = 10}, CosineAnnealingLR{.steps = 20}, 10);
  refuses(OneCycleLR{.max_lr = 1, .total_steps = 10, .cycle_momentum = false},
          OneCycleLR{.max_lr = 1, .total_steps = 12, .cycle_momentum = false}, 3);
  refuses(StepLR{.step_size = 3}, StepLR{.step_size = 4}, 3);
  refuses(ExponentialLR{.gamma = 0.9}, ConstantLR{.factor = 1, .steps = 0}, 1);
  refuses(LinearLR{.end_factor = 0, .steps = 5}, LinearLR{.end_factor = 0.1, .steps = 5}, 5);
}

TEST_CASE("a run goes on for longer than it was planned, or it is refused", "[optim]") {
  // A run of 20 steps, saved after 8 and at its end, that goes on to 30 by `longer`.
  const auto rates = [](const Rate& planned, const Rate& longer, int64_t saved_at) {
    SGD sgd{{zeros({1})}, {.lr = 0.5, .momentum = 0.9}}, more{{zeros({1})}, {.lr = 0.5, .momentum = 0.9}};
    Schedule schedule(sgd, planned);
    for (int64_t step = 0; step < saved_at; ++step) schedule.step();
    Schedule resumed(more, longer);
    resumed.load_state_dict(schedule.state_dict());
    CHECK(more.lr() == sgd.lr());
    std::vector<double> lrs;
    while (resumed.steps() < 30) {
      resumed.step();
      lrs.push_back(more.lr());
    }
    return lrs;
  };
  const auto plain = [](const Rate& rate, int64_t from) {
    std::vector<double> lrs;
    for (int64_t step = from + 1; step <= 30; ++step) lrs.push_back(rate(step, 0.5));
    return lrs;
  };
  for (const int64_t saved_at : {8, 20}) {
    CAPTURE(saved_at);
    // Those without a length, and those that say what comes after it.
    for (const Rate& rate : std::vector<Rate>{
             StepLR{.step_size = 7}, MultiStepLR{.milestones = {10, 15}}, ExponentialLR{.gamma = 0.9},
             ConstantLR{}, ConstantLR{.factor = 1, .steps = 0}, LinearLR{}, PolynomialLR{.steps = 20},
             CosineAnnealingLR{.steps = 20}, CosineAnnealingWarmRestarts{.first = 6, .mult = 2},
             CyclicLR{.base_lr = 0.1, .max_lr = 1, .steps_up = 4},
             LambdaLR{[](int64_t step) { return 1 / (1.0 + static_cast<double>(step)); }},
             warm_up(5, CosineAnnealingLR{.steps = 15}),
             ChainedLR{{ExponentialLR{.gamma = 0.9}, LinearLR{}}}})
      CHECK(rates(rate, rate, saved_at) == plain(rate, saved_at));
    // Those whose length changes.
    const auto refuses = [&](const Rate& planned, const Rate& longer) {
      CHECK_THROWS_WITH(rates(planned, longer, saved_at),
                        Catch::Matchers::Contains("another number of steps in all") &&
                            Catch::Matchers::Contains("load the network's state alone"));
    };
    refuses(CosineAnnealingLR{.steps = 20}, CosineAnnealingLR{.steps = 30});
    refuses(PolynomialLR{.steps = 20}, PolynomialLR{.steps = 30});
    refuses(LinearLR{.steps = 20}, LinearLR{.steps = 30});
    refuses(warm_up(5, CosineAnnealingLR{.steps = 15}), warm_up(5, CosineAnnealingLR{.steps = 25}));
    for (const bool linear : {false, true})
      for (const bool three_phase : {false, true})
        refuses(OneCycleLR{.max_lr = 1, .total_steps = 20, .linear = linear, .three_phase = three_phase},
                OneCycleLR{.max_lr = 1, .total_steps = 30, .linear = linear, .three_phase = three_phase});
  }
  const OneCycleLR cycle{.max_lr = 1, .total_steps = 20};
  CHECK_THROWS_WITH(rates(cycle, cycle, 20), Catch::Matchers::Contains("step 21 of a cycle of 20 steps"));
  // Before a milestone the run is that of the new ones; behind it, it is refused.
  const MultiStepLR planned{.milestones = {10, 15}}, longer{.milestones = {15, 22}};
  CHECK(rates(planned, longer, 8) == plain(longer, 8));
  CHECK_THROWS_AS(rates(planned, longer, 12), ValueError);
}

TEST_CASE("schedules go on from a saved state", "[optim]") {
  SGD sgd{{zeros({1})}, {.lr = 1.0}};
  Schedule schedule(sgd, [](int64_t step, double base) { return base / static_cast<double>(1 + step); });
  schedule.step();
  schedule.step();
  SGD other{{zeros({1})}, {.lr = 7.0}};
  Schedule resumed(other, LambdaLR{[](int64_t step) { return 1 / static_cast<double>(1 + step); }});
  resumed.load_state_dict(schedule.state_dict());
  CHECK(resumed.steps() == 2);
  CHECK(other.lr() == 1.0 / 3);
  CHECK(other.lr() == resumed.state_dict().at("lr").item());
  CHECK_THROWS_WITH(resumed.load_state_dict({{"steps", scalar(1)}}),
                    Catch::Matchers::Contains("missing     base_lr"));

  const auto refused = [&](const std::string& name, const Tensor& value) {
    INFO(name << " = " << value);
    nn::StateDict changed = resumed.state_dict();
    changed[name] = value;
    CHECK_THROWS_AS(resumed.load_state_dict(changed), ValueError);
    CHECK(resumed.steps() == 2);
    CHECK(other.lr() == 1.0 / 3);
  };
  refused("steps", scalar(-5, int64));
  refused("steps", scalar(1.5, float64));
  refused("steps", scalar(true));
  refused("base_lr", tensor({1, 2}, float64));
  refused("base_lr", tensor({1}, int64));
  for (const double lr : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    refused("base_lr", tensor({lr}, float64));

  ReduceLROnPlateau plateau(sgd, {.maximize = false, .patience = 1});
  for (const double metric : {1.0, 2.0}) plateau.step(metric);
  ReduceLROnPlateau again(other, {.maximize = false, .patience = 1});
  again.load_state_dict(plateau.state_dict());
  again.step(2.0);
  CHECK(other.lr() == Approx(0.1 / 3));
  CHECK(again.best() == 1.0);
  const auto not_taken = [&](const std::string& name, const Tensor& value) {
    INFO(name << " = " << value);
    nn::StateDict changed = again.state_dict();
    changed[name] = value;
    CHECK_THROWS_AS(again.load_state_dict(changed), ValueError);
    CHECK(again.best() == 1.0);
  };
  not_taken("best", scalar(std::nan(""), float64));
  not_taken("best", scalar(1, int64));
  for (const char* name : {"bad_steps", "cooling"}) {
    not_taken(name, scalar(-1, int64));
    not_taken(name, scalar(1.0, float64));
  }
}

TEST_CASE("a NaN metric is no improvement", "[optim]") {
  SGD sgd{{zeros({1})}, {.lr = 1.0}};
  ReduceLROnPlateau schedule(sgd, {.maximize = false, .patience = 0});
  schedule.step(1.0);
  schedule.step(std::numeric_limits<double>::quiet_NaN());
  CHECK(sgd.lr() == Approx(0.1));
  CHECK(schedule.best() == 1.0);
}

TEST_CASE("bad schedules are refused", "[optim]") {
  SGD sgd{{zeros({1})}, {.lr = 1.0}};
  CHECK_THROWS_AS(Rate(StepLR{.step_size = 0}), ValueError);
  CHECK_THROWS_AS(Rate(MultiStepLR{.milestones = {-1}}), ValueError);
  CHECK_THROWS_AS(Rate(CosineAnnealingLR{.steps = 0}), ValueError);
  CHECK_THROWS_AS(Rate(CosineAnnealingWarmRestarts{.first = 1, .mult = 0}), ValueError);
  CHECK_THROWS_AS(Rate(LinearLR{.steps = 0}), ValueError);
  CHECK_THROWS_AS(Rate(PolynomialLR{.steps = 0}), ValueError);
  CHECK_THROWS_AS(Rate(ExponentialLR{std::nan("")}), ValueError);
  CHECK_THROWS_AS(Rate(OneCycleLR{.max_lr = 1, .total_steps = 0}), ValueError);
  CHECK_THROWS_AS(Rate(OneCycleLR{.max_lr = 1, .total_steps = 9, .max_momentum = 1}), ValueError);
  CHECK_THROWS_AS(Rate(OneCycleLR{.max_lr = -1, .total_steps = 9}), ValueError);
  for (const CyclicLR& wrong :
       {CyclicLR{.base_lr = -1, .max_lr = 1}, CyclicLR{.base_lr = 0, .max_lr = NAN},
        CyclicLR{.base_lr = 0, .max_lr = 1, .steps_up = 0},
        CyclicLR{.base_lr = 0, .max_lr = 1, .steps_down = 0}, CyclicLR{.base_lr = 0, .max_lr = 1, .gamma = 2},
        CyclicLR{.base_lr = 0, .max_lr = 1, .base_momentum = 1},
        CyclicLR{.base_lr = 0, .max_lr = 1, .max_momentum = -1}})
    CHECK_THROWS_AS(Rate(wrong), ValueError);
  CHECK_THROWS_AS(Rate(LambdaLR{}), ValueError);
  CHECK_THROWS_AS(Rate(SequentialLR{{ConstantLR{}}, {1}}), ValueError);
  CHECK_THROWS_AS(Rate(ChainedLR{}), ValueError);
  CHECK_THROWS_AS(Schedule(sgd, std::vector<Rate>{ConstantLR{}, ConstantLR{}}), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.maximize = false, .factor = 1.5}), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.maximize = false, .min_lr = {0, 0}}), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.maximize = false, .min_lr = {-1}}), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(sgd, {.maximize = false, .threshold = -1}), ValueError);
  Adagrad adagrad{{zeros({1})}};
  CHECK_THROWS_WITH(Schedule(adagrad, OneCycleLR{.max_lr = 1, .total_steps = 9}),
                    Catch::Matchers::Contains(".cycle_momentum = false"));
  CHECK_NOTHROW(Schedule(adagrad, OneCycleLR{.max_lr = 1, .total_steps = 9, .cycle_momentum = false}));
}
