#pragma once

#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"
#include "pleat/ops/tune/tuner.h"

/// Which implementation is the fastest for a convolution here, found by timing all of them.
///
///   for (const auto& timing : ops::tune_conv(x, w, {.padding = 1})) std::cout << describe(timing) << '\n';
///   ConvPolicy policy{{.benchmark = true}};  // the fastest, timed at the first use of each problem and pass
///   ops::Tuner::save("tuned.json");

namespace pleat::ops {

/// Times every implementation that supports the call (each of cuDNN's plans within the workspace limit; the
/// reference only where there is no other; with a name in `options`, that implementation's plans alone), each
/// pass apart. Returns forward, backward_input and backward_weight, of each the fastest first and those that
/// failed last. The arguments are read only. The results replace what was known of these problems, and a
/// policy with `benchmark` uses them. Throws what the convolution throws, ValueError for numbers of runs that
/// make no sense, and the error of the implementation when none succeeds.
std::vector<Timing> tune_conv(const Tensor& x, const Tensor& w, const Tensor& bias,
                              const ConvOptions& options = {}, TuneOptions how = {});
std::vector<Timing> tune_conv(const Tensor& x, const Tensor& w, const ConvOptions& options = {},
                              TuneOptions how = {});

}  // namespace pleat::ops
