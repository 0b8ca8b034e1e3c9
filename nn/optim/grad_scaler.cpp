#include "pleat/nn/optim/grad_scaler.h"

#include <cmath>
#include <limits>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/nn/optim/gradients.h"
#include "pleat/nn/option_checks.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

void check_options(const GradScalerOptions& o) {
  check_positive("GradScaler", "init_scale", o.init_scale);
  check<ValueError>(o.growth_factor > 1 && std::isfinite(o.growth_factor),
                    "GradScaler: growth_factor must be above 1 and finite, got {}", o.growth_factor);
  check<ValueError>(o.backoff_factor > 0 && o.backoff_factor < 1,
                    "GradScaler: backoff_factor must lie between 0 and 1, got {}", o.backoff_factor);
  check_at_least("GradScaler", "growth_interval", o.growth_interval, 1);
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(options), scale_(options.init_scale) {
  check_options(options_);
}

void GradScaler::check_not_moved_from() const {
  check<Error>(!moved_from_, "GradScaler: it was moved from; use the one that it was moved to");
}

Tensor GradScaler::scale(const Tensor& loss) const {
  check_not_moved_from();
  check<DTypeError>(is_floating(loss.dtype()), "GradScaler: the loss must be floating, got {}", loss);
  if (!options_.enabled) return loss;
  return (is_half(loss.dtype()) ? loss.to(float32) : loss) * scale_;
}

void GradScaler::unscale_(Optimizer& optimizer) {
  check_not_moved_from();
  if (!options_.enabled) return;
  check<ValueError>(!progress_.contains(optimizer),
                    "GradScaler: unscale_ was called for this optimiser since the last update(), or its step "
                    "was made; call update() after each step");
  const std::vector<Tensor> params = optimizer.parameters();
  const std::vector<Tensor> grads = gradients_of(params);
  if (grads.empty()) fail_without_gradients("GradScaler", params);
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
  progress_.emplace(optimizer, std::move(progress));
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
  check_not_moved_from();
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  const auto before = progress_.find(optimizer);
  check<ValueError>(
      before == progress_.end() || !before->second.stepped,
      "GradScaler: step was called for this optimiser since the last update(); call update() after "
      "each step");
  if (before == progress_.end()) unscale_(optimizer);
  Progress& progress = progress_.at(optimizer);
  const bool finite = !found(progress);
  if (finite) optimizer.step();
  progress.stepped = true;
  return finite;
}

void GradScaler::update() {
  check_not_moved_from();
  if (!options_.enabled) return;
  check<ValueError>(!progress_.empty(), "GradScaler: update() needs a step or unscale_ since the last one");
  bool any = false;
  for (auto& [optimizer, progress] : progress_) any = found(progress) || any;
  progress_.clear();
  if (any) {
    const double smaller = scale_ * options_.backoff_factor;
    growth_tracker_ = 0;
    check<NumericError>(
        smaller >= std::numeric_limits<float>::min(),
        "GradScaler: gradients stay infinite or NaN whatever the scale, now {}, so no step is ever "
        "made; look for a NaN in the loss or its input",
        scale_);
    scale_ = smaller;
  } else if (++growth_tracker_ == options_.growth_interval) {
    const double larger = scale_ * options_.growth_factor;
    // Gradients are multiplied by its reciprocal.
    if (1 / larger >= std::numeric_limits<float>::min()) scale_ = larger;
    growth_tracker_ = 0;
  }
}

void GradScaler::update(double new_scale) {
  check_not_moved_from();
  if (!options_.enabled) return;
  check_positive("GradScaler", "the new scale", new_scale);
  scale_ = new_scale;
  progress_.clear();
}

nn::StateDict GradScaler::state_dict() const {
  check_not_moved_from();
  if (!options_.enabled) return {};
  return {{"scale", scalar(scale_, float64)},
          {"growth_factor", scalar(options_.growth_factor, float64)},
          {"backoff_factor", scalar(options_.backoff_factor, float64)},
          {"growth_interval", scalar(options_.growth_interval, int64)},
          {"growth_tracker", scalar(growth_tracker_, int64)}};
}

void GradScaler::load_state_dict(const nn::StateDict& state) {
  check_not_moved_from();
  if (!options_.enabled) return;
  const nn::StateDict loaded = state_dict();
  nn::copy_state("GradScaler", loaded, state);
  GradScalerOptions options = options_;
  options.init_scale = loaded.at("scale").item();
  options.growth_factor = loaded.at("growth_factor").item();
  options.backoff_factor = loaded.at("backoff_factor").item();
  options.growth_interval = loaded.at("growth_interval").item<int64_t>();
  const auto tracker = loaded.at("growth_tracker").item<int64_t>();
  check_options(options);
  check<ValueError>(tracker >= 0 && tracker < options.growth_interval,
                    "GradScaler: growth_tracker must be in [0, {}), got {}", options.growth_interval,
                    tracker);
  scale_ = options.init_scale;
  options_.growth_factor = options.growth_factor;
  options_.backoff_factor = options.backoff_factor;
  options_.growth_interval = options.growth_interval;
  growth_tracker_ = tracker;
}

}  // namespace pleat::optim
