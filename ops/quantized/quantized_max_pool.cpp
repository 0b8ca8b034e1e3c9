#include "pleat/ops/quantized/quantized_max_pool.h"

#include <algorithm>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"

namespace pleat::ops {
namespace {

Spatial sizes_of(const Shape& shape) {
  Spatial sizes{1, 1, 1};
  std::copy(shape.begin() + 2, shape.end(), sizes.end() - (std::ssize(shape) - 2));
  return sizes;
}

/// The part of window `at` that lies in the input: taps [first, last).
struct Taps {
  Taps(const PoolWindows& w, std::size_t d, int64_t at, int64_t input)
      : start(at * w.stride[d] - w.low[d]),
        first(start < 0 ? ceil_div(-start, w.dilation[d]) : 0),
        last(std::min(w.kernel[d], start >= input ? 0 : ceil_div(input - start, w.dilation[d]))) {}

  int64_t start, first, last;
};

}  // namespace

Tensor quantized_max_pool(const Tensor& given, const PoolWindows& w, const Shape& output) {
  const RecordOp range("max_pool", given);
  const Tensor x = to_format(given, MemoryFormat::channels_last);
  const Tensor y =
      empty(output, {.dtype = uint8, .device = x.device(), .format = MemoryFormat::channels_last});
  const Spatial in = sizes_of(x.shape()), out = sizes_of(output);
  const int64_t channels = output[1];
  const int64_t lines = output[0] * out[0] * out[1];
  parallel_for(0, lines, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, out[2] * channels)),
               [&, from = x.data<uint8_t>(), to = y.data<uint8_t>()](int64_t begin, int64_t end) {
                 for (int64_t line = begin; line < end; ++line) {
                   const int64_t n = line / (out[0] * out[1]);
                   const Taps a(w, 0, line / out[1] % out[0], in[0]), b(w, 1, line % out[1], in[1]);
                   for (int64_t p = 0; p < out[2]; ++p) {
                     const Taps c(w, 2, p, in[2]);
                     uint8_t* const best = to + (line * out[2] + p) * channels;
                     std::fill_n(best, channels, uint8_t{0});
                     for (int64_t i = a.first; i < a.last; ++i)
                       for (int64_t j = b.first; j < b.last; ++j)
                         for (int64_t k = c.first; k < c.last; ++k) {
                           const int64_t line_in = (n * in[0] + a.start + i * w.dilation[0]) * in[1];
                           const int64_t pixel =
                               (line_in + b.start + j * w.dilation[1]) * in[2] + c.start + k * w.dilation[2];
                           const uint8_t* const value = from + pixel * channels;
                           for (int64_t e = 0; e < channels; ++e) best[e] = std::max(best[e], value[e]);
                         }
                   }
                 }
               });
  return y;
}

}  // namespace pleat::ops
