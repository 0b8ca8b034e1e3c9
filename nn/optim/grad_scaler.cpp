// Host and device.
#include "pleat/nn/optim/grad_scaler.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/graph/host_tables.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/optim/gradients.h"
#include "pleat/nn/option_checks.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/update/loss_scale.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

/// Scales by a factor that is where the elements are, and sets a flag where there is an infinity or a NaN.
struct Unscale {
  static constexpr std::size_t operands = 1;
  const double* factor;
  int32_t* found;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& x) const {
    if (!(x - x == 0)) mark();
    x *= T(*factor);
  }

  /// The same for an array on the CPU, without a branch for each element.
  template <class T>
  void update_array(int64_t n, T* x) const {
    using Word = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    const T by = T(*factor);
    Word others = 0;
    for (int64_t i = 0; i < n; ++i) {
      others |= x[i] - x[i] == 0 ? 0 : 1;
      x[i] *= by;
    }
    if (others != 0) mark();
  }

 private:
  PLEAT_HOST_DEVICE void mark() const {
#if PLEAT_DEVICE_CODE
    *found = 1;  // all writers write the same
#else
    std::atomic_ref(*found).store(1, std::memory_order_relaxed);
#endif
  }
};

void check_options(const GradScalerOptions& o) {
  check_positive("GradScaler", "init_scale", o.init_scale);
  check<ValueError>(o.growth_factor > 1 && std::isfinite(o.growth_factor),
                    "GradScaler: growth_factor must be above 1 and finite, got {}", o.growth_factor);
  check<ValueError>(o.backoff_factor > 0 && o.backoff_factor < 1,
                    "GradScaler: backoff_factor must lie between 0 and 1, got {}", o.backoff_factor);
  check_at_least("GradScaler", "growth_interval", o.growth_interval, 1);
}

void check_not_stuck(const ops::LossScale& scale) {
  check<NumericError>(scale.stuck == 0,
                      "GradScaler: gradients stay infinite or NaN whatever the scale, now {}, so no step is "
                      "ever made; look for a NaN in the loss or its input",
                      scale.scale);
}

/// Whether one of these flags is set, on `device`.
Tensor any_found(const std::vector<Tensor>& flags, Device device) {
  const Tensor any = zeros({1}, {.dtype = int32, .device = device});
  for (const Tensor& flag : flags) ops::join_found(any, flag);
  return any;
}

}  // namespace

StepMade::operator bool() const {
  if (!found_.defined()) return true;
  Capture::refuse_to_wait("GradScaler.step");
  return found_.item<int32_t>() == 0;
}

/// The factor and its copies.
struct GradScaler::State {
  Tensor scale;                     ///< a LossScale
  Tensor seen;                      ///< a copy of it on the CPU, which may be under way
  std::optional<cuda::Event> done;  ///< recorded after the copy

  void bring_to(Device device) {
    if (scale.device() == device) return;
    if (const Capture* capture = Capture::current())
      capture->refuse("GradScaler",
                      "its scale is brought to the GPU at the first step; train one before, or "
                      "by `warmup`");
    scale = ops::make_loss_scale(ops::read_loss_scale(scale), device);
    seen = {};
  }

  ops::LossScale read(const char* function) const {
    Capture::refuse_to_wait(function);
    return ops::read_loss_scale(scale);
  }

  /// Throws NumericError when no factor is small enough. Reads the copy of an earlier update that
  /// has arrived rather than wait for this one.
  void watch() {
    if (scale.device().is_cpu()) return check_not_stuck(ops::loss_scale_of(scale));
    if (seen.defined()) {
      if (!done->is_done()) return;
      check_not_stuck(ops::loss_scale_of(std::exchange(seen, {})));
    }
    seen = ops::to_device(scale, Device(), {.non_blocking = true});
    if (!done || done->device() != scale.device()) done.emplace(cuda::EventOptions{.device = scale.device()});
    done->record();
  }
};

GradScaler::GradScaler(GradScalerOptions options) : options_(options), state_(std::make_shared<State>()) {
  check_options(options_);
  state_->scale = ops::make_loss_scale({.scale = options.init_scale,
                                        .inverse = 1 / options.init_scale,
                                        .growth_factor = options.growth_factor,
                                        .backoff_factor = options.backoff_factor,
                                        .growth_interval = options.growth_interval,
                                        .growth_tracker = 0,
                                        .stuck = 0},
                                       Device());
}
GradScaler::~GradScaler() = default;
GradScaler::GradScaler(GradScaler&&) noexcept = default;
GradScaler& GradScaler::operator=(GradScaler&&) noexcept = default;

