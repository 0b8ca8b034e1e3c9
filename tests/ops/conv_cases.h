#pragma once

#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"

namespace pleat::test {

/// One convolution problem: the table below serves every check of every implementation.
struct ConvCase {
  Shape input;   ///< [N, C, spatial...]
  Shape weight;  ///< [K, C / groups, kernel...]
  ConvOptions options;

  std::string name() const;
};

/// Problems chosen by hand for what they bring to light, then a sweep over sizes, kernels, strides, padding,
/// dilation and groups in 1, 2 and 3 dimensions: over 300 in all.
std::vector<ConvCase> conv_cases();

/// The handful of them on which derivatives are checked by differences: small, but of every kind.
std::vector<ConvCase> small_conv_cases();

}  // namespace pleat::test
