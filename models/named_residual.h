// Private header: not installed.
#pragma once

#include <string>
#include <utility>

#include "pleat/nn/containers.h"
#include "pleat/nn/dropout.h"
#include "pleat/ops/elementwise/arithmetic.h"

namespace pleat::models {

/// An nn::Residual with the names of published weights: the body by a name of its own, or, where that is
/// empty, its modules in its place. The body is left out for some samples in training (nn::StochasticDepth).
struct NamedResidual : nn::Residual {
  explicit NamedResidual(nn::ResidualOptions options, std::string name_ = {}, double drop = 0)
      : Residual(std::move(options)), name(std::move(name_)), depth{{.p = drop}} {}

  Tensor forward(const Tensor& x) override {
    return depth.options.p == 0 || !training() ? Residual::forward(x) : x + depth(body(x));
  }
  void members(nn::Members& m) override {
    name.empty() ? body.get().members(m) : m(name, body);
    m("downsample", shortcut);
    m("activation", activation);
    m("stochastic_depth", depth);
  }

  std::string name;
  nn::StochasticDepth depth;
};

}  // namespace pleat::models
