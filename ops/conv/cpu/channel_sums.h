// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "pleat/core/base/simd.h"
#include "pleat/core/tensor/bfloat16_vector.h"
#include "pleat/ops/spatial/channel_affine.h"
#include "pleat/ops/spatial/limit.h"

/// Two sums for each channel over the pixels of a convolution's result, made when the kernel has just written
/// them, so that a batch norm need not read the result for them: moments of y, or of a gradient those that
/// batch norm's backward begins with.

namespace pleat::ops {

/// A kernel cuts its work into parts by the problem alone; sums of a part are of type T, added up in groups
/// of some pixels, and merged in float64 in the order of the parts. The result has elements of type Element.
template <class T, class Element = T>
class ChannelSums {
 public:
  /// Of the moments of a result.
  ChannelSums() = default;
  /// Of a gradient of what `of` makes of x.
  ChannelSums(const Normalization& of, const Element* x) : of_(&of), x_(x), limit_(of.bounds) {}

  /// Parts with `width` lanes, to be called first. Lanes are channels, in an order of the kernel's.
  void prepare(int64_t parts, int64_t width) {
    width_ = width;
    lanes_.assign(static_cast<std::size_t>(parts * arrays * width), T(0));
  }

  /// Adds some pixels' channels from `channel` on to the lanes from `lane` on. `pixel(i)` is where these
  /// channels of pixel i < `count` lie now, `index(i)` their place among the elements of the result.
  template <class Pixel, class Index>
  void add(int64_t part, int64_t lane, int64_t channel, int64_t channels, int64_t count, const Pixel& pixel,
           const Index& index) {
    int64_t at = 0;
    const auto by = [&](auto bytes) {
      constexpr int64_t step = bytes / static_cast<int64_t>(sizeof(T));
      for (; channels - at >= step; at += step)
        add_vector<bytes>(
            lanes_.data() + part * arrays * width_ + lane + at, channel + at, count,
            [&](int64_t i) { return pixel(i) + at; }, [&](int64_t i) { return index(i) + at; });
    };
    by(std::integral_constant<int, 64>());
    by(std::integral_constant<int, 16>());
    by(std::integral_constant<int, sizeof(T)>());
  }

  /// Merges what all parts have of some lanes into that of the channels from `channel` on.
  void merge(int64_t lane, int64_t channel, int64_t channels) {
    const int64_t parts = width_ > 0 ? static_cast<int64_t>(lanes_.size()) / (arrays * width_) : 0;
    const auto end = static_cast<std::size_t>(channel + channels);
    first.resize(std::max(first.size(), end));
    second.resize(first.size());
    for (int64_t c = 0; c < channels; ++c) {
      double before = 0, a = 0, b = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const T* sums = lanes_.data() + part * arrays * width_ + lane + c;
        const auto one = static_cast<double>(sums[0]), other = static_cast<double>(sums[width_]);
        if (of_ != nullptr) {
          a += one;
          b += other;
          continue;
        }
        const auto n = static_cast<double>(sums[3 * width_]);
        if (n == 0) continue;
        merge_moments(a, b, before, static_cast<double>(sums[2 * width_]) + one / n,
                      std::max(0.0, other - one * one / n), n);
        before += n;
      }
      first[static_cast<std::size_t>(channel + c)] = a;
      second[static_cast<std::size_t>(channel + c)] = b;
    }
  }

  /// Of each channel, when all are merged: the mean and the sum of squared distances from it, or the two
  /// sums.
  std::vector<double> first, second;

 private:
  static constexpr int64_t arrays = 4;  ///< two sums, what is taken off the terms of moments, and pixels

  template <int bytes, class Pixel, class Index>
  void add_vector(T* sums, int64_t channel, int64_t count, const Pixel& pixel, const Index& index) {
    using V = simd::Vector<T, bytes>;
    const auto at = []<class E>(const E* from) {
      if constexpr (std::is_same_v<E, BFloat16>)
        return simd::load_floats<bytes>(from);
      else
        return simd::load<bytes>(from);
    };
    const auto add_to = [&](T* to, const V& added) { simd::store<bytes>(to, at(to) + added); };
    // Of pixels in turn, so that no addition waits for the one before it.
    V one[2]{}, other[2]{};
    const auto for_pixels = [&](const auto& add) {
      int64_t i = 0;
      for (; i + 1 < count; i += 2) {
        add(i, one[0], other[0]);
        add(i + 1, one[1], other[1]);
      }
      if (i < count) add(i, one[0], other[0]);
    };
    if (of_ == nullptr) {
      if (sums[3 * width_] == 0) simd::store<bytes>(sums + 2 * width_, at(pixel(0)));
      const V pivot = at(sums + 2 * width_);
      for_pixels([&](int64_t i, V& sum, V& squares) {
        const V d = at(pixel(i)) - pivot;
        sum += d;
        squares += d * d;
      });
    } else {
      const Affine<T>& by = of_->numbers<T>();
      const V shift = at(by.shift.data() + channel), scale = at(by.scale.data() + channel);
      for_pixels([&, bias = at(by.bias.data() + channel)](int64_t i, V& sum, V& products) {
        const V d = at(x_ + index(i)) - shift;
        const V y = d * scale + bias;
        V g = at(pixel(i));
        g = y <= limit_.min ? V{} : g;
        g = y >= limit_.max ? V{} : g;
        sum += g;
        products += g * d;
      });
    }
    add_to(sums, one[0] + one[1]);
    add_to(sums + width_, other[0] + other[1]);
    add_to(sums + 3 * width_, static_cast<T>(count) - V{});
  }

  const Normalization* of_ = nullptr;
  const Element* x_ = nullptr;
  Limit<T> limit_;
  int64_t width_ = 0;
  std::vector<T> lanes_;  ///< [part][array][lane]
};

}  // namespace pleat::ops
