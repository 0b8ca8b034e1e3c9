// Private header: not installed.
#pragma once

#include <string>

#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// What to do with an input that has its channels last where they belong at dimension `at` (1 behind the
/// batch's, 0 of one sample): "; if the channels are last, permute(x, {0, 3, 1, 2}) makes it [8, 3, 32, 32]".
/// "" where the last size is not `channels`, the number that is needed. The end of a message.
std::string channels_last_hint(const Shape& input, int64_t channels, std::size_t at = 1);

}  // namespace pleat::ops
