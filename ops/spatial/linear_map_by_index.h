// Private header: not installed.
#pragma once

#include <cstdint>
#include <type_traits>

#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/kernels/number_array.h"
#include "pleat/ops/spatial/linear_map_tables.h"
#include "pleat/ops/spatial/pixel_order.h"

/// Linear maps element by element, by index arithmetic alone: the reference, and what a GPU runs
/// for float64 and for what linear_map_rows.h cannot do.

namespace pleat::ops {

/// One element of y = map(x) a call, by index arithmetic alone; i counts as y lies in memory.
template <class T>
struct ApplyLinearMap {
  static constexpr bool keeps_registers = std::is_same_v<T, float>;
  SparseRowsView<double> rows[3];
  PixelOrder order;
  ImageSteps x_step;
  NumberArray<T> x;
  NumberArray<T> y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel pixel = order.at(i);
    const auto [d, h, w] = pixel.at;
    const int64_t plane = pixel.image * x_step[0] + pixel.channel * x_step[1];
    double sum = 0;
    for (int64_t a = rows[0].first[d]; a < rows[0].first[d + 1]; ++a)
      for (int64_t b = rows[1].first[h]; b < rows[1].first[h + 1]; ++b) {
        const double weight = rows[0].tap[a].weight * rows[1].tap[b].weight;
        const int64_t row = plane + rows[0].tap[a].index * x_step[2] + rows[1].tap[b].index * x_step[3];
        for (int64_t e = rows[2].first[w]; e < rows[2].first[w + 1]; ++e) {
          const Tap<double> tap = rows[2].tap[e];
          sum += weight * tap.weight * static_cast<double>(x.load(row + tap.index * x_step[4]));
        }
      }
    y.store(i, static_cast<T>(sum * rows[0].scale[d] * rows[1].scale[h] * rows[2].scale[w]));
  }
};

/// y = map(x), for x of any strides and y that is dense in `format`; T is the type in which both are
/// computed.
template <class T>
void apply_by_index(const char* op, const LinearMap& map, const Tensor& x, const Tensor& y,
                    MemoryFormat format) {
  const auto tables = tables_of<double>(map, x.device());
  for_each_index(op, y.device(), y.numel(),
                 ApplyLinearMap<T>{{tables->rows(0), tables->rows(1), tables->rows(2)},
                                   PixelOrder(y, format),
                                   image_steps(x),
                                   NumberArray<T>(x),
                                   NumberArray<T>(y)});
}

}  // namespace pleat::ops
