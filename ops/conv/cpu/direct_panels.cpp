#include <algorithm>
#include <cstring>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/nhwc.h"

/// Direct convolution in registers: a tile of 8 pixels times one or two vectors of result channels is summed
/// over all taps and channels before it is written once. Nothing is unfolded; a band of source rows is copied
/// with its padding into the second-level cache, and the taps read it from there. (Zhang, Franchetti, Low:
/// "High performance zero-memory overhead direct convolutions", ICML 2018, has the loop order; the tile is
/// chosen for 32 vector registers.)

namespace pleat::ops {
namespace {

using simd::for_constants;
using simd::lanes;
using simd::Vector;

constexpr int pixel_tile = 8;
/// Source channels that a task takes at a time: so many that their weights for one panel, and the windows of
/// enough pixels, stay in the second-level cache.
constexpr int64_t block_depth = 2048;
constexpr int64_t block_channels = 512;
/// Pixels at such a distance have their elements in a few sets of the first-level cache, which those of a
/// tile would fill.
constexpr int64_t crowded_bytes = 1024;
/// Tasks for many threads, in layers of few pixels.
constexpr int64_t tasks_wanted = 16;

/// Result channels in panels of two vectors, the last of one when that suffices.
template <class T>
struct Panels {
  int64_t channels;

  int64_t padded() const { return round_up(channels, lanes<T>); }
  int64_t count() const { return ceil_div(padded(), 2 * lanes<T>); }
  int64_t first(int64_t panel) const { return panel * 2 * lanes<T>; }
  int vectors(int64_t panel) const { return padded() - first(panel) > lanes<T> ? 2 : 1; }
};

/// The source's channels in blocks of about equal size.
template <class T>
struct ChannelBlocks {
  int64_t channels;
  int64_t block;
  int64_t stride;  ///< of pixels in a buffer

