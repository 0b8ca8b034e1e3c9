#include "pleat/nn/optim/grad_scaler.h"

#include <cmath>
#include <limits>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/nn/optim/gradients.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

void check_options(const GradScalerOptions& o) {
  check<ValueError>(o.init_scale > 0 && std::isfinite(o.init_scale),
                    "GradScaler: init_scale must be above 0 and finite, got {}", o.init_scale);
  check<ValueError>(o.growth_factor > 1 && std::isfinite(o.growth_factor),
                    "GradScaler: growth_factor must be above 1 and finite, got {}", o.growth_factor);
  check<ValueError>(o.backoff_factor > 0 && o.backoff_factor < 1,
                    "GradScaler: backoff_factor must lie between 0 and 1, got {}", o.backoff_factor);
  check<ValueError>(o.growth_interval >= 1, "GradScaler: growth_interval must be at least 1, got {}",
                    o.growth_interval);
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(options), scale_(options.init_scale) {
  check_options(options_);
}

Tensor GradScaler::scale(const Tensor& loss) const {
  check<DTypeError>(is_floating(loss.dtype()), "GradScaler: the loss must be floating, got {}", loss);
  if (!options_.enabled) return loss;
  return (is_half(loss.dtype()) ? loss.to(float32) : loss) * scale_;
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (!options_.enabled) return;
  check<ValueError>(!progress_.contains(&optimizer),
                    "GradScaler: unscale_ was called for this optimiser since the last update(), or its step "
                    "was made; call update() after each step");
  const std::vector<Tensor> grads = gradients_of(optimizer.parameters());
  check<ValueError>(!grads.empty(),
                    "GradScaler: none of the optimiser's parameters has a gradient; call "
                    "scaler.scale(loss).backward() first");
  for (const Tensor& grad : grads)
    check<DTypeError>(
        grad.dtype() != float16,
        "GradScaler: a gradient of float16, {}, cannot be unscaled; keep parameters in float32 and "
        "compute under Autocast",
        grad);
  Progress progress;
  std::vector<ops::Update<ops::Unscale>> updates;
  for (const std::vector<Tensor>& group : by_device(grads)) {
    const Tensor flag = zeros({1}, {.dtype = int32, .device = group[0].device()});
    progress.flags.push_back(flag);
    for (const Tensor& grad : group) updates.push_back({{1 / scale_, flag.data<int32_t>()}, {grad}});
  }
  ops::update("GradScaler", updates);
  progress_.emplace(&optimizer, std::move(progress));
}

bool GradScaler::found(Progress& progress) {
  if (!progress.found) {
    progress.found = false;
    for (const Tensor& flag : progress.flags) progress.found = *progress.found || flag.item<int32_t>() != 0;
    progress.flags.clear();
  }
  return *progress.found;
}

bool GradScaler::step(Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  const auto before = progress_.find(&optimizer);
  check<ValueError>(
      before == progress_.end() || !before->second.stepped,
      "GradScaler: step was called for this optimiser since the last update(); call update() after "
      "each step");
  if (before == progress_.end()) unscale_(optimizer);
  Progress& progress = progress_.at(&optimizer);
  const bool finite = !found(progress);
  if (finite) optimizer.step();
  progress.stepped = true;
  return finite;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  check<ValueError>(!progress_.empty(), "GradScaler: update() needs a step or unscale_ since the last one");
  bool any = false;
  for (auto& [optimizer, progress] : progress_) any = found(progress) || any;
  progress_.clear();
  if (any) {
    scale_ *= options_.backoff_factor;
    growth_tracker_ = 0;
  } else if (++growth_tracker_ == options_.growth_interval) {
    const double larger = scale_ * options_.growth_factor;
    // Gradients are multiplied by its reciprocal.
    if (1 / larger >= std::numeric_limits<float>::min()) scale_ = larger;
    growth_tracker_ = 0;
  }
}

void GradScaler::update(double new_scale) {
  if (!options_.enabled) return;
  check<ValueError>(new_scale > 0 && std::isfinite(new_scale),
                    "GradScaler: the new scale must be above 0 and finite, got {}", new_scale);
  scale_ = new_scale;
  progress_.clear();
}

nn::StateDict GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  return {{"scale", scalar(scale_, float64)},
          {"growth_factor", scalar(options_.growth_factor, float64)},
          {"backoff_factor", scalar(options_.backoff_factor, float64)},
          {"growth_interval", scalar(options_.growth_interval, int64)},
          {"growth_tracker", scalar(growth_tracker_, int64)}};
}

void GradScaler::load_state_dict(const nn::StateDict& state) {
  if (!options_.enabled) return;
  const nn::StateDict loaded = state_dict();
  nn::copy_state("GradScaler", loaded, state);
  GradScalerOptions options = options_;
  options.init_scale = loaded.at("scale").item();
  options.growth_factor = loaded.at("growth_factor").item();
  options.backoff_factor = loaded.at("backoff_factor").item();
  options.growth_interval = loaded.at("growth_interval").item<int64_t>();
  check_options(options);
  scale_ = options.init_scale;
  options_.growth_factor = options.growth_factor;
  options_.backoff_factor = options.backoff_factor;
  options_.growth_interval = options.growth_interval;
  growth_tracker_ = loaded.at("growth_tracker").item<int64_t>();
}

}  // namespace pleat::optim
