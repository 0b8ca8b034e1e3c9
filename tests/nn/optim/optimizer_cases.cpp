#include "pleat/tests/nn/optim/optimizer_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "pleat/core/tensor/create.h"
#include "pleat/nn/optim/adadelta.h"
#include "pleat/nn/optim/adagrad.h"
#include "pleat/nn/optim/adam.h"
#include "pleat/nn/optim/adamax.h"
#include "pleat/nn/optim/lion.h"
#include "pleat/nn/optim/muon.h"
#include "pleat/nn/optim/nadam.h"
#include "pleat/nn/optim/radam.h"
#include "pleat/nn/optim/rmsprop.h"
#include "pleat/nn/optim/sgd.h"

namespace pleat::test {
namespace {

using namespace optim;

template <class Optimizer, class Options>
auto of(Options (*options)(OptimizerScale)) {
  return [options](const Params& params, OptimizerScale scale) {
    return std::make_unique<Optimizer>(params, options(scale));
  };
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Rows of options by pointers to them, by the kind of their range.
template <class Optimizer, class Options>
OptimizerOption option(const char* optimizer, const char* name, double Options::*member,
                       std::vector<double> refused, std::vector<double> taken, Options options) {
  return {optimizer, name, std::move(refused), std::move(taken), [=](double value) {
            Options changed = options;
            changed.*member = value;
            Optimizer{{ones({2, 2}).set_requires_grad()}, changed};
          }};
}
template <class Optimizer, class Options>
OptimizerOption at_least_0(const char* optimizer, const char* name, double Options::*member,
                           Options options = {}) {
  return option<Optimizer>(optimizer, name, member, {not_a_number, -1, infinity, -infinity}, {0, 0.1},
                           options);
}
/// In [0, 1).
template <class Optimizer, class Options>
OptimizerOption fraction(const char* optimizer, const char* name, double Options::*member,
                         Options options = {}) {
  return option<Optimizer>(optimizer, name, member, {not_a_number, -0.1, 1, 9, infinity}, {0, 0.5}, options);
}
/// In [0, 1].
template <class Optimizer, class Options>
OptimizerOption share(const char* optimizer, const char* name, double Options::*member,
                      Options options = {}) {
  return option<Optimizer>(optimizer, name, member, {not_a_number, -0.1, 1.5, 9, infinity}, {0, 0.9, 1},
                           options);
}
template <class Optimizer, class Options>
OptimizerOption beta(const char* optimizer, std::size_t index, Options options) {
  return {optimizer,
          "betas[" + std::to_string(index) + "]",
          {not_a_number, -0.1, 1, 9, infinity},
          {0, 0.5},
          [=](double value) {
            Options changed = options;
            changed.betas[index] = value;
            Optimizer{{ones({2, 2}).set_requires_grad()}, changed};
          }};
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
      {"SGD", of<SGD>(+[](OptimizerScale s) { return SGDOptions{.lr = s.lr, .weight_decay = 0.25}; }),
       [](const ElementUpdate& u) { return u.p - u.lr * (u.g + 0.25 * u.p); }},
      {"SGD, momentum, dampening", of<SGD>(+[](OptimizerScale s) {
         return SGDOptions{.lr = s.lr, .momentum = 0.5, .dampening = 0.5, .maximize = true};
       }),
       [](const ElementUpdate& u) {
         u.state[0] = u.t == 1 ? -u.g : 0.5 * u.state[0] - 0.5 * u.g;
         return u.p - u.lr * u.state[0];
       }},
      {"SGD, Nesterov", of<SGD>(+[](OptimizerScale s) {
         return SGDOptions{.lr = s.lr, .momentum = 0.5, .weight_decay = 0.25, .nesterov = true};
       }),
       [](const ElementUpdate& u) {
         const double g = u.g + 0.25 * u.p;
         u.state[0] = 0.5 * u.state[0] + g;
         return u.p - u.lr * (g + 0.5 * u.state[0]);
       }},
      {"Adam", of<Adam>(+[](OptimizerScale s) {
         return AdamOptions{.lr = s.lr, .betas = {0.5, 0.75}, .eps = s.eps};
       }),
       [](const ElementUpdate& u) { return u.p - adam(u, u.g, false); }},
      {"Adam, amsgrad", of<Adam>(+[](OptimizerScale s) {
         return AdamOptions{
             .lr = s.lr, .betas = {0.5, 0.75}, .eps = s.eps, .amsgrad = true, .maximize = true};
       }),
       [](const ElementUpdate& u) { return u.p - adam(u, -u.g, true); }},
      {"Adam, weight decay", of<Adam>(+[](OptimizerScale s) {
         return AdamOptions{.lr = s.lr, .betas = {0.5, 0.75}, .eps = s.eps, .weight_decay = 0.25};
       }),
       [](const ElementUpdate& u) { return u.p - adam(u, u.g + 0.25 * u.p, false); }},
      {"AdamW", of<AdamW>(+[](OptimizerScale s) {
         return AdamWOptions{.lr = s.lr, .betas = {0.5, 0.75}, .eps = s.eps, .weight_decay = 1};
       }),
       [](const ElementUpdate& u) { return u.p - u.lr * u.p - adam(u, u.g, false); }},
      {"RMSprop",
       of<RMSprop>(+[](OptimizerScale s) { return RMSpropOptions{.lr = s.lr, .alpha = 0.75, .eps = s.eps}; }),
       [](const ElementUpdate& u) { return rmsprop(u, false, 0); }},
      {"RMSprop, centered", of<RMSprop>(+[](OptimizerScale s) {
         return RMSpropOptions{.lr = s.lr, .alpha = 0.75, .eps = s.eps, .centered = true};
       }),
       [](const ElementUpdate& u) { return rmsprop(u, true, 0); }},
      {"RMSprop, momentum", of<RMSprop>(+[](OptimizerScale s) {
         return RMSpropOptions{.lr = s.lr, .alpha = 0.75, .eps = s.eps, .momentum = 0.5};
       }),
       [](const ElementUpdate& u) { return rmsprop(u, false, 0.5); }},
      {"RMSprop, centered, momentum", of<RMSprop>(+[](OptimizerScale s) {
         return RMSpropOptions{.lr = s.lr, .alpha = 0.75, .eps = s.eps, .momentum = 0.5, .centered = true};
       }),
       [](const ElementUpdate& u) { return rmsprop(u, true, 0.5); }},
      {"Adagrad", of<Adagrad>(+[](OptimizerScale s) {
         return AdagradOptions{.lr = s.lr, .initial_accumulator_value = 0.25, .eps = s.eps};
       }),
       [](const ElementUpdate& u) {
         u.state[0] += u.g * u.g;
         return u.p - u.lr * u.g / (std::sqrt(0.25 + u.state[0]) + u.eps);
       }},
      {"Adagrad, lr_decay", of<Adagrad>(+[](OptimizerScale s) {
         return AdagradOptions{.lr = s.lr, .lr_decay = 0.5, .eps = s.eps};
       }),
       [](const ElementUpdate& u) {
         u.state[0] += u.g * u.g;
         return u.p - u.lr / (1 + (u.t - 1) * 0.5) * u.g / (std::sqrt(u.state[0]) + u.eps);
       }},
      // Without an eps it never begins to move.
      {"Adadelta", of<Adadelta>(+[](OptimizerScale s) {
         return AdadeltaOptions{.lr = s.lr, .rho = 0.75, .eps = s.eps + 0.25, .weight_decay = 0.25};
       }),
       [](const ElementUpdate& u) {
         const double g = u.g + 0.25 * u.p;
         u.state[0] = 0.75 * u.state[0] + 0.25 * g * g;
         const double d = std::sqrt(u.state[1] + u.eps + 0.25) / std::sqrt(u.state[0] + u.eps + 0.25) * g;
         u.state[1] = 0.75 * u.state[1] + 0.25 * d * d;
         return u.p - u.lr * d;
       }},
      {"Adamax", of<Adamax>(+[](OptimizerScale s) {
         return AdamaxOptions{.lr = s.lr, .betas = {0.5, 0.75}, .eps = s.eps, .weight_decay = 0.25};
       }),
       [](const ElementUpdate& u) {
         const double g = u.g + 0.25 * u.p;
         u.state[0] = 0.5 * u.state[0] + 0.5 * g;
         u.state[1] = std::max(0.75 * u.state[1], std::abs(g) + u.eps);
         return u.p - u.lr / (1 - std::pow(0.5, u.t)) * u.state[0] / u.state[1];
       }},
      {"NAdam", of<NAdam>(+[](OptimizerScale s) {
         return NAdamOptions{.lr = s.lr, .betas = {0.5, 0.75}, .eps = s.eps, .momentum_decay = 0.5};
       }),
       [](const ElementUpdate& u) { return nadam(u, u.g, 0.5); }},
      {"NAdam, constant momentum, weight decay", of<NAdam>(+[](OptimizerScale s) {
         return NAdamOptions{.lr = s.lr,
                             .betas = {0.5, 0.75},
                             .eps = s.eps,
                             .weight_decay = 0.25,
                             .momentum_decay = 0,
                             .maximize = true};
       }),
       [](const ElementUpdate& u) { return nadam(u, 0.25 * u.p - u.g, 0); }},
      {"RAdam", of<RAdam>(+[](OptimizerScale s) {
         return RAdamOptions{.lr = s.lr, .betas = {0.5, 0.9375}, .eps = s.eps, .weight_decay = 0.25};
       }),
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
      {"Lion", of<Lion>(+[](OptimizerScale s) {
         return LionOptions{.lr = s.lr, .betas = {0.5, 0.75}, .weight_decay = 0.25};
       }),
       [](const ElementUpdate& u) {
         const double c = 0.5 * u.state[0] + 0.5 * u.g;
         u.state[0] = 0.75 * u.state[0] + 0.25 * u.g;
         return u.p - u.lr * (sign(c) + 0.25 * u.p);
       }},
      {"Muon", of<Muon>(+[](OptimizerScale s) { return MuonOptions{.lr = s.lr, .weight_decay = 0.25}; }), {}},
  };
  return cases;
}

const std::vector<OptimizerOption>& optimizer_options() {
  const SGDOptions sgd{.lr = 0.1};
  static const std::vector<OptimizerOption> options = {
      {"SGD",
       "lr",
       {not_a_number, -1, infinity, -infinity},
       {0, 10},
       [](double v) {
         SGD{{ones({2}).set_requires_grad()}, {.lr = v}};
       }},
      share<SGD>("SGD", "momentum", &SGDOptions::momentum, sgd),
      share<SGD>("SGD", "dampening", &SGDOptions::dampening, sgd),
      at_least_0<SGD>("SGD", "weight_decay", &SGDOptions::weight_decay, sgd),
      at_least_0<Adam>("Adam", "lr", &AdamOptions::lr),
      beta<Adam>("Adam", 0, AdamOptions{}),
      beta<Adam>("Adam", 1, AdamOptions{}),
      at_least_0<Adam>("Adam", "eps", &AdamOptions::eps),
      at_least_0<Adam>("Adam", "weight_decay", &AdamOptions::weight_decay),
      at_least_0<AdamW>("AdamW", "lr", &AdamWOptions::lr),
      beta<AdamW>("AdamW", 0, AdamWOptions{}),
      beta<AdamW>("AdamW", 1, AdamWOptions{}),
      at_least_0<AdamW>("AdamW", "eps", &AdamWOptions::eps),
      at_least_0<AdamW>("AdamW", "weight_decay", &AdamWOptions::weight_decay),
      at_least_0<RMSprop>("RMSprop", "lr", &RMSpropOptions::lr),
      fraction<RMSprop>("RMSprop", "alpha", &RMSpropOptions::alpha),
      at_least_0<RMSprop>("RMSprop", "eps", &RMSpropOptions::eps),
      at_least_0<RMSprop>("RMSprop", "weight_decay", &RMSpropOptions::weight_decay),
      share<RMSprop>("RMSprop", "momentum", &RMSpropOptions::momentum),
      at_least_0<Adagrad>("Adagrad", "lr", &AdagradOptions::lr),
      at_least_0<Adagrad>("Adagrad", "lr_decay", &AdagradOptions::lr_decay),
      at_least_0<Adagrad>("Adagrad", "weight_decay", &AdagradOptions::weight_decay),
      at_least_0<Adagrad>("Adagrad", "initial_accumulator_value", &AdagradOptions::initial_accumulator_value),
      at_least_0<Adagrad>("Adagrad", "eps", &AdagradOptions::eps),
      at_least_0<Adadelta>("Adadelta", "lr", &AdadeltaOptions::lr),
      share<Adadelta>("Adadelta", "rho", &AdadeltaOptions::rho),
      at_least_0<Adadelta>("Adadelta", "eps", &AdadeltaOptions::eps),
      at_least_0<Adadelta>("Adadelta", "weight_decay", &AdadeltaOptions::weight_decay),
      at_least_0<Adamax>("Adamax", "lr", &AdamaxOptions::lr),
      beta<Adamax>("Adamax", 0, AdamaxOptions{}),
      beta<Adamax>("Adamax", 1, AdamaxOptions{}),
      at_least_0<Adamax>("Adamax", "eps", &AdamaxOptions::eps),
      at_least_0<Adamax>("Adamax", "weight_decay", &AdamaxOptions::weight_decay),
      at_least_0<NAdam>("NAdam", "lr", &NAdamOptions::lr),
      beta<NAdam>("NAdam", 0, NAdamOptions{}),
      beta<NAdam>("NAdam", 1, NAdamOptions{}),
      at_least_0<NAdam>("NAdam", "eps", &NAdamOptions::eps),
      at_least_0<NAdam>("NAdam", "weight_decay", &NAdamOptions::weight_decay),
      at_least_0<RAdam>("RAdam", "lr", &RAdamOptions::lr),
      beta<RAdam>("RAdam", 0, RAdamOptions{}),
      beta<RAdam>("RAdam", 1, RAdamOptions{}),
      at_least_0<RAdam>("RAdam", "eps", &RAdamOptions::eps),
      at_least_0<RAdam>("RAdam", "weight_decay", &RAdamOptions::weight_decay),
      at_least_0<NAdam>("NAdam", "momentum_decay", &NAdamOptions::momentum_decay),
      at_least_0<Lion>("Lion", "lr", &LionOptions::lr),
      beta<Lion>("Lion", 0, LionOptions{}),
      beta<Lion>("Lion", 1, LionOptions{}),
      at_least_0<Lion>("Lion", "weight_decay", &LionOptions::weight_decay),
      at_least_0<Muon>("Muon", "lr", &MuonOptions::lr),
      fraction<Muon>("Muon", "momentum", &MuonOptions::momentum),
      at_least_0<Muon>("Muon", "weight_decay", &MuonOptions::weight_decay),
      {"Muon",
       "ns_steps",
       {-1, 100, 1e9},
       {0, 5},
       [](double v) {
         Muon{{ones({2, 2})}, {.ns_steps = static_cast<int64_t>(v)}};
       }},
  };
  return options;
}

}  // namespace pleat::test
