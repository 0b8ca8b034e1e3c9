// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/number_array.h"
#include "pleat/ops/spatial/pixel_order.h"

namespace pleat::ops {

/// A SparseRows as plain arrays, its numbers as W.
template <class W>
struct SparseRowsView {
  const int64_t* first;
  const int64_t* index;
  const W* weight;
  const W* scale;
};

/// One element of y = map(x) a call, by index arithmetic alone; i counts as y lies in memory. Sums are in
/// Sum.
template <class T, class Sum>
struct ApplyLinearMap {
  SparseRowsView<Sum> rows[3];
  PixelOrder order;
  ImageSteps x_step;
  NumberArray<T> x;
  NumberArray<T> y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel pixel = order.at(i);
    const auto [d, h, w] = pixel.at;
    const int64_t plane = pixel.image * x_step[0] + pixel.channel * x_step[1];
    Sum sum = 0;
    for (int64_t a = rows[0].first[d]; a < rows[0].first[d + 1]; ++a)
      for (int64_t b = rows[1].first[h]; b < rows[1].first[h + 1]; ++b) {
        const Sum weight = rows[0].weight[a] * rows[1].weight[b];
        const int64_t row = plane + rows[0].index[a] * x_step[2] + rows[1].index[b] * x_step[3];
        for (int64_t e = rows[2].first[w]; e < rows[2].first[w + 1]; ++e)
          sum += weight * rows[2].weight[e] * static_cast<Sum>(x.load(row + rows[2].index[e] * x_step[4]));
      }
    y.store(i, static_cast<T>(sum * rows[0].scale[d] * rows[1].scale[h] * rows[2].scale[w]));
  }
};

}  // namespace pleat::ops
