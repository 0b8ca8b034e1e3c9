#include "pleat/tests/nn/optim/optimizer_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "pleat/core/tensor/create.h"

namespace pleat::test {
namespace {

using namespace optim;

/// Makes the optimiser with the rate and eps that a test chooses; `eps` comes on top.
template <class Optimizer, class Options>
auto of(Options options, double eps = 0) {
  return [=](const Params& params, OptimizerScale scale) {
    Options chosen = options;
    chosen.lr = scale.lr;
    if constexpr (requires { chosen.eps; }) chosen.eps = scale.eps + eps;
    return std::make_unique<Optimizer>(params, chosen);
  };
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// The options of an optimiser; what each must be goes by its name.
template <class Optimizer, class Options>
void add_options(const char* optimizer, std::vector<OptimizerOption>& all) {
  const auto add = [&](const char* name, std::vector<double> refused, std::vector<double> taken, auto set) {
    all.push_back({optimizer, name, std::move(refused), std::move(taken), [set](double value) {
                     Options options = default_options<Options>();
                     set(options, value);
                     Optimizer{{ones({2, 2}).set_requires_grad()}, options};
                   }});
  };
  const auto at_least_0 = [&](const char* name, auto set) {
    add(name, {not_a_number, -1, infinity, -infinity}, {0, 0.1}, set);
  };
  const auto fraction = [&](const char* name, auto set) {
    add(name, {not_a_number, -0.1, 1, 9, infinity}, {0, 0.5}, set);
  };
  const auto share = [&](const char* name, auto set) {
    add(name, {not_a_number, -0.1, 1.5, 9, infinity}, {0, 0.9, 1}, set);
  };
  at_least_0("lr", [](auto& o, double value) { o.lr = value; });
  at_least_0("weight_decay", [](auto& o, double value) { o.weight_decay = value; });
  if constexpr (requires(Options o) { o.betas; }) {
    fraction("betas[0]", [](auto& o, double value) { o.betas[0] = value; });
    fraction("betas[1]", [](auto& o, double value) { o.betas[1] = value; });
  }
  if constexpr (requires(Options o) { o.eps; })
    at_least_0("eps", [](auto& o, double value) { o.eps = value; });
  if constexpr (requires(Options o) { o.momentum; }) {
    const auto set = [](auto& o, double value) { o.momentum = value; };
    if constexpr (std::is_same_v<Options, MuonOptions>)
      fraction("momentum", set);
    else
      share("momentum", set);
  }
  if constexpr (requires(Options o) { o.dampening; })
    share("dampening", [](auto& o, double value) { o.dampening = value; });
  if constexpr (requires(Options o) { o.alpha; })
    fraction("alpha", [](auto& o, double value) { o.alpha = value; });
  if constexpr (requires(Options o) { o.rho; }) share("rho", [](auto& o, double value) { o.rho = value; });
  if constexpr (requires(Options o) { o.lr_decay; })
    at_least_0("lr_decay", [](auto& o, double value) { o.lr_decay = value; });
  if constexpr (requires(Options o) { o.initial_accumulator_value; })
    at_least_0("initial_accumulator_value", [](auto& o, double v) { o.initial_accumulator_value = v; });
  if constexpr (requires(Options o) { o.momentum_decay; })
    at_least_0("momentum_decay", [](auto& o, double value) { o.momentum_decay = value; });
  if constexpr (requires(Options o) { o.ns_steps; })
    add("ns_steps", {-1, 100, 1e9}, {0, 5},
        [](auto& o, double value) { o.ns_steps = static_cast<int64_t>(value); });
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

/// Adam's update with betas 0.5 and 0.75.
double adam(const ElementUpdate& u, double g, bool amsgrad) {
  double& m = u.state[0];
  double& v = u.state[1];
  double& largest = u.state[2];
  m = 0.5 * m + 0.5 * g;
  v = 0.75 * v + 0.25 * g * g;
  largest = std::max(largest, v);
  const double second = (amsgrad ? largest : v) / (1 - std::pow(0.75, u.t));
  return u.lr * m / (1 - std::pow(0.5, u.t)) / (std::sqrt(second) + u.eps);
}

/// NAdam's update with betas 0.5 and 0.75.
double nadam(const ElementUpdate& u, double g, double momentum_decay) {
  const auto mu = [=](double t) { return 0.5 * (1 - 0.5 * std::pow(0.96, t * momentum_decay)); };
  double& m = u.state[0];
  double& v = u.state[1];
  double& product = u.state[2];
  if (u.t == 1) product = 1;
  product *= mu(u.t);
  m = 0.5 * m + 0.5 * g;
  v = 0.75 * v + 0.25 * g * g;
  const double divisor = std::sqrt(v / (1 - std::pow(0.75, u.t))) + u.eps;
  return u.p - u.lr * (1 - mu(u.t)) / (1 - product) * g / divisor -
         u.lr * mu(u.t + 1) / (1 - product * mu(u.t + 1)) * m / divisor;
}

/// RMSprop's with alpha 0.75.
double rmsprop(const ElementUpdate& u, bool centered, double momentum) {
  double& s = u.state[0];
  double& a = u.state[1];
  double& b = u.state[2];
  s = 0.75 * s + 0.25 * u.g * u.g;
  a = 0.75 * a + 0.25 * u.g;
  b = momentum * b + u.g / (std::sqrt(centered ? s - a * a : s) + u.eps);
  return u.p - u.lr * b;
}

}  // namespace

// Factors are sums of few powers of 2: their products with such gradients are exact in float32, so that a
// compiler that fuses a product with a sum rounds as one that does not.
const std::vector<OptimizerCase>& optimizer_cases() {
  static const std::vector<OptimizerCase> cases = {
      {"SGD", of<SGD>(SGDOptions{.lr = 0, .weight_decay = 0.25}),
       [](const ElementUpdate& u) { return u.p - u.lr * (u.g + 0.25 * u.p); }},
      {"SGD, momentum, dampening",
       of<SGD>(SGDOptions{.lr = 0, .momentum = 0.5, .dampening = 0.5, .maximize = true}),
       [](const ElementUpdate& u) {
         u.state[0] = u.t == 1 ? -u.g : 0.5 * u.state[0] - 0.5 * u.g;
         return u.p - u.lr * u.state[0];
       }},
      {"SGD, Nesterov", of<SGD>(SGDOptions{.lr = 0, .momentum = 0.5, .weight_decay = 0.25, .nesterov = true}),
       [](const ElementUpdate& u) {
         const double g = u.g + 0.25 * u.p;
         u.state[0] = 0.5 * u.state[0] + g;
         return u.p - u.lr * (g + 0.5 * u.state[0]);
       }},
      {"Adam", of<Adam>(AdamOptions{.betas = {0.5, 0.75}}),
       [](const ElementUpdate& u) { return u.p - adam(u, u.g, false); }},
      {"Adam, amsgrad", of<Adam>(AdamOptions{.betas = {0.5, 0.75}, .amsgrad = true, .maximize = true}),
       [](const ElementUpdate& u) { return u.p - adam(u, -u.g, true); }},
      {"Adam, weight decay", of<Adam>(AdamOptions{.betas = {0.5, 0.75}, .weight_decay = 0.25}),
       [](const ElementUpdate& u) { return u.p - adam(u, u.g + 0.25 * u.p, false); }},
      {"AdamW", of<AdamW>(AdamWOptions{.betas = {0.5, 0.75}, .weight_decay = 1}),
       [](const ElementUpdate& u) { return u.p - u.lr * u.p - adam(u, u.g, false); }},
      {"RMSprop", of<RMSprop>(RMSpropOptions{.alpha = 0.75}),
       [](const ElementUpdate& u) { return rmsprop(u, false, 0); }},
      {"RMSprop, centered", of<RMSprop>(RMSpropOptions{.alpha = 0.75, .centered = true}),
       [](const ElementUpdate& u) { return rmsprop(u, true, 0); }},
      {"RMSprop, momentum", of<RMSprop>(RMSpropOptions{.alpha = 0.75, .momentum = 0.5}),
       [](const ElementUpdate& u) { return rmsprop(u, false, 0.5); }},
      {"RMSprop, centered, momentum",
       of<RMSprop>(RMSpropOptions{.alpha = 0.75, .momentum = 0.5, .centered = true}),
       [](const ElementUpdate& u) { return rmsprop(u, true, 0.5); }},
      {"Adagrad", of<Adagrad>(AdagradOptions{.initial_accumulator_value = 0.25}),
       [](const ElementUpdate& u) {
         u.state[0] += u.g * u.g;
         return u.p - u.lr * u.g / (std::sqrt(0.25 + u.state[0]) + u.eps);
       }},
      {"Adagrad, lr_decay", of<Adagrad>(AdagradOptions{.lr_decay = 0.5}),
       [](const ElementUpdate& u) {
         u.state[0] += u.g * u.g;
         return u.p - u.lr / (1 + (u.t - 1) * 0.5) * u.g / (std::sqrt(u.state[0]) + u.eps);
       }},
      // Without an eps it never begins to move.
      {"Adadelta", of<Adadelta>(AdadeltaOptions{.rho = 0.75, .weight_decay = 0.25}, 0.25),
       [](const ElementUpdate& u) {
         const double g = u.g + 0.25 * u.p;
         u.state[0] = 0.75 * u.state[0] + 0.25 * g * g;
         const double d = std::sqrt(u.state[1] + u.eps + 0.25) / std::sqrt(u.state[0] + u.eps + 0.25) * g;
         u.state[1] = 0.75 * u.state[1] + 0.25 * d * d;
         return u.p - u.lr * d;
       }},
      {"Adamax", of<Adamax>(AdamaxOptions{.betas = {0.5, 0.75}, .weight_decay = 0.25}),
       [](const ElementUpdate& u) {
         const double g = u.g + 0.25 * u.p;
         u.state[0] = 0.5 * u.state[0] + 0.5 * g;
         u.state[1] = std::max(0.75 * u.state[1], std::abs(g) + u.eps);
         return u.p - u.lr / (1 - std::pow(0.5, u.t)) * u.state[0] / u.state[1];
       }},
      {"NAdam", of<NAdam>(NAdamOptions{.betas = {0.5, 0.75}, .momentum_decay = 0.5}),
       [](const ElementUpdate& u) { return nadam(u, u.g, 0.5); }},
      {"NAdam, constant momentum, weight decay",
       of<NAdam>(
           NAdamOptions{.betas = {0.5, 0.75}, .weight_decay = 0.25, .momentum_decay = 0, .maximize = true}),
       [](const ElementUpdate& u) { return nadam(u, 0.25 * u.p - u.g, 0); }},
      {"RAdam", of<RAdam>(RAdamOptions{.betas = {0.5, 0.9375}, .weight_decay = 0.25}),
       [](const ElementUpdate& u) {
         const double g = u.g + 0.25 * u.p;
         u.state[0] = 0.5 * u.state[0] + 0.5 * g;
         u.state[1] = 0.9375 * u.state[1] + 0.0625 * g * g;
         const double faded = std::pow(0.9375, u.t), r = 31, s = r - 2 * u.t * faded / (1 - faded);
         const double plain = u.lr * u.state[0] / (1 - std::pow(0.5, u.t));
         if (s <= 5) return u.p - plain;
         return u.p - plain * std::sqrt((s - 4) * (s - 2) * r / ((r - 4) * (r - 2) * s)) *
                          std::sqrt(1 - faded) / (std::sqrt(u.state[1]) + u.eps);
       }},
      {"Lion", of<Lion>(LionOptions{.betas = {0.5, 0.75}, .weight_decay = 0.25}),
       [](const ElementUpdate& u) {
         const double c = 0.5 * u.state[0] + 0.5 * u.g;
         u.state[0] = 0.75 * u.state[0] + 0.25 * u.g;
         return u.p - u.lr * (sign(c) + 0.25 * u.p);
       }},
      {"Muon", of<Muon>(MuonOptions{.weight_decay = 0.25}), {}},
  };
  return cases;
}

std::vector<OptimizerOption> optimizer_options() {
  std::vector<OptimizerOption> all;
  for_each_optimizer(
      [&]<class Optimizer, class Options>(const char* name) { add_options<Optimizer, Options>(name, all); });
  return all;
}

}  // namespace pleat::test
