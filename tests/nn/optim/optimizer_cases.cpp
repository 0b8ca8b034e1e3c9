#include "pleat/tests/nn/optim/optimizer_cases.h"

#include <algorithm>
#include <cmath>

#include "pleat/nn/optim/adagrad.h"
#include "pleat/nn/optim/adam.h"
#include "pleat/nn/optim/lion.h"
#include "pleat/nn/optim/muon.h"
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

}  // namespace pleat::test
