// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/spatial/pixel_order.h"

/// Several channels of a pixel at once, for functors that do the same with each: where they lie, whatever the
/// strides, and by how many bits their elements are counted.

namespace pleat::ops {

/// Elements that a tensor's strides reach over, without its first dimension.
inline int64_t reach_of_image(const Tensor& t) {
  int64_t reach = 1;
  for (std::size_t d = 1; d < t.shape().size(); ++d) reach += (t.shape()[d] - 1) * t.strides()[d];
  return reach;
}

/// How many elements along dimension `along` can always be moved at once: `most`, a power of two, or less.
inline int64_t moved_together(const Tensor& t, int64_t along, int64_t most) {
  for (int64_t together = most; together > 1; together /= 2) {
    const auto bytes = static_cast<std::uintptr_t>(together * size_of(t.dtype()));
    bool fits = reinterpret_cast<std::uintptr_t>(t.raw()) % bytes == 0;
    for (int64_t d = 0; d < t.rank(); ++d) {
      const int64_t step = t.strides()[static_cast<std::size_t>(d)], size = t.size(d);
      fits = fits && (d == along ? step == 1 && size % together == 0 : step % together == 0 || size == 1);
    }
    if (fits) return together;
  }
  return 1;
}

/// image_steps as kernels count.
template <class Index>
std::array<Index, 5> steps_as(const Tensor& t) {
  std::array<Index, 5> steps{};
  const ImageSteps wide = image_steps(t);
  std::transform(wide.begin(), wide.end(), steps.begin(),
                 [](int64_t step) { return static_cast<Index>(step); });
  return steps;
}

/// Calls `run(first, count)` for parts of the images which reach over less than 2^31 elements, given how far
/// one does.
template <class Run>
void for_image_parts(int64_t images, int64_t reach, const Run& run) {
  const int64_t most = std::max<int64_t>(std::numeric_limits<int32_t>::max() / reach, 1);
  for (int64_t first = 0; first < images; first += most) run(first, std::min(most, images - first));
}

/// Channels that a call takes at once: vectors of neighbours, so far apart that those of neighbouring calls
/// lie side by side. Without enough channels the last lanes are of none.
inline constexpr int lanes = 2 * static_cast<int>(vector_width);
inline int64_t lane_groups(int64_t channels) { return ceil_div(channels, int64_t{lanes}); }

/// A tensor from its image `image` on, in lanes of its channels or those of several images.
template <class Index>
class LaneArray {
 public:
  LaneArray() = default;
  LaneArray(const Tensor& t, int64_t image, int64_t groups)
      : base_(t.raw() + image * t.strides()[0] * size_of(t.dtype())),
        step_(t.strides()[1] * size_of(t.dtype())),
        next_(groups * width * step_),
        apart_(static_cast<int32_t>(groups * width)),
        by_vectors_(moved_together(t, 1, width) == width) {}

  PLEAT_HOST_DEVICE bool defined() const { return base_ != nullptr; }

  /// Whether lane k is of one of the `channels` from the first lane's on.
  PLEAT_HOST_DEVICE bool exists(int k, Index channels) const {
    return k == 0 || static_cast<Index>(channel(k)) < channels;
  }

  /// What lies at `at`, the first lane's place, and in the other lanes, as far as `channels` from there on
  /// go; their elements are of type Stored. Other lanes may hold anything.
  template <class Stored, class T>
  PLEAT_HOST_DEVICE void load(Index at, Index channels, T* value) const {
    const auto* const from = reinterpret_cast<const std::byte*>(reinterpret_cast<const Stored*>(base_) + at);
    if (by_vectors_) {
      PLEAT_UNROLL
      for (int k = 0; k < lanes; k += width) {
        const auto* const place = from + (exists(k, channels) ? k / width * next_ : 0);
        Loaded<Stored, vector_width>(reinterpret_cast<const Stored*>(place)).unpack(value + k);
      }
      return;
    }
    const auto load_all = [&](bool all) {
      for_each_lane(from, [&](int k, const std::byte* place) {
        value[k] = convert<T>(*reinterpret_cast<const Stored*>(all || exists(k, channels) ? place : from));
      });
    };
    if (exists(lanes - 1, channels))
      load_all(true);
    else
      load_all(false);
  }
  template <class Stored, class T>
  PLEAT_HOST_DEVICE void store(Index at, Index channels, const T* value) const {
    auto* const to = reinterpret_cast<std::byte*>(reinterpret_cast<Stored*>(base_) + at);
    if (by_vectors_) {
      PLEAT_UNROLL
      for (int k = 0; k < lanes; k += width)
        if (exists(k, channels))
          store_lanes<vector_width>(reinterpret_cast<Stored*>(to + k / width * next_), value + k);
      return;
    }
    const auto store_all = [&](bool all) {
      for_each_lane(to, [&](int k, std::byte* place) {
        if (all || exists(k, channels)) *reinterpret_cast<Stored*>(place) = convert<Stored>(value[k]);
      });
    };
    if (exists(lanes - 1, channels))
      store_all(true);
    else
      store_all(false);
  }

 private:
  static constexpr int width = vector_width;

  PLEAT_HOST_DEVICE int32_t channel(int k) const { return k % width + k / width * apart_; }
  /// f(k, its place) of all lanes.
  template <class Byte, class F>
  PLEAT_HOST_DEVICE void for_each_lane(Byte* first, const F& f) const {
    PLEAT_UNROLL
    for (int v = 0; v < lanes; v += width, first += next_) {
      Byte* place = first;
      PLEAT_UNROLL
      for (int j = 0; j < width; ++j, place += step_) f(v + j, place);
    }
  }

  std::byte* base_ = nullptr;
  int64_t step_ = 0, next_ = 0;  ///< of the channels, and from a vector to the next one, in bytes
  int32_t apart_ = 0;            ///< channels from a vector to the next one
  bool by_vectors_ = false;
};

/// Whether the channels of all images lie as if they were one image's, so that lanes may cross them.
inline bool joins_images(const Tensor& t) {
  return t.size(0) == 1 || t.strides()[0] == t.size(1) * t.strides()[1];
}

}  // namespace pleat::ops
