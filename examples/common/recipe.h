#pragma once

#include <memory>
#include <vector>

#include "cifar_options.h"
#include <pleat/pleat.h>

/// What the options of train_cifar stand for.

std::vector<pleat::data::Transform> training_transforms(const CifarSettings& s, int64_t classes,
                                                        const pleat::data::ChannelStatistics& statistics);
std::unique_ptr<pleat::optim::Optimizer> make_optimizer(const CifarSettings& s,
                                                        const std::vector<pleat::Tensor>& parameters);
/// Over all steps of the training.
pleat::optim::Schedule make_schedule(const CifarSettings& s, int64_t steps,
                                     pleat::optim::Optimizer& optimizer);

/// The profiler of --profile records so many steps, after as many that are not: some work happens only once.
inline constexpr int64_t profiled_after = 3, profiled_steps = 3;
pleat::profile::ProfilerOptions profiler_options(const CifarSettings& s);
