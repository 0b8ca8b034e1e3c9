// Private header: not installed.
#pragma once

#include "pleat/dist/communicator.h"
#include "pleat/nn/module.h"

namespace pleat::dist {

/// Throws DistError on all ranks, naming rank and tensor, unless the networks have the same parameters and
/// buffers: names, shapes, types, order in memory, and which require gradients.
void check_same_model(nn::Module& net, const Communicator& world);

}  // namespace pleat::dist
