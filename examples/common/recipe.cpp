#include "recipe.h"

#include "program.h"

using namespace pleat;

namespace {

/// Muon for the filters. The linear layer, the only other matrix of these networks, gives the
/// classes, and Muon is meant for what lies before it; so AdamW trains it, the biases and the
/// norms.
std::unique_ptr<optim::Optimizer> make_muon(const CifarSettings& s, const std::vector<Tensor>& parameters) {
  const double lr = s.chosen_lr(), weight_decay = s.chosen_weight_decay();
  std::vector<Tensor> filters, others;
  for (const Tensor& parameter : parameters) (parameter.rank() > 2 ? filters : others).push_back(parameter);
  return std::make_unique<optim::MultiOptimizer>(
      optim::Muon{filters, {.lr = lr, .weight_decay = weight_decay}},
      optim::AdamW{others, {.lr = lr / 20, .weight_decay = weight_decay}});
}

/// How a learning rate goes over all steps of the training, from or to `lr`.
optim::Rate learning_rate(const CifarSettings& s, int64_t steps, double lr) {
  if (s.schedule == "cosine") return optim::CosineAnnealingLR{.steps = steps};
  if (s.schedule == "one-cycle")
    return optim::OneCycleLR{.max_lr = lr, .total_steps = steps, .cycle_momentum = false};
  if (s.schedule == "step") return optim::MultiStepLR{.milestones = {steps / 2, steps * 3 / 4}, .gamma = 0.1};
  return optim::ConstantLR{.factor = 1, .steps = 0};
}

}  // namespace

std::vector<data::Transform> training_transforms(const CifarSettings& s, int64_t classes,
                                                 const data::ChannelStatistics& statistics) {
  std::vector<data::Transform> transforms;
  if (s.augments_by("crop")) transforms.push_back(data::random_crop({.padding = 4}));
  if (s.augments_by("flip")) transforms.push_back(data::random_horizontal_flip());
  transforms.push_back(data::normalize(statistics.mean, statistics.std));
  if (s.augments_by("cutout")) transforms.push_back(data::cutout(8));
  // The labels were checked when they were read.
  if (s.augments_by("mixup")) transforms.push_back(data::mixup(0.2, classes, {.check_target = false}));
  if (s.augments_by("cutmix")) transforms.push_back(data::cutmix(1.0, classes, {.check_target = false}));
  return transforms;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const CifarSettings& s,
                                                 const std::vector<Tensor>& parameters) {
  const double lr = s.chosen_lr(), momentum = s.chosen_momentum(), weight_decay = s.chosen_weight_decay();
  if (s.optimizer == "sgd")
    return std::make_unique<optim::SGD>(
        parameters,
        optim::SGDOptions{
            .lr = lr, .momentum = momentum, .weight_decay = weight_decay, .nesterov = momentum > 0});
  if (s.optimizer == "adam")
    return std::make_unique<optim::Adam>(parameters,
                                         optim::AdamOptions{.lr = lr, .weight_decay = weight_decay});
  if (s.optimizer == "adamw")
    return std::make_unique<optim::AdamW>(parameters,
                                          optim::AdamWOptions{.lr = lr, .weight_decay = weight_decay});
  if (s.optimizer == "rmsprop")
    return std::make_unique<optim::RMSprop>(
        parameters, optim::RMSpropOptions{.lr = lr, .weight_decay = weight_decay, .momentum = momentum});
  if (s.optimizer == "adagrad")
    return std::make_unique<optim::Adagrad>(parameters,
                                            optim::AdagradOptions{.lr = lr, .weight_decay = weight_decay});
  if (s.optimizer == "muon") return make_muon(s, parameters);
  return std::make_unique<optim::Lion>(parameters,
                                       optim::LionOptions{.lr = lr, .weight_decay = weight_decay});
}

optim::Schedule make_schedule(const CifarSettings& s, int64_t steps, optim::Optimizer& optimizer) {
  std::vector<optim::Rate> rates;
  for (std::size_t group = 0; group < optimizer.num_groups(); ++group)
    rates.push_back(learning_rate(s, steps, optimizer.lr(group)));
  return {optimizer, rates};
}

/// Records the fourth to the sixth step, after all work that happens only once.
profile::ProfilerOptions profiler_options(const CifarSettings& s) {
  return {
      .schedule =
          profile::Schedule{.wait = profiled_after - 1, .warmup = 1, .active = profiled_steps, .repeat = 1},
      .with_memory = true,
      .with_flops = true,
      .on_trace_ready = [trace = s.profile](const profile::Profile& profile) {
        print("\n%s", profile.key_averages().table({.row_limit = 25}).c_str());
        profile.export_chrome_trace(trace);
      }};
}
