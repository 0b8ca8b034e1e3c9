// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pleat/core/base/simd.h"
#include "pleat/core/parallel/parallel.h"

/// The loops of pixel_taps.h on the CPU, over planes in one of two layouts without gaps.

namespace pleat::ops {

/// The sizes, and where things lie.
struct TapSizes {
  int64_t maps, taps, points, images, channels, pixels;
  bool channels_last;
  std::vector<int64_t> image;  ///< of each map
};

namespace tap_loops {

constexpr int64_t block = 512;  ///< points whose indices and weights stay in the first cache

template <class T>
T product(T weight, T value) {
  return weight == 0 ? 0 : weight * value;
}

/// y[p] (+)= the sum of K taps, of which tap k begins at k * step; `all` of them weigh something.
template <int K, bool add, bool all, class T>
void gather_taps(const T* x, const int32_t* index, const T* weight, int64_t step, T* y, int64_t n) {
  PLEAT_INDEPENDENT_ITERATIONS
  for (int64_t p = 0; p < n; ++p) {
    T sum = add ? y[p] : 0;
    for (int k = 0; k < K; ++k) {
      const T value = x[index[k * step + p]];
      sum += all ? weight[k * step + p] * value : product(weight[k * step + p], value);
    }
    y[p] = sum;
  }
}

template <class T>
void forward_planes(const TapSizes& s, const T* x, const int32_t* index, const T* weight, T* y) {
  const int64_t blocks = (s.points + block - 1) / block;
  parallel_for(0, s.maps * blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t m = i / blocks, begin = i % blocks * block;
      const int64_t n = std::min(block, s.points - begin);
      const int32_t* const at = index + m * s.taps * s.points + begin;
      const T* const w = weight + m * s.taps * s.points + begin;
      int64_t zeros = 0;
      for (int64_t t = 0; t < s.taps; ++t)
        for (int64_t p = 0; p < n; ++p) zeros += w[t * s.points + p] == 0;
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* const plane = x + (s.image[static_cast<std::size_t>(m)] * s.channels + c) * s.pixels;
        T* const to = y + (m * s.channels + c) * s.points + begin;
        for (int64_t t = 0; t < s.taps; t += t + 4 <= s.taps ? 4 : 1) {
          const auto gather = [&]<int K>() {
            const auto loop =
                zeros == 0 ? (t == 0 ? gather_taps<K, false, true, T> : gather_taps<K, true, true, T>)
                           : (t == 0 ? gather_taps<K, false, false, T> : gather_taps<K, true, false, T>);
            loop(plane, at + t * s.points, w + t * s.points, s.points, to, n);
          };
          t + 4 <= s.taps ? gather.template operator()<4>() : gather.template operator()<1>();
        }
      }
    }
  });
}

template <class T>
void add_row(T* to, const T* from, T weight, int64_t n) {
  PLEAT_INDEPENDENT_ITERATIONS
  for (int64_t c = 0; c < n; ++c) to[c] += weight * from[c];
}
/// Four rows at once, all of which weigh something.
template <class T>
void set_rows(T* to, const T* const (&from)[4], const T (&weight)[4], int64_t n) {
  PLEAT_INDEPENDENT_ITERATIONS
  for (int64_t c = 0; c < n; ++c)
    to[c] = weight[0] * from[0][c] + weight[1] * from[1][c] + weight[2] * from[2][c] + weight[3] * from[3][c];
}

template <class T>
void forward_rows(const TapSizes& s, const T* x, const int32_t* index, const T* weight, T* y) {
  const int64_t grain = 1 + 16384 / std::max<int64_t>(1, s.channels * s.taps);
  parallel_for(0, s.maps * s.points, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t m = i / s.points, p = i % s.points;
      const T* const image = x + s.image[static_cast<std::size_t>(m)] * s.pixels * s.channels;
      const int64_t start = m * s.taps * s.points + p;
      T* const to = y + i * s.channels;
      int64_t t = 0;
      if (s.taps >= 4) {
        const T* from[4];
        T w[4];
        bool all = true;
        for (int64_t k = 0; k < 4; ++k) {
          w[k] = weight[start + k * s.points];
          from[k] = image + index[start + k * s.points] * s.channels;
          all = all && w[k] != 0;
        }
        if (all) {
          set_rows(to, from, w, s.channels);
          t = 4;
        }
      }
      if (t == 0) std::fill(to, to + s.channels, T(0));
      for (; t < s.taps; ++t) {
        const T w = weight[start + t * s.points];
        if (w != 0) add_row(to, image + index[start + t * s.points] * s.channels, w, s.channels);
      }
    }
  });
}

