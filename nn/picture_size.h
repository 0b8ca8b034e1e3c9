// Private header: not installed.
#pragma once

#include <string>

#include "pleat/nn/module.h"

namespace pleat::nn {

/// "; the network takes pictures [N, 1, 28, 28]": what fits where `layer`, a Linear behind a Flatten in the
/// Sequential `network`, got another number of features. "" where that cannot be computed: where a module in
/// front is neither a convolution, a pool, a Residual of such nor one that keeps sizes, or no square fits.
std::string picture_size_hint(const Module& network, const Module& layer);

}  // namespace pleat::nn
