// Private header: not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "pleat/core/base/simd.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/spatial/channel_affine.h"
#include "pleat/ops/spatial/limit.h"

/// What a convolution reads: elements in memory, or what a Normalization makes of them on the way.

namespace pleat::ops {

template <class T>
class ConvSource {
 public:
  /// x [N, C, spatial...] lies channels_last; `by` may be null.
  explicit ConvSource(const Tensor& x, const Normalization* by = nullptr) : by_(by), data_(x.data<T>()) {
    if (by != nullptr) limit_ = by->bounds;
  }

  const T* data() const { return data_; }
  bool is_normalized() const { return by_ != nullptr; }

  /// Makes elements of a normalised source from those in memory, of channels c, c + 1 ...
  template <class V>
  [[gnu::always_inline]] void compute(int64_t c, V& value) const {
    const Affine<T>& by = by_->numbers<T>();
    const auto at = [c](const std::vector<T>& of) { return simd::load<sizeof(V)>(of.data() + c); };
    value = (value - at(by.shift)) * at(by.scale) + at(by.bias);
    value = value < limit_.min ? limit_.min - V{} : value;
    value = value > limit_.max ? limit_.max - V{} : value;
  }

 private:
  const Normalization* by_;
  const T* data_;
  Limit<T> limit_;
};

}  // namespace pleat::ops