/// The maps of each image, in their order.
inline std::vector<std::vector<int64_t>> maps_of_images(const TapSizes& s) {
  std::vector<std::vector<int64_t>> maps(static_cast<std::size_t>(s.images));
  for (int64_t m = 0; m < s.maps; ++m)
    maps[static_cast<std::size_t>(s.image[static_cast<std::size_t>(m)])].push_back(m);
  return maps;
}

template <class T>
void input_planes(const TapSizes& s, const T* dy, const int32_t* index, const T* weight, T* dx) {
  const auto maps = maps_of_images(s);
  parallel_for(0, s.images * s.channels, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      T* const plane = dx + i * s.pixels;
      std::fill(plane, plane + s.pixels, T(0));
      for (const int64_t m : maps[static_cast<std::size_t>(i / s.channels)]) {
        const T* const from = dy + (m * s.channels + i % s.channels) * s.points;
        for (int64_t t = 0; t < s.taps; ++t) {
          const int32_t* const at = index + (m * s.taps + t) * s.points;
          const T* const w = weight + (m * s.taps + t) * s.points;
          for (int64_t p = 0; p < s.points; ++p) plane[at[p]] += product(w[p], from[p]);
        }
      }
    }
  });
}

template <class T>
void input_rows(const TapSizes& s, const T* dy, const int32_t* index, const T* weight, T* dx) {
  constexpr int64_t width = 64;  ///< channels that a thread takes
  const int64_t parts = (s.channels + width - 1) / width;
  const auto maps = maps_of_images(s);
  parallel_for(0, s.images * parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i % parts * width, n = std::min(width, s.channels - begin);
      T* const image = dx + i / parts * s.pixels * s.channels + begin;
      for (int64_t p = 0; p < s.pixels; ++p) std::fill_n(image + p * s.channels, n, T(0));
      for (const int64_t m : maps[static_cast<std::size_t>(i / parts)])
        for (int64_t t = 0; t < s.taps; ++t) {
          const int64_t start = (m * s.taps + t) * s.points;
          for (int64_t p = 0; p < s.points; ++p)
            if (const T w = weight[start + p]; w != 0)
              add_row(image + index[start + p] * s.channels, dy + (m * s.points + p) * s.channels + begin, w,
                      n);
        }
    }
  });
}

template <class T>
void weight_planes(const TapSizes& s, const T* dy, const T* x, const int32_t* index, T* dw) {
  const int64_t blocks = (s.points + block - 1) / block;
  parallel_for(0, s.maps * blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t m = i / blocks, begin = i % blocks * block;
      const int64_t n = std::min(block, s.points - begin);
      for (int64_t t = 0; t < s.taps; ++t) {
        const int64_t start = (m * s.taps + t) * s.points + begin;
        std::fill_n(dw + start, n, T(0));
      }
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* const plane = x + (s.image[static_cast<std::size_t>(m)] * s.channels + c) * s.pixels;
        const T* const from = dy + (m * s.channels + c) * s.points + begin;
        for (int64_t t = 0; t < s.taps; ++t) {
          const int64_t start = (m * s.taps + t) * s.points + begin;
          const int32_t* const at = index + start;
          T* const to = dw + start;
          PLEAT_INDEPENDENT_ITERATIONS
          for (int64_t p = 0; p < n; ++p) to[p] += from[p] * plane[at[p]];
        }
      }
    }
  });
}

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  constexpr int64_t width = 16;
  T sums[width] = {};
  int64_t c = 0;
  for (; c + width <= n; c += width)
    for (int64_t k = 0; k < width; ++k) sums[k] += a[c + k] * b[c + k];
  T sum = 0;
  for (; c < n; ++c) sum += a[c] * b[c];
  for (const T part : sums) sum += part;
  return sum;
}

template <class T>
void weight_rows(const TapSizes& s, const T* dy, const T* x, const int32_t* index, T* dw) {
  const int64_t grain = 1 + 16384 / std::max<int64_t>(1, s.channels * s.taps);
  parallel_for(0, s.maps * s.points, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t m = i / s.points, p = i % s.points;
      const T* const image = x + s.image[static_cast<std::size_t>(m)] * s.pixels * s.channels;
      for (int64_t t = 0; t < s.taps; ++t) {
        const int64_t at = (m * s.taps + t) * s.points + p;
        dw[at] = dot(dy + i * s.channels, image + index[at] * s.channels, s.channels);
      }
    }
  });
}

}  // namespace tap_loops
}  // namespace pleat::ops
