#include "pleat/nn/optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/nn/optim/optimizer_cases.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::Json;

namespace {

using test::Params;
using OptimizerPointer = std::unique_ptr<optim::Optimizer>;

/// Those of a trace, which names all that the optimiser has.
template <class Options>
Options options_of(const Json& o) {
  Options options = test::default_options<Options>();
  const auto read = [&](const char* name, auto& option) {
    option = o.at(name).template get<std::remove_reference_t<decltype(option)>>();
  };
  options.lr = o.at("lr").get<double>();
  read("weight_decay", options.weight_decay);
  // Those of PyTorch 1.13 have none.
  if constexpr (!std::same_as<Options, optim::NAdamOptions> && !std::same_as<Options, optim::RAdamOptions>)
    read("maximize", options.maximize);
  if constexpr (requires { options.betas; }) read("betas", options.betas);
  if constexpr (requires { options.eps; }) read("eps", options.eps);
  if constexpr (requires { options.amsgrad; }) read("amsgrad", options.amsgrad);
  if constexpr (requires { options.momentum; }) read("momentum", options.momentum);
  if constexpr (requires { options.dampening; }) read("dampening", options.dampening);
  if constexpr (requires { options.nesterov; }) read("nesterov", options.nesterov);
  if constexpr (requires { options.ns_steps; }) read("ns_steps", options.ns_steps);
  if constexpr (requires { options.alpha; }) read("alpha", options.alpha);
  if constexpr (requires { options.centered; }) read("centered", options.centered);
  if constexpr (requires { options.rho; }) read("rho", options.rho);
  if constexpr (requires { options.lr_decay; }) read("lr_decay", options.lr_decay);
  if constexpr (requires { options.momentum_decay; }) read("momentum_decay", options.momentum_decay);
  if constexpr (requires { options.initial_accumulator_value; })
    read("initial_accumulator_value", options.initial_accumulator_value);
  return options;
}

OptimizerPointer make(const std::string& op, const Json& o, const Params& params) {
  OptimizerPointer made;
  test::for_each_optimizer([&]<class Optimizer, class Options>(const std::string& name) {
    if (name == op) made = std::make_unique<Optimizer>(params, options_of<Options>(o));
  });
  REQUIRE(made != nullptr);
  return made;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const auto x = a.to_vector<double>();
  const auto y = b.to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::isnan(x[i]) ? INFINITY : std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

/// The parameters of a trace, in a type and layout, ready to be trained.
std::vector<std::pair<std::string, Tensor>> params_of(const Json& trace, DType dtype, bool transposed) {
  std::vector<std::pair<std::string, Tensor>> params;
  for (const auto& [key, value] : test::tensors_from(trace.at("inputs"))) {
    Tensor param = empty(value.shape(), {.dtype = dtype});
    if (transposed && value.rank() == 2) param = param.as_strided(value.shape(), {1, value.size(0)}, 0);
    ops::copy_into(param, value);
    params.emplace_back(key, param.set_requires_grad());
  }
  return params;
}

void replay(const Json& trace, optim::Optimizer& optimizer,
            const std::vector<std::pair<std::string, Tensor>>& params, double tolerance) {
  for (const Json& step : trace.at("steps")) {
    const auto grads = test::tensors_from(step.at("grads"));
    const auto after = test::tensors_from(step.at("params"));
    for (const auto& [key, param] : params) param.set_grad(grads.at(key).to(param.dtype()));
    optimizer.step();
    for (const auto& [key, param] : params) CHECK(largest_difference(param, after.at(key)) < tolerance);
  }
}

Params tensors(const std::vector<std::pair<std::string, Tensor>>& named) {
  Params params;
  for (const auto& [key, param] : named) params.push_back(param);
  return params;
}

std::vector<Json> traces() {
  std::vector<Json> all;
  for (const std::string op :
       {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Lion", "Muon"})
    for (const Json& trace : test::fixture_cases("optimizers", op))
      if (!trace.contains("groups")) all.push_back(trace);
  return all;
}

}  // namespace

TEST_CASE("optimisers follow the recorded traces") {
  for (const Json& trace : traces()) {
    CAPTURE(trace.at("name").get<std::string>());
    const std::string op = trace.at("op");
    for (const bool transposed : {false, true}) {
      const auto exact = params_of(trace, float64, transposed);
      replay(trace, *make(op, trace.at("options"), tensors(exact)), exact, 1e-12);
    }
    const auto single = params_of(trace, float32, false);
    // Lion's sign turns a rounding error into a step only where a momentum vanishes, which no trace has.
    replay(trace, *make(op, trace.at("options"), tensors(single)), single, 2e-5);
  }
}

TEST_CASE("every optimiser has a row in optimizer_cases.cpp") {
  test::for_each_optimizer([]<class Optimizer, class Options>(const std::string& name) {
    CAPTURE(name);
    const auto& cases = test::optimizer_cases();
    CHECK(std::any_of(cases.begin(), cases.end(), [&](const test::OptimizerCase& c) {
      return c.name == name || c.name.starts_with(name + ",");
    }));
  });
}

TEST_CASE("optimisers follow their formulas") {
  Generator generator(4);
  for (const test::OptimizerCase& c : test::optimizer_cases()) {
    if (!c.formula) continue;
    CAPTURE(c.name);
    const Tensor p = randn({50}, {.dtype = float64}, generator).set_requires_grad();
    std::vector<double> wanted = p.to_vector<double>();
    std::vector<std::array<double, 4>> states(wanted.size());
    const auto optimizer = c.make({p}, {.lr = 0.3, .eps = 1e-3});
    for (int t = 1; t <= 6; ++t) {
      const Tensor g = randn({50}, {.dtype = float64}, generator);
      p.set_grad(g);
      optimizer->step();
      const std::vector<double> gradients = g.to_vector<double>();
      const std::vector<double> got = p.to_vector<double>();
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        wanted[i] = c.formula({wanted[i], gradients[i], double(t), 0.3, 1e-3, states[i]});
        CHECK(got[i] == Approx(wanted[i]).epsilon(1e-12).margin(1e-14));
      }
    }
  }
}

TEST_CASE("groups have their own options") {
  const Json& trace = test::fixture_case("optimizers", "sgd_two_groups");
  const auto params = params_of(trace, float64, false);
  const optim::SGDOptions first = options_of<optim::SGDOptions>(trace.at("options"));
  optim::SGDOptions second = first;
  second.lr = trace.at("groups")[1].at("lr").get<double>();
  second.weight_decay = trace.at("groups")[1].at("weight_decay");
  optim::SGD sgd{{{{params[0].second}, first}, {{params[1].second}, second}}};
  CHECK(sgd.num_groups() == 2);
  replay(trace, sgd, params, 1e-12);
  sgd.set_lr(0.5);
  CHECK(sgd.lr(0) == 0.5);
  CHECK(sgd.lr(1) == 0.5);
  sgd.options(1).lr = 0.25;
  CHECK(sgd.lr(1) == 0.25);
}

TEST_CASE("training goes on from a saved state to the bit") {
  for (const Json& trace : traces()) {
    CAPTURE(trace.at("name").get<std::string>());
    const auto params = params_of(trace, float32, false);
    const OptimizerPointer first = make(trace.at("op"), trace.at("options"), tensors(params));
    const auto run = [&](optim::Optimizer& optimizer, const std::vector<std::pair<std::string, Tensor>>& on,
                         int from, int to) {
      for (int i = from; i < to; ++i) {
        const auto grads = test::tensors_from(trace.at("steps")[static_cast<std::size_t>(i)].at("grads"));
        for (const auto& [key, param] : on) param.set_grad(grads.at(key).to(float32));
        optimizer.step();
      }
    };
    run(*first, params, 0, 5);
    const nn::StateDict state = first->state_dict();
    auto copies = params;
    for (auto& [key, param] : copies) param = ops::copy(param).set_requires_grad();
    run(*first, params, 5, 10);

    const OptimizerPointer second = make(trace.at("op"), trace.at("options"), tensors(copies));
    second->set_lr(123);
    second->load_state_dict(state);
    run(*second, copies, 5, 10);
    for (std::size_t i = 0; i < params.size(); ++i)
      CHECK(params[i].second.to_vector<float>() == copies[i].second.to_vector<float>());
  }
}

TEST_CASE("a step gives the same bits for any number of threads and any place in memory") {
  const int threads = num_threads();
  constexpr int64_t n = 100009;
  for (const Json& trace : traces()) {
    CAPTURE(trace.at("name").get<std::string>());
    std::vector<std::vector<float>> results;
    for (const int run : {0, 1, 2}) {
      set_num_threads(run == 1 ? 3 : 1);
      Generator generator(3);
      const int64_t shift = run == 2 ? 7 : 0;
      // A matrix for Muon's sake; its columns are few, so that the iteration is cheap.
      const Tensor p = empty({n + shift}).as_strided({n / 7, 7}, {7, 1}, shift).set_requires_grad();
      fill_normal_(p, 0, 1, generator);
      const OptimizerPointer optimizer = make(trace.at("op"), trace.at("options"), {p});
      for (int step = 0; step < 3; ++step) {
        const Tensor g = empty(p.shape());
        fill_normal_(g, 0, 1, generator);
        p.set_grad(g);
        optimizer->step();
      }
      results.push_back(p.to_vector());
    }
    CHECK((results[0] == results[1]));
    CHECK((results[0] == results[2]));
  }
  set_num_threads(threads);
}

TEST_CASE("half parameters keep their state in float32") {
  for (const DType dtype : {float16, bfloat16}) {
    const Tensor p = ones({4}, {.dtype = dtype}).set_requires_grad();
    optim::Adam adam{{p}, {.lr = 0.125}};
    p.set_grad(full({4}, 1e-3, {.dtype = dtype}));
    adam.step();
    CHECK(p.dtype() == dtype);
    CHECK(p.to_vector() == std::vector<float>(4, 0.875F));
    const nn::StateDict state = adam.state_dict();
    CHECK(state.at("param.0.exp_avg_sq").dtype() == float32);
    // 1e-6 * 1e-3: far below what float16 can hold.
    CHECK(state.at("param.0.exp_avg_sq").to_vector()[0] == Approx(1e-9).epsilon(0.01));
  }
}

TEST_CASE("a step is off the tape, is noticed by it, and leaves parameters without gradient alone") {
  const Tensor p = ones({2}).set_requires_grad();
  const Tensor idle = ones({2}).set_requires_grad();
  optim::SGD sgd{{p, idle}, {.lr = 0.5, .weight_decay = 1}};
  p.set_grad(ones({2}));
  const uint64_t before = p.version();
  sgd.step();
  CHECK(p.to_vector() == std::vector<float>{0, 0});
  CHECK(idle.to_vector() == std::vector<float>{1, 1});
  CHECK(p.is_leaf());
  CHECK(p.version() > before);
  sgd.zero_grad();
  CHECK_FALSE(p.grad().defined());
}

TEST_CASE("options that make no sense are refused, at the start and later") {
  const Params p = {ones({2}).set_requires_grad()};
  CHECK_THROWS_WITH((optim::SGD{p, {.lr = -1}}), "SGD: lr must be at least 0 and finite, got -1");
  CHECK_THROWS_AS((optim::SGD{p, {.lr = std::numeric_limits<double>::quiet_NaN()}}), ValueError);
  CHECK_THROWS_WITH((optim::SGD{p, {.lr = 1, .nesterov = true}}),
                    "SGD: nesterov needs momentum > 0 and dampening = 0, got 0 and 0");
  CHECK_THROWS_AS((optim::SGD{p, {.lr = 1, .momentum = 0.9, .dampening = 0.1, .nesterov = true}}),
                  ValueError);
  CHECK_THROWS_WITH((optim::Adam{p, {.betas = {0.9, 1}}}), "Adam: betas[1] must be in [0, 1), got 1");
  CHECK_THROWS_AS((optim::AdamW{p, {.eps = -1e-8}}), ValueError);
  CHECK_THROWS_AS((optim::RMSprop{p, {.alpha = 1.5}}), ValueError);
  CHECK_THROWS_AS((optim::Adagrad{p, {.lr_decay = -1}}), ValueError);
  CHECK_THROWS_AS((optim::Lion{p, {.weight_decay = INFINITY}}), ValueError);
  CHECK_THROWS_AS((optim::Muon{{ones({2, 2})}, {.ns_steps = -1}}), ValueError);

  optim::SGD sgd{p, {.lr = 1}};
  p[0].set_grad(ones({2}));
  CHECK_THROWS_AS(sgd.set_lr(INFINITY), ValueError);
  CHECK(sgd.lr() == 1);
  sgd.options().lr = INFINITY;
  CHECK_THROWS_AS(sgd.step(), ValueError);
  CHECK(p[0].to_vector() == std::vector<float>{1, 1});
}

TEST_CASE("parameters that cannot be trained are refused", "[cpu]") {
  const Tensor p = ones({2}).set_requires_grad();
  CHECK_THROWS_WITH((optim::SGD{Params{}, {.lr = 1}}), Contains("SGD: got no parameters"));
  CHECK_THROWS_WITH((optim::SGD{{p, Tensor()}, {.lr = 1}}), "SGD: parameter 1 is undefined");
  CHECK_THROWS_WITH((optim::SGD{{p, p}, {.lr = 1}}),
                    Contains("parameter 1, [2] float32 cpu, is given twice"));
  CHECK_THROWS_WITH((optim::SGD{{p.clone()}, {.lr = 1}}), Contains("only leaves can be trained"));
  CHECK_THROWS_AS((optim::SGD{{arange(3)}, {.lr = 1}}), DTypeError);
  CHECK_THROWS_WITH((optim::Muon{{p}}),
                    "Muon: takes matrices and filters, got [2] float32 cpu; train the others with AdamW");
}

TEST_CASE("an optimiser state that does not fit is refused with all problems, and changes nothing") {
  const Tensor p = ones({2}).set_requires_grad();
  optim::Adam adam{{p}};
  p.set_grad(ones({2}));
  adam.step();
  const nn::StateDict good = adam.state_dict();
  nn::StateDict bad = good;
  bad.erase("param.0.exp_avg");
  bad["param.0.exp_avg_sq"] = ones({3});
  bad["param.1.step"] = scalar(1);
  bad["group.0.lr"] = scalar(7.0);
  CHECK_THROWS_WITH(adam.load_state_dict(bad), Contains("missing     param.0.exp_avg") &&
                                                   Contains("param.0.exp_avg_sq  needs [2], got [3]") &&
                                                   Contains("unexpected  param.1.step"));
  CHECK(adam.lr() == 1e-3);
  for (const auto& [key, tensor] : adam.state_dict())
    CHECK(tensor.to_vector<double>() == good.at(key).to_vector<double>());
}

TEST_CASE("an optimiser state that makes no sense is refused, and changes nothing") {
  const Tensor p = ones({2}).set_requires_grad();
  const auto check_all = [&](optim::Optimizer& optimizer,
                             const std::vector<std::pair<std::string, Tensor>>& wrong) {
    p.set_grad(ones({2}));
    optimizer.step();
    const nn::StateDict good = optimizer.state_dict();
    for (const auto& [key, tensor] : wrong) {
      INFO(key << " = " << tensor);
      nn::StateDict bad = good;
      REQUIRE(bad.contains(key));
      bad[key] = tensor;
      CHECK_THROWS_WITH(optimizer.load_state_dict(bad), Contains(key.substr(0, 7)));
      CHECK_THROWS_AS(optimizer.load_state_dict(bad), ValueError);
    }
    for (const auto& [key, tensor] : optimizer.state_dict())
      CHECK(tensor.to_vector<double>() == good.at(key).to_vector<double>());
    optimizer.load_state_dict(good);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  optim::Adam adam{{p}, {.amsgrad = true}};
  std::vector<std::pair<std::string, Tensor>> wrong;
  for (const double step : {-5.0, 1.5, nan, double(INFINITY), 1e300})
    wrong.emplace_back("param.0.step", scalar(step, float64));
  wrong.emplace_back("param.0.step", scalar(-5, int64));
  wrong.emplace_back("param.0.step", scalar(true));
  for (const char* state : {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {
    const std::string key = std::string("param.0.") + state;
    wrong.emplace_back(key, tensor({1.0, nan}));
    wrong.emplace_back(key, tensor({1.0, double(INFINITY)}));
    wrong.emplace_back(key, tensor({1.0, 1e300}, float64));
    wrong.emplace_back(key, tensor({1, 2}, int64));
    wrong.emplace_back(key, zeros({2}, {.dtype = boolean}));
  }
  wrong.emplace_back("param.0.exp_avg_sq", tensor({1.0, -1e-6}));
  wrong.emplace_back("param.0.max_exp_avg_sq", tensor({-1.0, 1.0}));
  for (const double lr : {-1.0, nan, double(INFINITY)}) wrong.emplace_back("group.0.lr", scalar(lr, float64));
  wrong.emplace_back("group.0.lr", scalar(1, int64));
  for (const double beta : {-0.5, 1.0, 9.0, nan}) wrong.emplace_back("group.0.beta1", scalar(beta, float64));
  check_all(adam, wrong);

  optim::SGD sgd{{p}, {.lr = 0.1, .momentum = 0.9}};
  check_all(sgd,
            {{"group.0.momentum", scalar(9.0, float64)}, {"param.0.momentum_buffer", tensor({nan, 0.0})}});
  optim::RMSprop rmsprop{{p}};
  check_all(rmsprop, {{"param.0.square_avg", tensor({-1.0, 1.0})}});
  optim::Adagrad adagrad{{p}};
  check_all(adagrad, {{"param.0.sum", tensor({-1.0, 1.0})}});
  check_all(*std::make_unique<optim::Lion>(Params{p}), {{"param.0.exp_avg", tensor({nan, 1.0})}});

  // Other programs count their steps in floating numbers.
  nn::StateDict floating = adam.state_dict();
  floating["param.0.step"] = scalar(3.0);
  adam.load_state_dict(floating);
  CHECK(adam.state_dict().at("param.0.step").item<int64_t>() == 3);
}