  explicit ChannelBlocks(const Gather& gather) : channels(gather.source_channels) {
    const int64_t most = std::min(block_channels, std::max(block_depth / gather.taps(), lanes<T>));
    const int64_t share = ceil_div(channels, ceil_div(channels, most));
    block = std::min(channels, round_up(share, lanes<T>));
    const bool crowded = block * static_cast<int64_t>(sizeof(T)) % crowded_bytes == 0;
    stride = crowded ? block + lanes<T> : block;
  }
  int64_t count() const { return ceil_div(channels, block); }
  int64_t first(int64_t i) const { return i * block; }
  int64_t size(int64_t i) const { return std::min(block, channels - first(i)); }
  GatherPieces pieces(const Gather& gather) const {
    return GatherPieces::for_results(gather, buffer_elements_wanted, stride);
  }
};

/// Weights as [panel][block of source channels][tap][channel of the block][channel of the panel], zeros for
/// result channels that are not there.
template <class T>
std::shared_ptr<std::byte> pack_panels(const Gather& gather, const GatherWeights<T>& weights,
                                       const ChannelBlocks<T>& blocks) {
  const Panels<T> panels{gather.result_channels};
  const auto taps = static_cast<int64_t>(weights.taps.size());
  auto memory = scratch<T>(panels.padded() * gather.depth());
  // `count` source channels of a block from `first` on, for one tap and panel.
  const auto pack = [&, out = elements_of<T>(memory)](int64_t first, int64_t count, int64_t tap,
                                                      int64_t panel) {
    const int64_t block = first / blocks.block;
    const int64_t width = panels.vectors(panel) * lanes<T>;
    const int64_t begin = panels.first(panel);
    const int64_t valid = std::min(width, gather.result_channels - begin);
    const T* from = weights.data + weights.taps[static_cast<std::size_t>(tap)] * weights.tap +
                    begin * weights.result + first * weights.source;
    T* to = out + begin * gather.depth() +
            (blocks.first(block) * taps + tap * blocks.size(block) + first - blocks.first(block)) * width;
    if (weights.source == 1)
      transpose_matrix(to, width, from, weights.result, valid, count);
    else
      for (int64_t c = 0; c < count; ++c) std::copy_n(from + c * weights.source, valid, to + c * width);
    if (valid < width)
      for (int64_t c = 0; c < count; ++c) std::fill_n(to + c * width + valid, width - valid, T(0));
  };
  // What is read at a time lies side by side: source channels, else result channels.
  if (weights.source == 1)
    parallel_chunks(panels.count() * taps, [&](int64_t chunk) {
      for (int64_t b = 0; b < blocks.count(); ++b)
        pack(blocks.first(b), blocks.size(b), chunk % taps, chunk / taps);
    });
  else
    parallel_chunks(ceil_div(gather.source_channels, lanes<T>), [&](int64_t chunk) {
      const int64_t first = chunk * lanes<T>;
      const int64_t count = std::min(lanes<T>, gather.source_channels - first);
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t panel = 0; panel < panels.count(); ++panel) pack(first, count, tap, panel);
    });
  return memory;
}

/// The pixels of a tile: bases in the buffer, and rows of `channels` elements in the result.
template <class T>
struct TilePixels {
  const T* buffer;
  const int64_t* bases;
  T* y;
  const int64_t* rows;
  int64_t channels;
};

/// Packed weights of one panel.
template <class T>
struct PanelWeights {
  const T* data;
  int64_t tap;  ///< elements of a tap
};

/// y[row] = start + the products of some pixels with one panel of weights; without `start`, adds them to y.
template <class T, int vectors, int pixel_count>
void sum_tile(const TilePixels<T>& tile, const std::vector<GatherRun>& runs, const PanelWeights<T>& panel,
              const T* start) {
  using V = Vector<T>;
  V total[pixel_count][vectors];
  const T* pixels[pixel_count];
  for_constants<pixel_count>([&](auto i) {
    pixels[i] = tile.buffer + tile.bases[i];
    const T* from = start != nullptr ? start : tile.y + tile.rows[i] * tile.channels;
    for_constants<vectors>([&](auto v) { total[i][v] = *reinterpret_cast<const V*>(from + v * lanes<T>); });
  });
  for (const GatherRun& run : runs) {
    const T* weights = panel.data + run.tap * panel.tap;
    for (int64_t c = run.offset; c < run.offset + run.length; ++c, weights += vectors * lanes<T>) {
      V w[vectors];
      for_constants<vectors>([&](auto v) { w[v] = *reinterpret_cast<const V*>(weights + v * lanes<T>); });
      for_constants<pixel_count>([&](auto i) {
        const V x = pixels[i][c] - V{};  // the element in every lane
        for_constants<vectors>([&](auto v) { total[i][v] += x * w[v]; });
      });
    }
  }
  for_constants<pixel_count>([&](auto i) {
    T* to = tile.y + tile.rows[i] * tile.channels;
    for_constants<vectors>([&](auto v) { *reinterpret_cast<V*>(to + v * lanes<T>) = total[i][v]; });
  });
}

/// sum_tile for 1 ... pixel_tile pixels.
template <class T, int vectors, int... smaller>
auto tile_function(std::size_t pixels, std::integer_sequence<int, smaller...>) {
  static constexpr decltype(&sum_tile<T, vectors, 1>) functions[] = {&sum_tile<T, vectors, smaller + 1>...};
  return functions[pixels - 1];
}

/// Copies less than a panel's width: by sixteen bytes, the last of which may be copied twice, else one by
/// one. Both cost less than a call.
template <class T>
void copy_part(const T* from, int64_t count, T* to) {
  constexpr int64_t piece = 16 / static_cast<int64_t>(sizeof(T));
  if (count < piece) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i < count; i += piece) {
    const int64_t at = std::min(i, count - piece);
    std::memcpy(to + at, from + at, 16);
  }
}

