// Schedules beside others who change the rates, and schedules that go on in another process.
#include <cmath>
#include <functional>
#include <numeric>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/optim/multi_optimizer.h"
#include "pleat/nn/optim/optimizers.h"
#include "pleat/nn/optim/schedule.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using namespace pleat::optim;
using Catch::Matchers::Contains;

namespace {

SGD two_groups(double first = 0.1, double second = 0.5) {
  return SGD{
      {{{zeros({1})}, {.lr = first, .momentum = 0.9}}, {{zeros({1})}, {.lr = second, .momentum = 0.9}}}};
}

using Rates = std::vector<double>;

/// What an optimiser trains with.
Rates rates_of(const Optimizer& optimizer) {
  Rates rates;
  for (std::size_t g = 0; g < optimizer.num_groups(); ++g) {
    rates.push_back(optimizer.lr(g));
    rates.push_back(optimizer.momentum(g).value_or(0));
  }
  return rates;
}

void check_same(const Rates& got, const Rates& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == Approx(wanted[i]).epsilon(1e-12).margin(1e-16));
}

/// One of each kind, and of each composition.
std::vector<std::pair<std::string, Rate>> all_rates() {
  const CosineAnnealingLR cosine{.steps = 20};
  const OneCycleLR one_cycle{.max_lr = 0.2, .total_steps = 40};
  return {
      {"StepLR", StepLR{.step_size = 4, .gamma = 0.5}},
      {"MultiStepLR", MultiStepLR{.milestones = {3, 9, 11}, .gamma = 0.3}},
      {"ExponentialLR", ExponentialLR{.gamma = 0.9}},
      {"CosineAnnealingLR", cosine},
      {"CosineAnnealingLR to eta_min", CosineAnnealingLR{.steps = 20, .eta_min = 0.01}},
      {"CosineAnnealingWarmRestarts", CosineAnnealingWarmRestarts{.first = 4, .mult = 2, .eta_min = 0.002}},
      {"ConstantLR", ConstantLR{.factor = 0.25, .steps = 7}},
      {"LinearLR", LinearLR{.start_factor = 0.1, .steps = 12}},
      {"PolynomialLR", PolynomialLR{.steps = 30, .power = 1.5}},
      {"OneCycleLR", one_cycle},
      {"OneCycleLR of the rate alone", OneCycleLR{.max_lr = 0.2, .total_steps = 40, .cycle_momentum = false}},
      {"CyclicLR", CyclicLR{.base_lr = 0.01, .max_lr = 0.1, .steps_up = 5}},
      {"LambdaLR", LambdaLR{[](int64_t step) { return 1 / (1 + 0.1 * static_cast<double>(step)); }}},
      {"a function", [](int64_t step, double base) { return base / static_cast<double>(1 + step); }},
      {"SequentialLR", SequentialLR{{ConstantLR{}, ExponentialLR{.gamma = 0.9}, one_cycle}, {4, 8}}},
      {"ChainedLR", ChainedLR{{LinearLR{.start_factor = 0.2, .steps = 5}, cosine}}},
      {"warm_up", warm_up(5, CosineAnnealingLR{.steps = 30, .eta_min = 0.001})}};
}

/// Steps of a run: the schedule's, and those of a plateau where there is one.
struct Run {
  Optimizer& optimizer;
  Schedule schedule;
  std::optional<ReduceLROnPlateau> plateau;

  Run(Optimizer& of, const Rate& rate, bool with_plateau) : optimizer(of), schedule(of, rate) {
    if (with_plateau)
      plateau.emplace(of, ReduceLROnPlateauOptions{.maximize = false, .factor = 0.5, .patience = 2});
  }
  void step() {
    schedule.step();
    if (plateau) plateau->step(1);
  }
};

}  // namespace

