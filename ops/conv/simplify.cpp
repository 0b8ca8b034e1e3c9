#include "pleat/ops/conv/simplify.h"

#include <algorithm>

namespace pleat::ops {
namespace {

constexpr Spatial none{0, 0, 0};
constexpr Spatial ones{1, 1, 1};

bool is_pointwise(const ConvProblem& p, std::size_t d) {
  return p.kernel[d] == 1 && p.stride[d] == 1 && p.padding_low[d] == 0 && p.padding_high[d] == 0;
}

/// Leaves dimension d with size 1.
void clear(ConvProblem& p, std::size_t d) {
  p.input[d] = p.output[d] = p.kernel[d] = p.stride[d] = p.dilation[d] = 1;
  p.padding_low[d] = p.padding_high[d] = 0;
}

void swap_dims(ConvProblem& p, std::size_t a, std::size_t b) {
  for (Spatial* sizes :
       {&p.input, &p.output, &p.kernel, &p.stride, &p.dilation, &p.padding_low, &p.padding_high})
    std::swap((*sizes)[a], (*sizes)[b]);
}

}  // namespace

ConvProblem simplify(const ConvProblem& problem, MemoryFormat format) {
  ConvProblem p = problem;
  p.spatial_dims = 3;
  p.format = format;
  p.result_format.reset();
  const bool whole =
      p.kernel == p.input && p.padding_low == none && p.padding_high == none && p.dilation == ones;
  if (whole && p.groups == 1) {
    p.in_channels *= p.input_pixels();
    for (std::size_t d = 0; d < 3; ++d) clear(p, d);
  }
  // Contiguous, the channels lie between the batch and its pixels.
  if (format == MemoryFormat::channels_last)
    for (std::size_t d = 0; d < 3 && is_pointwise(p, d); ++d) {
      p.batch *= p.input[d];
      clear(p, d);
    }
  for (std::size_t d = 1; d < 3; ++d)
    if (is_pointwise(p, d - 1) && is_pointwise(p, d)) {
      p.input[d] *= p.input[d - 1];
      p.output[d] = p.input[d];
      clear(p, d - 1);
    }
  // Dimensions of size 1 lead, so that equal problems look equal.
  for (std::size_t pass = 0; pass < 2; ++pass)
    for (std::size_t d = 1; d < 3; ++d) {
      const bool empty = p.input[d] == 1 && is_pointwise(p, d);
      const bool empty_before = p.input[d - 1] == 1 && is_pointwise(p, d - 1);
      if (empty && !empty_before) swap_dims(p, d - 1, d);
    }
  return p;
}

}  // namespace pleat::ops