void GradScaler::check_not_moved_from() const {
  check<Error>(!moved_from_, "GradScaler: it was moved from; use the one that it was moved to");
}

double GradScaler::scale() const {
  check_not_moved_from();
  return options_.enabled ? state_->read("GradScaler.scale").scale : 1;
}

Tensor GradScaler::scale(const Tensor& loss) const {
  check_not_moved_from();
  check<DTypeError>(is_floating(loss.dtype()), "GradScaler: the loss must be floating, got {}", loss);
  if (!options_.enabled) return loss;
  state_->bring_to(loss.device());
  const DType dtype = compute_dtype(loss.dtype());
  // A copy of the factor: the tape keeps the value that the loss was multiplied by.
  return (is_half(loss.dtype()) ? loss.to(float32) : loss) * ops::loss_factor(state_->scale, dtype);
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
  if (std::ranges::find(grads, state_->scale.device(), &Tensor::device) == grads.end())
    state_->bring_to(grads[0].device());
  std::vector<Tensor> found;
  std::vector<Tensor> scales;
  std::vector<ops::Update<Unscale>> updates;
  for (const std::vector<Tensor>& group : by_device(grads)) {
    const Device device = group[0].device();
    found.push_back(zeros({1}, {.dtype = int32, .device = device}));
    scales.push_back(ops::to_device(state_->scale, device));
    const Unscale unscale{ops::inverse_loss_factor(scales.back()), found.back().data<int32_t>()};
    for (const Tensor& grad : group) updates.push_back({unscale, {grad}});
  }
  ops::update("GradScaler", updates);
  // A flag on one device makes all devices skip the step.
  const std::vector<Tensor> found_there = found;
  if (found.size() > 1)
    for (Tensor& flag : found) flag = any_found(found_there, flag.device());
  progress_.emplace(optimizer, Progress{std::move(found)});
}

StepMade GradScaler::step(Optimizer& optimizer) {
  check_not_moved_from();
  if (!options_.enabled) {
    optimizer.step();
    return {};
  }
  const auto before = progress_.find(optimizer);
  check<ValueError>(
      before == progress_.end() || !before->second.stepped,
      "GradScaler: step was called for this optimiser since the last update(); call update() after "
      "each step");
  if (before == progress_.end()) unscale_(optimizer);
  Progress& progress = progress_.at(optimizer);
  optimizer.step_unless(progress.found);
  progress.stepped = true;
  return StepMade(progress.found[0]);
}

void GradScaler::update() {
  check_not_moved_from();
  if (!options_.enabled) return;
  check<ValueError>(!progress_.empty(), "GradScaler: update() needs a step or unscale_ since the last one");
  const Device device = state_->scale.device();
  std::vector<Tensor> flags;
  for (const auto& [optimizer, progress] : progress_) {
    const auto here = std::ranges::find(progress.found, device, &Tensor::device);
    flags.push_back(here != progress.found.end() ? *here : progress.found[0]);
  }
  const bool alone = flags.size() == 1 && flags[0].device() == device;
  ops::next_loss_scale(state_->scale, alone ? flags[0] : any_found(flags, device));
  progress_.clear();
  if (Capture* capture = Capture::current())
    capture->run_host_part([state = state_] {
      if (HostTables::current()->replays()) state->watch();
    });
  else
    state_->watch();
}

void GradScaler::update(double new_scale) {
  check_not_moved_from();
  if (!options_.enabled) return;
  check_positive("GradScaler", "the new scale", new_scale);
  ops::put_loss_factor(state_->scale, new_scale);
  state_->seen = {};
  progress_.clear();
}

nn::StateDict GradScaler::state_dict() const {
  check_not_moved_from();
  if (!options_.enabled) return {};
  const ops::LossScale now = state_->read("GradScaler.state_dict");
  return {{"scale", scalar(now.scale, float64)},
          {"growth_factor", scalar(now.growth_factor, float64)},
          {"backoff_factor", scalar(now.backoff_factor, float64)},
          {"growth_interval", scalar(now.growth_interval, int64)},
          {"growth_tracker", scalar(now.growth_tracker, int64)}};
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
  ops::put_loss_scale(state_->scale, {.scale = options.init_scale,
                                      .inverse = 1 / options.init_scale,
                                      .growth_factor = options.growth_factor,
                                      .backoff_factor = options.backoff_factor,
                                      .growth_interval = options.growth_interval,
                                      .growth_tracker = tracker,
                                      .stuck = 0});
  state_->seen = {};
}

}  // namespace pleat::optim
