// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/ops/spatial/linear_map.h"

namespace pleat::ops {

/// How images [images, channels, spatial...] without gaps lie.
struct ImagesView {
  int64_t images, channels;
  bool channels_last;
};

/// y = map(x) on the CPU, both of the same layout. T is float or double.
template <class T>
void apply_on_cpu(const LinearMap& map, const T* x, T* y, const ImagesView& view);

}  // namespace pleat::ops
