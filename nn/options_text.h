// Private header: not installed.
#pragma once

#include <string>

#include "pleat/ops/conv/options.h"

/// Texts of options, as modules print them.

namespace pleat::nn {

/// "2" or "(2, 1)".
std::string per_dim_text(const PerDim& values);
/// "1", "(1, 2)", "((1, 2), 0)", "same".
std::string padding_text(const Padding& padding);

}  // namespace pleat::nn