TEST_CASE("what others do to a rate stays under a schedule, as in PyTorch", "[optim]") {
  // PyTorch 1.13: both rates are halved before steps 3 and 8, the first is set to 0.08 before step 5.
  const auto run = [](const Rate& rate, const std::vector<Rates>& wanted) {
    SGD sgd = two_groups();
    Schedule schedule(sgd, rate);
    for (std::size_t step = 0; step < wanted.size(); ++step, schedule.step()) {
      CAPTURE(step);
      check_same({sgd.lr(0), sgd.lr(1)}, wanted[step]);
      if (step == 2 || step == 7)
        for (const std::size_t g : {0, 1}) sgd.set_lr(g, sgd.lr(g) / 2);
      if (step == 4) sgd.set_lr(0, 0.08);
    }
  };
  run(LinearLR{.start_factor = 0.5, .steps = 4}, {{0.05, 0.25},
                                                  {0.0625, 0.3125},
                                                  {0.075, 0.375},
                                                  {0.04375, 0.21875},
                                                  {0.05, 0.25},
                                                  {0.08, 0.25},
                                                  {0.08, 0.25},
                                                  {0.08, 0.25},
                                                  {0.04, 0.125}});
  run(StepLR{.step_size = 3, .gamma = 0.5}, {{0.1, 0.5},
                                             {0.1, 0.5},
                                             {0.1, 0.5},
                                             {0.025, 0.125},
                                             {0.025, 0.125},
                                             {0.08, 0.125},
                                             {0.04, 0.0625},
                                             {0.04, 0.0625},
                                             {0.02, 0.03125},
                                             {0.01, 0.015625}});
  run(CosineAnnealingLR{.steps = 10, .eta_min = 0.01}, {{0.1, 0.5},
                                                        {0.09779754323328192, 0.48800884649231263},
                                                        {0.09140576474687263, 0.4532091636218621},
                                                        {0.041336637672915906, 0.20011516290216322},
                                                        {0.035834848384686424, 0.16673654782218117},
                                                        {0.06347524157501472, 0.12973606797749979},
                                                        {0.04695048315002945, 0.09273558813281842},
                                                        {0.03204328321444375, 0.059356973052836375},
                                                        {0.01278988371798884, 0.01911722960876206},
                                                        {0.010714967427823806, 0.01233648526647365}});
}

TEST_CASE("ReduceLROnPlateau cuts under any schedule", "[optim]") {
  SGD sgd{{zeros({1})}, {.lr = 0.1}};
  Schedule warm(sgd, LinearLR{.start_factor = 0.5, .steps = 2});
  ReduceLROnPlateau plateau(sgd, {.maximize = false, .factor = 0.5, .patience = 0});
  for (const double wanted : {0.075, 0.05, 0.025, 0.0125, 0.00625}) {  // PyTorch's
    warm.step();
    plateau.step(1);
    CHECK(sgd.lr() == Approx(wanted));
  }
  for (const auto& [name, rate] : all_rates()) {
    CAPTURE(name);
    SGD with = two_groups(), without = two_groups();
    Schedule schedule(with, rate), alone(without, rate);
    for (int step = 0; step < 9; ++step) {
      if (step == 2 || step == 5) with.set_lr(1, with.lr(1) / 2);
      schedule.step();
      alone.step();
    }
    CHECK(with.lr(0) == without.lr(0));
    const double floor = rate.floor(9);
    if (floor == 0) CHECK(with.lr(1) == Approx(without.lr(1) / 4));
    CHECK(with.lr(1) < without.lr(1));
    CHECK(with.lr(1) > floor);
  }
}

TEST_CASE("schedules go on with the rates of the run that was not stopped", "[optim]") {
  // However much of the state is loaded, before the schedule is made or after.
  enum class How { set_steps, optimizer_first, schedule_first };
  for (const auto& [name, rate] : all_rates())
    for (const bool with_plateau : {false, true})
      for (const bool made_before : {false, true})
        for (const How how : {How::set_steps, How::optimizer_first, How::schedule_first})
          for (const int64_t steps : {1, 9, 10, 16}) {
            CAPTURE(name, with_plateau, made_before, static_cast<int>(how), steps);
            SGD sgd = two_groups();
            Run run(sgd, rate, with_plateau);
            for (int64_t i = 0; i < steps; ++i) run.step();
            const nn::StateDict saved = sgd.state_dict(), of_schedule = run.schedule.state_dict();

            SGD fresh = two_groups(3, 7);
            const bool load_later = made_before || how == How::schedule_first;
            if (!load_later) fresh.load_state_dict(saved);
            Run again(fresh, rate, with_plateau);
            if (how == How::schedule_first) again.schedule.load_state_dict(of_schedule);
            if (load_later) fresh.load_state_dict(saved);
            if (how == How::set_steps) again.schedule.set_steps(steps);
            if (how == How::optimizer_first) again.schedule.load_state_dict(of_schedule);
            if (with_plateau) again.plateau->load_state_dict(run.plateau->state_dict());
            CHECK(again.schedule.steps() == steps);
            check_same(rates_of(fresh), rates_of(sgd));
            for (int i = 0; i < 12; ++i) {
              run.step();
              again.step();
              check_same(rates_of(fresh), rates_of(sgd));
            }
            // The next stop.
            fresh.load_state_dict(sgd.state_dict());
            again.schedule.set_steps(steps + 12);
            check_same(rates_of(fresh), rates_of(sgd));
          }
}

