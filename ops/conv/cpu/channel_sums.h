// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "pleat/core/base/simd.h"
#include "pleat/ops/spatial/channel_affine.h"
#include "pleat/ops/spatial/limit.h"

/// Two sums for each channel over the pixels of a convolution's result, made when the kernel has just written
/// them, so that a batch norm need not read the result for them: moments of y, or of a gradient those that
/// batch norm's backward begins with.

namespace pleat::ops {

/// A kernel cuts its work into parts by the problem alone; sums of a part are of type T, added up in groups
/// of some pixels, and merged in float64 in the order of the parts.
template <class T>
class ChannelSums {
 public:
  /// Of the moments of a result.
  ChannelSums() = default;
  /// Of a gradient of what `of` made, whose elements lie like those of `result`.
  ChannelSums(std::shared_ptr<const NormalizedBy> of, const T* result)
      : of_(std::move(of)), result_(result), x_(of_->x().data<T>()), limit_(of_->bounds) {}

  /// Parts with `width` lanes, to be called first. Lanes are channels, in an order of the kernel's.
  void prepare(int64_t parts, int64_t width) {
    width_ = width;
    lanes_.assign(static_cast<std::size_t>(parts * arrays * width), T(0));
    pixels_.assign(static_cast<std::size_t>(parts * width), 0);
  }

  /// Adds some pixels' channels from `channel` on, whole vectors of them, to the lanes from `lane` on.
  void add(int64_t part, int64_t lane, int64_t channel, int64_t channels, const T* const* pixels,
           int64_t count) {
    using V = simd::Vector<T>;
    T* sums = lanes_.data() + part * arrays * width_ + lane;
    int64_t& before = pixels_[static_cast<std::size_t>(part * width_ + lane)];
    for (int64_t i = 0; i < channels; i += simd::lanes<T>) {
      const auto at = [i](const T* from) -> const V& { return *reinterpret_cast<const V*>(from + i); };
      V one{}, other{};
      if (of_ == nullptr) {
        if (before == 0) std::copy_n(pixels[0] + i, simd::lanes<T>, sums + 2 * width_ + i);
        const V pivot = at(sums + 2 * width_);
        for (int64_t p = 0; p < count; ++p) {
          const V d = at(pixels[p]) - pivot;
          one += d;
          other += d * d;
        }
      } else {
        const Affine<T>& by = of_->numbers<T>();
        const V shift = at(by.shift.data() + channel);
        const V scale = at(by.scale.data() + channel), bias = at(by.bias.data() + channel);
        for (int64_t p = 0; p < count; ++p) {
          const V d = at(x_ + (pixels[p] - result_)) - shift;
          V g = at(pixels[p]);
          const V y = d * scale + bias;
          g = y <= limit_.min ? V{} : g;
          g = y >= limit_.max ? V{} : g;
          one += g;
          other += g * d;
        }
      }
      *reinterpret_cast<V*>(sums + i) += one;
      *reinterpret_cast<V*>(sums + width_ + i) += other;
    }
    before += count;
  }

  /// Merges what all parts have of some lanes, where each `add` began, into that of the channels from
  /// `channel` on.
  void merge(int64_t lane, int64_t channel, int64_t channels) {
    const int64_t parts = static_cast<int64_t>(pixels_.size()) / width_;
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
        const auto n = static_cast<double>(pixels_[static_cast<std::size_t>(part * width_ + lane)]);
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
  static constexpr int64_t arrays = 3;  ///< two sums, and what is taken off the terms of moments

  std::shared_ptr<const NormalizedBy> of_;
  const T* result_ = nullptr;
  const T* x_ = nullptr;
  Limit<T> limit_;
  int64_t width_ = 0;
  std::vector<T> lanes_;         ///< [part][array][lane]
  std::vector<int64_t> pixels_;  ///< [part][lane], where an `add` began
};

}  // namespace pleat::ops
