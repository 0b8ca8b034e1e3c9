#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "pleat/core/format.h"
#include "pleat/core/transpose.h"
#include "pleat/ops/conv/depthwise.h"
#include "pleat/ops/conv/direct_weight.h"
#include "pleat/ops/conv/gather.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/register_tile.h"

/// Direct convolution in registers: a tile of 8 pixels times one or two vectors of result channels is summed
/// over all taps and channels before it is written once. Nothing is unfolded; a band of source rows is copied
/// with its padding into the second-level cache, and the taps read it from there. (Zhang, Franchetti, Low:
/// "High performance zero-memory overhead direct convolutions", ICML 2018, has the loop order; the tile is
/// chosen for 32 vector registers.)

namespace pleat::ops {
namespace {

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

/// Elements set to 0 at a time.
constexpr int64_t fill_grain = 1 << 16;

/// The kernel's taps in the order in which a gather reads them.
std::vector<int64_t> kernel_taps(const Gather& gather, const Spatial& kernel) {
  std::vector<int64_t> taps;
  for (const GatherDim::Tap& t : gather.dims[0].taps)
    for (const GatherDim::Tap& r : gather.dims[1].taps)
      for (const GatherDim::Tap& s : gather.dims[2].taps)
        taps.push_back((t.kernel * kernel[1] + r.kernel) * kernel[2] + s.kernel);
  return taps;
}

/// The weights as a gather meets them, and the distances of their elements.
template <class T>
struct Weights {
  const T* data;
  std::vector<int64_t> taps;  ///< of the kernel, in the gather's order
  int64_t tap;
  int64_t source;  ///< channels; this distance or the next is 1
  int64_t result;
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
    block = std::min(channels, ceil_div(share, lanes<T>) * lanes<T>);
    const bool crowded = block * static_cast<int64_t>(sizeof(T)) % crowded_bytes == 0;
    stride = crowded ? block + lanes<T> : block;
  }
  int64_t count() const { return ceil_div(channels, block); }
  int64_t first(int64_t i) const { return i * block; }
  int64_t size(int64_t i) const { return std::min(block, channels - first(i)); }
  GatherBand band(const Gather& gather) const { return {gather, band_elements, stride}; }
};

/// Weights as [panel][block of source channels][tap][channel of the block][channel of the panel], zeros for
/// result channels that are not there.
template <class T>
std::shared_ptr<std::byte> pack_panels(const Gather& gather, const Weights<T>& weights,
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

/// f(0), f(1), ...: with constants, without which an array of vectors would not stay in registers.
template <class F, int... i>
[[gnu::always_inline]] inline void for_constants(std::integer_sequence<int, i...>, const F& f) {
  (f(std::integral_constant<int, i>()), ...);
}
template <int count, class F>
[[gnu::always_inline]] inline void for_constants(const F& f) {
  for_constants(std::make_integer_sequence<int, count>(), f);
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
        std::copy_n(y + rows[i] * channels + first, valid, sums + static_cast<int64_t>(i) * width);
      run({buffer, bases, sums, in_turn, width}, group.runs, weights, start);
      for (std::size_t i = 0; i < count; ++i)
        std::copy_n(sums + static_cast<int64_t>(i) * width, valid, y + rows[i] * channels + first);
    }
}

/// The result's rows from those of the source by tiles of pixels and result channels.
template <class T>
void multiply_panels(const Gather& gather, const T* source, const Weights<T>& weights, const T* bias, T* y) {
  const ChannelBlocks<T> blocks(gather);
  const GatherBand band = blocks.band(gather);
  const Panels<T> panels{gather.result_channels};
  const auto packed = pack_panels(gather, weights, blocks);
  // A group of panels a task: two at least where one is little work beside filling the buffer.
  const int64_t least = gather.taps() > 1 ? 1 : 2;
  const int64_t groups = std::min(ceil_div(panels.count(), least), ceil_div(tasks_wanted, band.count()));
  parallel_chunks(band.count() * groups, [&](int64_t task) {
    const auto memory = scratch<T>(band.buffer_elements());
    T* buffer = elements_of<T>(memory);
    thread_local GatherPixels pixels;
    const int64_t group = task % groups;
    for (int64_t b = 0; b < blocks.count(); ++b) {
      band.fill(task / groups, source, blocks.first(b), blocks.size(b), buffer, pixels);
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

/// For few result channels, vectors lie along the source's channels instead: one sum for each pair of a pixel
/// and a result channel, whose lanes are added at the end.
template <class T>
struct FewChannels {
  static constexpr int64_t most = 8;

  int64_t sums;  ///< of a pixel: a power of two of them fill the tile
  int64_t read;  ///< elements of a source pixel, in whole vectors

  explicit FewChannels(const Gather& gather)
      : sums(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(gather.result_channels)))),
        read(ceil_div(gather.source_channels, lanes<T>) * lanes<T>) {}

  /// Whether it takes less work than a panel: adding the lanes counts as much as three products.
  static bool suits(const Gather& gather) {
    const FewChannels few(gather);
    return gather.result_channels <= most &&
           few.sums * (few.read / lanes<T> * gather.taps() + 3) < gather.depth();
  }
  GatherBand band(const Gather& gather) const { return {gather, band_elements, read}; }
};

/// Weights as [depth in vectors][sum][lane], zeros for channels that are not there.
template <class T>
std::shared_ptr<std::byte> pack_rows(const Gather& gather, const Weights<T>& weights,
                                     const FewChannels<T>& few) {
  auto memory = scratch<T>(gather.taps() * few.read * few.sums);
  T* out = elements_of<T>(memory);
  for (const int64_t tap : weights.taps)
    for (int64_t first = 0; first < few.read; first += lanes<T>)
      for (int64_t k = 0; k < few.sums; ++k)
        for (int64_t c = first; c < first + lanes<T>; ++c)
          *out++ = c < gather.source_channels && k < gather.result_channels
                       ? weights.data[tap * weights.tap + c * weights.source + k * weights.result]
                       : T(0);
  return memory;
}

/// Lane i of the result is the sum of vector i's lanes.
template <class T, std::size_t... lane>
Vector<T> add_lanes(Vector<T>* vectors, std::index_sequence<lane...>) {
  constexpr std::size_t n = sizeof...(lane);
  // Each step adds the halves of two vectors, to lie in turns: it leaves half as many vectors.
  for (std::size_t count = n; count > 1; count /= 2)
    for (std::size_t i = 0; i < count / 2; ++i) {
      const Vector<T> a = vectors[i], b = vectors[i + count / 2];
      vectors[i] = __builtin_shufflevector(a, b, (lane / 2 + lane % 2 * n)...) +
                   __builtin_shufflevector(a, b, (n / 2 + lane / 2 + lane % 2 * n)...);
    }
  return vectors[0];
}

/// All pixels of a piece times the rows of weights, of which `tap` elements are a tap's.
template <class T, int sums>
void multiply_rows(const GatherPixels& pixels, const T* buffer, const T* weights, int64_t tap, const T* bias,
                   int64_t channels, T* y) {
  using V = Vector<T>;
  constexpr int tile = static_cast<int>(lanes<T>) / sums;
  T start[sums] = {};
  if (bias != nullptr) std::copy_n(bias, channels, start);
  std::size_t p = 0;
  for (const GatherPixels::Group& group : pixels.groups)
    while (p < group.end) {
      const std::size_t count = std::min<std::size_t>(tile, group.end - p);
      const T* from[tile];
      for (std::size_t i = 0; i < tile; ++i) from[i] = buffer + pixels.bases[p + std::min(i, count - 1)];
      V total[tile * sums] = {};
      for (const GatherRun& run : group.runs) {
        const T* w = weights + run.tap * tap;
        for (int64_t c = run.offset; c < run.offset + run.length; c += lanes<T>, w += sums * lanes<T>)
          for_constants<tile>([&](auto i) {
            const V x = *reinterpret_cast<const V*>(from[i] + c);
            for_constants<sums>(
                [&](auto k) { total[i * sums + k] += x * *reinterpret_cast<const V*>(w + k * lanes<T>); });
          });
      }
      T added[lanes<T>];
      *reinterpret_cast<V*>(added) = add_lanes<T>(total, std::make_index_sequence<lanes<T>>());
      for (std::size_t i = 0; i < count; ++i)
        for (int64_t k = 0; k < channels; ++k)
          y[pixels.rows[p + i] * channels + k] = start[k] + added[static_cast<int64_t>(i) * sums + k];
      p += count;
    }
}

template <class T>
void multiply_few(const Gather& gather, const T* source, const Weights<T>& weights, const T* bias, T* y) {
  const FewChannels<T> few(gather);
  const GatherBand band = few.band(gather);
  const auto packed = pack_rows(gather, weights, few);
  const auto run = few.sums == 1   ? multiply_rows<T, 1>
                   : few.sums == 2 ? multiply_rows<T, 2>
                   : few.sums == 4 ? multiply_rows<T, 4>
                                   : multiply_rows<T, 8>;
  parallel_chunks(band.count(), [&](int64_t piece) {
    const auto memory = scratch<T>(band.buffer_elements());
    T* buffer = elements_of<T>(memory);
    thread_local GatherPixels pixels;
    band.fill(piece, source, 0, gather.source_channels, buffer, pixels);
    run(pixels, buffer, elements_of<T>(packed), few.read * few.sums, bias, gather.result_channels, y);
  });
}

template <class T>
void multiply(const Gather& gather, const T* source, const Weights<T>& weights, const T* bias, T* y) {
  const auto run = FewChannels<T>::suits(gather) ? multiply_few<T> : multiply_panels<T>;
  run(gather, source, weights, bias, y);
}

/// Bytes that `multiply` needs.
template <class T>
int64_t multiply_workspace(const Gather& gather) {
  const FewChannels<T> few(gather);
  const bool suits = FewChannels<T>::suits(gather);
  const GatherBand band = suits ? few.band(gather) : ChannelBlocks<T>(gather).band(gather);
  const int64_t weights = suits ? gather.taps() * few.read * few.sums
                                : Panels<T>{gather.result_channels}.padded() * gather.depth();
  return (num_threads() * band.buffer_elements() + weights) * static_cast<int64_t>(sizeof(T));
}

/// w [C, taps] as [taps in the gather's order][C].
template <class T>
std::shared_ptr<std::byte> depthwise_weights(const ConvProblem& p, const Gather& gather, const T* w) {
  const std::vector<int64_t> taps = kernel_taps(gather, p.kernel);
  auto memory = scratch<T>(static_cast<int64_t>(taps.size()) * p.out_channels);
  T* out = elements_of<T>(memory);
  for (const int64_t tap : taps)
    for (int64_t c = 0; c < p.out_channels; ++c) *out++ = w[c * p.taps() + tap];
  return memory;
}

template <class T>
int64_t depthwise_workspace(const Gather& gather) {
  const GatherBand band(gather, band_elements);
  return (num_threads() * band.buffer_elements() + gather.taps() * gather.result_channels) *
         static_cast<int64_t>(sizeof(T));
}

class DirectConv : public ConvImplementation {
 public:
  std::string_view name() const override { return "direct"; }

  bool runs_on(Device device) const override { return device.is_cpu(); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    if (!problem.device.is_cpu()) return "it runs on the CPU";
    const bool able = problem.groups == 1 || is_depthwise(problem);
    return able ? std::string()
                : std::string("it needs groups = 1, or as many groups as input and output channels");
  }
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::rows; }

  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    if (p.batch == 0) return 0;
    if (pass == ConvPass::backward_weight) return direct_weight_workspace(p);
    int64_t most = 0;
    by_type(p, [&]<class T>(Type<T>) {
      const auto gathers =
          pass == ConvPass::forward ? std::vector{forward_gather(p)} : backward_input_gathers(p);
      for (const Gather& gather : gathers) {
        if (gather.taps() == 0) continue;
        const int64_t bytes =
            is_depthwise(p) ? depthwise_workspace<T>(gather) : multiply_workspace<T>(gather);
        most = std::max(most, bytes);
      }
    });
    return most;
  }

  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    by_type(p, [&]<class T>(Type<T>) {
      const Gather gather = forward_gather(p);
      const T* weights = w.data<T>();
      const T* start = bias.defined() ? bias.data<T>() : nullptr;
      if (is_depthwise(p)) {
        const auto by_tap = depthwise_weights(p, gather, weights);
        return depthwise_gather(gather, x.data<T>(), elements_of<T>(by_tap), start, y.data<T>());
      }
      multiply(gather, x.data<T>(), {weights, kernel_taps(gather, p.kernel), p.in_channels, 1, p.depth()},
               start, y.data<T>());
    });
  }

  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    by_type(p, [&]<class T>(Type<T>) {
      const T* weights = w.data<T>();
      const auto gathers = backward_input_gathers(p);
      const auto is_empty = [](const Gather& gather) { return gather.taps() == 0; };
      if (std::any_of(gathers.begin(), gathers.end(), is_empty))
        parallel_for(0, dx.numel(), fill_grain, [to = dx.data<T>()](int64_t begin, int64_t end) {
          std::fill(to + begin, to + end, T(0));
        });
      for (const Gather& gather : gathers) {
        if (is_empty(gather)) continue;
        if (is_depthwise(p)) {
          const auto by_tap = depthwise_weights(p, gather, weights);
          depthwise_gather<T>(gather, dy.data<T>(), elements_of<T>(by_tap), nullptr, dx.data<T>());
        } else {
          multiply<T>(gather, dy.data<T>(),
                      {weights, kernel_taps(gather, p.kernel), p.in_channels, p.depth(), 1}, nullptr,
                      dx.data<T>());
        }
      }
    });
  }

  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    by_type(p, [&]<class T>(Type<T>) { direct_backward_weight(p, dy.data<T>(), x.data<T>(), dw.data<T>()); });
  }
};

}  // namespace

const ConvImplementation& direct_conv() {
  static const DirectConv implementation;
  return implementation;
}

}  // namespace pleat::ops
