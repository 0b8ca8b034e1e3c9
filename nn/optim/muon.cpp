// Host and device.
#include "pleat/nn/optim/muon.h"

#include <algorithm>
#include <cstddef>

#include "pleat/core/device/capture.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/option_checks.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

/// Brings Muon's momentum b up to date and writes the direction u that is to be made orthogonal.
struct MuonMomentum {
  static constexpr std::size_t operands = 3;
  double sign, momentum, g_share, b_share;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& b, T dp, T& u) const {
    const T g = T(sign) * dp;
    b = T(momentum) * b + g;
    u = T(g_share) * g + T(b_share) * b;
  }
};

/// With a sum of products: of a difference g++ for Arm fuses another one in vectors, which have no a b - c,
/// than in the scalars that a thread's part ends with, so that bits would go by the number of threads.
struct MuonStep {
  static constexpr std::size_t operands = 2;
  double keep, move;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& p, T u) const {
    p = T(keep) * p + T(move) * u;
  }
};

/// A wide matrix with the singular vectors of `matrix` [rows, columns], rows <= columns, and singular values
/// near 1.
Tensor newton_schulz(const Tensor& matrix, int64_t steps) {
  const Tensor norm = pleat::norm(matrix);
  Tensor x = matrix / (norm + 1e-7);
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor gram =
        matmul(x, x.as_strided({x.size(1), x.size(0)}, {x.strides()[1], x.strides()[0]}, x.offset()));
    const Tensor polynomial = addmm(gram, gram, gram, {.beta = -4.7750, .alpha = 2.0315});
    x = addmm(x, polynomial, x, {.beta = 3.4445});
  }
  return x;
}

}  // namespace

Muon::Muon(std::vector<Tensor> params, MuonOptions options) : Muon({{std::move(params), options}}) {}

Muon::Muon(std::vector<Group> groups) : OptimizerWith("Muon", {{"momentum_buffer"}}) {
  add_groups(std::move(groups));
}

void Muon::check_options_of_group(const MuonOptions& o) const {
  check_at_least_0(name(), "lr", o.lr);
  check_fraction(name(), "momentum", o.momentum);
  check_at_least_0(name(), "weight_decay", o.weight_decay);
  check<ValueError>(o.ns_steps >= 0 && o.ns_steps < 100, "Muon: ns_steps must be in [0, 100), got {}",
                    o.ns_steps);
}

void Muon::check_parameter(const Tensor& param) const {
  check<ValueError>(param.rank() >= 2,
                    "Muon: takes matrices and filters, got {}; train the others with AdamW", param);
}

void Muon::update(std::span<const ParamStep> steps) {
  if (const Capture* capture = Capture::current())
    capture->refuse(
        "Muon.step",
        "its products would be computed anew on the host's call; use another optimiser, or no graph");
  for (const ParamStep& step : steps) update_one(step);
}

void Muon::update_one(const ParamStep& step) const {
  const auto& [entry, grad, count] = step;
  const MuonOptions& o = options(entry.group);
  const Tensor& param = entry.param;
  if (param.numel() == 0)  // counts as a step
    return ops::update<MuonStep>(name(), {{{}, {param, grad}, count}});
  const Shape& shape = param.shape();
  const int64_t rows = shape[0];
  const int64_t columns = param.numel() / rows;
  const bool tall = rows > columns;

  // The update is stored as a wide matrix: row-major, or a tall one transposed.
  const Tensor wide = empty({std::min(rows, columns), std::max(rows, columns)},
                            {.dtype = compute_dtype(param.dtype()), .device = param.device()});
  const auto as_param = [&](const Tensor& matrix) {
    Strides strides = dense_strides(shape);
    if (tall) {
      for (int64_t& stride : strides) stride *= rows;
      strides[0] = 1;
    }
    return matrix.as_strided(shape, strides, 0);
  };
  const MuonMomentum momentum{.sign = o.maximize ? -1.0 : 1.0,
                              .momentum = o.momentum,
                              .g_share = o.nesterov ? 1.0 : 0.0,
                              .b_share = o.nesterov ? o.momentum : 1.0};
  ops::update<MuonMomentum>(name(),
                            {{momentum, {state_of(entry, 0), grad, as_param(wide)}, {.found = count.found}}});

  const double stretch = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
  const MuonStep descent{.keep = 1 - o.lr * o.weight_decay, .move = -o.lr * stretch};
  ops::update<MuonStep>(name(), {{descent, {param, as_param(newton_schulz(wide, o.ns_steps))}, count}});
}

}  // namespace pleat::optim