TEST_CASE("a schedule over several optimisers goes on by set_steps", "[optim]") {
  const auto make = [](double lr) {
    return MultiOptimizer{SGD{{zeros({1})}, {.lr = lr}}, Adam{{zeros({1})}, {.lr = lr / 7}}};
  };
  MultiOptimizer both = make(0.1);
  Schedule schedule(both, CosineAnnealingLR{.steps = 20});
  for (int i = 0; i < 9; ++i) schedule.step();
  CHECK(both.lr() == Approx(0.0578).epsilon(0.001));
  MultiOptimizer fresh = make(5);
  fresh.load_state_dict(both.state_dict());
  Schedule again(fresh, CosineAnnealingLR{.steps = 20});
  again.set_steps(9);
  check_same(rates_of(fresh), rates_of(both));
  for (Schedule* each : {&schedule, &again}) each->step();
  check_same(rates_of(fresh), rates_of(both));
}

TEST_CASE("two schedules of one optimiser say what to write", "[optim]") {
  SGD sgd = two_groups();
  Schedule first(sgd, StepLR{.step_size = 3});
  Schedule second(sgd, ExponentialLR{.gamma = 0.9});
  CHECK_THROWS_WITH(first.step(), Contains("another Schedule was made for this optimiser") &&
                                      Contains("ChainedLR{{a, b}} is their product"));
  CHECK_THROWS_WITH(first.set_steps(3), Contains("another Schedule"));
  CHECK(sgd.lr() == 0.1);
  second.step();  // a training of two phases
  CHECK(sgd.lr() == Approx(0.09));
  Schedule moved = std::move(second);
  moved.step();
  CHECK(sgd.lr() == Approx(0.081));
  CHECK_THROWS_WITH(
      Schedule(sgd, ChainedLR{{StepLR{.step_size = 3}, CosineAnnealingLR{.steps = 9, .eta_min = 0.01}}}),
      Contains("ChainedLR: a rate falls to eta_min = 0.01"));
  CHECK(sgd.lr() == Approx(0.081));
}

TEST_CASE("a schedule does not undo in silence what it cannot follow", "[optim]") {
  SGD sgd = two_groups();
  Schedule schedule(sgd, CosineAnnealingLR{.steps = 4});
  schedule.set_steps(4);
  sgd.set_lr(0, 0.05);
  CHECK_THROWS_WITH(schedule.step(),
                    Contains("somebody set the rate of group 0 to 0.05 where the schedule made it 0"));
  CHECK(sgd.lr() == 0.05);
  CHECK(schedule.steps() == 4);
  Schedule next(sgd, ExponentialLR{.gamma = 0.5});
  next.step();
  CHECK(sgd.lr() == 0.025);

  SGD other = two_groups();
  Schedule cycle(other, OneCycleLR{.max_lr = 0.2, .total_steps = 9});
  other.set_momentum(1, 0.5);
  CHECK_THROWS_WITH(cycle.step(),
                    Contains("set the momentum of group 1 to 0.5") && Contains(".cycle_momentum = false"));

  // A state of another step, of other options, of no schedule.
  SGD saved = two_groups();
  Schedule of_saved(saved, StepLR{.step_size = 2});
  of_saved.set_steps(5);
  SGD loaded = two_groups();
  Schedule mine(loaded, StepLR{.step_size = 2});
  loaded.load_state_dict(saved.state_dict());
  const Rates before = rates_of(loaded);
  CHECK_THROWS_WITH(mine.step(),
                    Contains("after 0 steps this one makes 0.1 of 0.1") && Contains("set_steps()"));
  CHECK_THROWS_WITH(mine.set_steps(9), Contains("this one does not at step 9"));
  check_same(rates_of(loaded), before);
  mine.set_steps(5);
  check_same(rates_of(loaded), before);
  loaded.load_state_dict(two_groups().state_dict());
  CHECK_THROWS_WITH(mine.step(), Contains("which is of a run without a schedule"));

  nn::StateDict broken = saved.state_dict();
  broken.at("group.1.scheduled_lr") = scalar(std::nan(""), float64);
  CHECK_THROWS_WITH(loaded.load_state_dict(broken), Contains("group.1.scheduled_lr  must be finite"));
  broken.erase("group.1.scheduled_lr");
  CHECK_THROWS_WITH(loaded.load_state_dict(broken), Contains("missing     group.1.scheduled_lr"));
}