/// All pixels of a piece times a block of one panel's weights; `y` are the result's elements. Begins with the
/// bias, or goes on with the sums in `y`.
template <class T, int vectors>
void multiply_panel(const GatherPixels& pixels, const T* buffer, const PanelWeights<T>& weights,
                    const T* bias, bool go_on, int64_t first, int64_t channels, T* y) {
  constexpr int64_t width = vectors * lanes<T>;
  const int64_t valid = std::min(width, channels - first);
  alignas(64) T begin[width] = {};
  if (bias != nullptr) std::copy_n(bias + first, valid, begin);
  const T* start = go_on ? nullptr : begin;
  std::size_t p = 0;
  for (const GatherPixels::Group& group : pixels.groups)
    while (p < group.end) {
      const std::size_t count = std::min<std::size_t>(pixel_tile, group.end - p);
      const auto run = tile_function<T, vectors>(count, std::make_integer_sequence<int, pixel_tile>());
      const int64_t* bases = &pixels.bases[p];
      const int64_t* rows = &pixels.rows[p];
      p += count;
      if (valid == width) {
        run({buffer, bases, y + first, rows, channels}, group.runs, weights, start);
        continue;
      }
      // Vectors must not write beyond a row of y.
      static constexpr int64_t in_turn[pixel_tile] = {0, 1, 2, 3, 4, 5, 6, 7};
      alignas(64) T sums[pixel_tile * width];
      for (std::size_t i = 0; go_on && i < count; ++i)
        copy_part(y + rows[i] * channels + first, valid, sums + static_cast<int64_t>(i) * width);
      run({buffer, bases, sums, in_turn, width}, group.runs, weights, start);
      for (std::size_t i = 0; i < count; ++i)
        copy_part(sums + static_cast<int64_t>(i) * width, valid, y + rows[i] * channels + first);
    }
}

}  // namespace

template <class T>
void multiply_panels(const Gather& gather, const T* source, const GatherWeights<T>& weights, const T* bias,
                     T* y) {
  const ChannelBlocks<T> blocks(gather);
  const GatherPieces pieces = blocks.pieces(gather);
  const Panels<T> panels{gather.result_channels};
  const auto packed = pack_panels(gather, weights, blocks);
  // A group of panels a task: two at least where one is little work beside filling the buffer.
  const int64_t least = gather.taps() > 1 ? 1 : 2;
  const int64_t groups = std::min(ceil_div(panels.count(), least), ceil_div(tasks_wanted, pieces.count()));
  parallel_chunks(pieces.count() * groups, [&](int64_t task) {
    const auto memory = scratch<T>(pieces.buffer_elements());
    T* buffer = elements_of<T>(memory);
    thread_local GatherPixels pixels;
    const int64_t group = task % groups;
    for (int64_t b = 0; b < blocks.count(); ++b) {
      pieces.fill(task / groups, source, blocks.first(b), blocks.size(b), buffer, pixels);
      for (int64_t i = panels.count() * group / groups; i < panels.count() * (group + 1) / groups; ++i) {
        const int64_t first = panels.first(i);
        const int64_t width = panels.vectors(i) * lanes<T>;
        const PanelWeights<T> of_block{
            elements_of<T>(packed) + first * gather.depth() + blocks.first(b) * gather.taps() * width,
            blocks.size(b) * width};
        const auto run = panels.vectors(i) == 2 ? multiply_panel<T, 2> : multiply_panel<T, 1>;
        run(pixels, buffer, of_block, bias, b > 0, first, gather.result_channels, y);
      }
    }
  });
}

template <class T>
int64_t panels_workspace(const Gather& gather) {
  const int64_t weights = Panels<T>{gather.result_channels}.padded() * gather.depth();
  const int64_t buffers = num_threads() * ChannelBlocks<T>(gather).pieces(gather).buffer_elements();
  return (buffers + weights) * static_cast<int64_t>(sizeof(T));
}

template void multiply_panels(const Gather&, const float*, const GatherWeights<float>&, const float*, float*);
template void multiply_panels(const Gather&, const double*, const GatherWeights<double>&, const double*,
                              double*);
template int64_t panels_workspace<float>(const Gather&);
template int64_t panels_workspace<double>(const Gather&);

}  // namespace pleat::ops
