// Private header: not installed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pleat/core/base/simd.h"
#include "pleat/ops/spatial/channel_affine.h"
#include "pleat/ops/spatial/limit.h"

/// What a convolution reads: elements in memory, or those that a DeferredAffine would write there.

namespace pleat::ops {

template <class T>
class ConvSource {
 public:
  /// x [N, C, spatial...] lies channels_last.
  explicit ConvSource(const Tensor& x) {
    auto deferred = std::dynamic_pointer_cast<const DeferredAffine>(x.impl().storage->deferred());
    // A view of it may have other channels.
    if (deferred == nullptr || deferred->of->x().size(1) != x.size(1) || x.offset() % x.size(1) != 0) {
      data_ = x.data<T>();
      return;
    }
    of_ = deferred->of;
    data_ = of_->x().data<T>() + x.offset();
    limit_ = of_->bounds;
  }

  /// Where the elements lie, or those that they are computed from.
  const T* data() const { return data_; }
  bool is_deferred() const { return of_ != nullptr; }

  /// Makes elements of a deferred source from those in memory, of channels c, c + 1 ...
  template <class V>
  [[gnu::always_inline]] void compute(int64_t c, V& value) const {
    const Affine<T>& by = of_->numbers<T>();
    const auto at = [c](const std::vector<T>& of) { return simd::load<sizeof(V)>(of.data() + c); };
    value = (value - at(by.shift)) * at(by.scale) + at(by.bias);
    value = value < limit_.min ? limit_.min - V{} : value;
    value = value > limit_.max ? limit_.max - V{} : value;
  }

 private:
  std::shared_ptr<const NormalizedBy> of_;
  const T* data_ = nullptr;
  Limit<T> limit_;
};

}  // namespace pleat::ops
