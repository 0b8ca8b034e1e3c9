// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/host_device.h"

namespace pleat::ops {

/// A SparseRows as plain arrays.
struct SparseRowsView {
  int64_t inputs, outputs;
  const int64_t* first;
  const int64_t* index;
  const double* weight;
  const double* scale;
};

/// One element of y = map(x) a call, by index arithmetic alone; i counts [N, C, D, H, W] in row-major order,
/// and the steps tell where an element lies. Sums are in float64.
template <class T>
struct ApplyLinearMap {
  SparseRowsView rows[3];
  int64_t channels;
  int64_t x_step[5], y_step[5];
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t w = i % rows[2].outputs;
    const int64_t h = i / rows[2].outputs % rows[1].outputs;
    const int64_t d = i / (rows[2].outputs * rows[1].outputs) % rows[0].outputs;
    const int64_t c = i / (rows[2].outputs * rows[1].outputs * rows[0].outputs) % channels;
    const int64_t n = i / (rows[2].outputs * rows[1].outputs * rows[0].outputs * channels);
    double sum = 0;
    for (int64_t a = rows[0].first[d]; a < rows[0].first[d + 1]; ++a)
      for (int64_t b = rows[1].first[h]; b < rows[1].first[h + 1]; ++b)
        for (int64_t e = rows[2].first[w]; e < rows[2].first[w + 1]; ++e)
          sum += rows[0].weight[a] * rows[1].weight[b] * rows[2].weight[e] *
                 static_cast<double>(x[n * x_step[0] + c * x_step[1] + rows[0].index[a] * x_step[2] +
                                       rows[1].index[b] * x_step[3] + rows[2].index[e] * x_step[4]]);
    y[n * y_step[0] + c * y_step[1] + d * y_step[2] + h * y_step[3] + w * y_step[4]] =
        static_cast<T>(sum * rows[0].scale[d] * rows[1].scale[h] * rows[2].scale[w]);
  }
};

}  // namespace pleat::ops
