#include <algorithm>
#include <array>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/nhwc.h"

/// Direct convolution in registers: a tile of some pixels times one or two vectors of result channels is
/// summed over all taps and channels before it is written once. Nothing is unfolded; a band of source rows is
/// copied with its padding into the second-level cache, and the taps read it from there. (Zhang, Franchetti,
/// Low: "High performance zero-memory overhead direct convolutions", ICML 2018, has the loop order; the tile
/// is chosen for the vector registers, 8 pixels of 32.)
///
/// 1x1 convolutions read the source where it lies. Each element is read from memory but once, so the next
/// tile is fetched meanwhile, and so are the rows that it will write. One thread of a Zen 4, float32, of the
/// FMA ceiling, products on padding not counted: 91 to 96 % for 3x3 of 64 to 512 channels, 78 to 93 % for 1x1
/// of 64 to 1024; on a busy machine 77 to 93 % where one side has 16 to 24 channels and operands lie in
/// memory, about half of that without fetching.

namespace pleat::ops {
namespace {

using simd::for_constants;
using simd::lanes;
using simd::Vector;

constexpr int pixel_tile = simd::tile_rows;
/// Source channels that a task takes at a time: so many that their weights for one panel, and the windows of
/// enough pixels, stay in the second-level cache; of many taps two vectors at least.
constexpr int64_t block_depth = 1024;
constexpr int64_t block_channels = 512;

/// Of a page of memory.
template <class T>
constexpr int64_t page_elements = 4096 / static_cast<int64_t>(sizeof(T));

/// Pixels of a piece that is read in place, at least: nothing is done for a piece but the products.
constexpr int64_t fewest_in_place = 64;

/// A panel of result channels: its first one, and the vectors that hold it.
struct Panel {
  int64_t first;
  int64_t width;
  int vectors;
  int bytes;  ///< of a vector
};

/// Result channels in panels of two vectors, what is left in one, or in narrower ones, so that few lanes are
/// idle: many processors compute twice as many vectors of half the size in the same time.
template <class T>
struct Panels {
  int64_t channels;  ///< of a group
  std::vector<Panel> list;

  explicit Panels(int64_t channels_) : channels(channels_) {
    for (int64_t rest = channels; rest > 0; rest = channels - padded()) {
      const bool two = 2 * rest > 3 * lanes<T>;
      int bytes = simd::register_bytes;
      while (bytes > 16 && 2 * rest * static_cast<int64_t>(sizeof(T)) <= bytes) bytes /= 2;
      list.push_back({padded(), (two ? 2 : 1) * bytes / static_cast<int64_t>(sizeof(T)), two ? 2 : 1, bytes});
    }
  }
  int64_t count() const { return static_cast<int64_t>(list.size()); }
  const Panel& operator[](int64_t i) const { return list[static_cast<std::size_t>(i)]; }
  int64_t padded() const { return list.empty() ? 0 : list.back().first + list.back().width; }
  int64_t valid(const Panel& panel) const { return std::min(panel.width, channels - panel.first); }
};

/// The source's channels in blocks of about equal size.
template <class T>
struct ChannelBlocks {
  int64_t channels;
  int64_t block;
  bool in_place;   ///< whether pixels are read where they lie: single taps, which would read a copy once
  int64_t stride;  ///< of pixels

  explicit ChannelBlocks(const Gather& gather) : channels(gather.source_channels) {
    const int64_t most = std::min(block_channels, std::max(block_depth / gather.taps(), 2 * lanes<T>));
    const int64_t share = ceil_div(channels, ceil_div(channels, most));
    block = std::min(channels, round_up(share, lanes<T>));
    in_place = gather.taps() == 1 && !is_crowded<T>(gather.source_pitch());
    stride = in_place ? gather.source_pitch() : is_crowded<T>(block) ? block + line_elements<T> : block;
  }
  int64_t count() const { return ceil_div(channels, block); }
  int64_t first(int64_t i) const { return i * block; }
  int64_t size(int64_t i) const { return std::min(block, channels - first(i)); }
  GatherPieces pieces(const Gather& gather) const {
    if (!in_place) return GatherPieces::for_results(gather, buffer_elements_wanted, stride);
    return GatherPieces::in_place(gather,
                                  gather.pixels_wanted(buffer_elements_wanted / block, fewest_in_place));
  }
};

/// The weights of one tap, of `count` source channels from `first` on and of one panel of a group, as
/// [channel][channel of the panel], zeros for result channels that are not there.
template <class T>
void pack_part(const GatherWeights<T>& weights, const Panels<T>& panels, int64_t group, const Panel& panel,
               int64_t tap, int64_t first, int64_t count, T* to) {
  const int64_t width = panel.width, valid = panels.valid(panel);
  const T* from = weights.data + group * weights.group +
                  weights.taps[static_cast<std::size_t>(tap)] * weights.tap + panel.first * weights.result +
                  first * weights.source;
  if (weights.source == 1)
    transpose_matrix(to, width, from, weights.result, valid, count);
  else
    for (int64_t c = 0; c < count; ++c) std::copy_n(from + c * weights.source, valid, to + c * width);
  if (valid < width)
    for (int64_t c = 0; c < count; ++c) std::fill_n(to + c * width + valid, width - valid, T(0));
}

/// All weights as [group][panel][block of source channels][tap][channel of the block][channel of the panel].
template <class T>
std::shared_ptr<std::byte> pack_panels(const Gather& gather, const GatherWeights<T>& weights,
                                       const ChannelBlocks<T>& blocks) {
  const Panels<T> panels(gather.result_channels);
  const auto taps = static_cast<int64_t>(weights.taps.size());
  const int64_t elements = gather.groups * panels.padded() * gather.depth();
  return weights.packed(elements, [&](T* all) {
    const auto pack = [&](int64_t first, int64_t count, int64_t tap, int64_t index) {
      const int64_t group = index / panels.count(), block = first / blocks.block;
      const Panel& panel = panels[index % panels.count()];
      T* const out = all + (group * panels.padded() + panel.first) * gather.depth();
      pack_part(weights, panels, group, panel, tap, first, count,
                out + (blocks.first(block) * taps + tap * blocks.size(block) + first - blocks.first(block)) *
                          panel.width);
    };
    // What is read at a time lies side by side: source channels, else result channels.
    const int64_t all_panels = gather.groups * panels.count();
    if (weights.source == 1)
      parallel_chunks(all_panels * taps, [&](int64_t chunk) {
        for (int64_t b = 0; b < blocks.count(); ++b)
          pack(blocks.first(b), blocks.size(b), chunk % taps, chunk / taps);
      });
    else
      parallel_chunks(ceil_div(gather.source_channels, lanes<T>), [&](int64_t chunk) {
        const int64_t first = chunk * lanes<T>;
        const int64_t count = std::min(lanes<T>, gather.source_channels - first);
        for (int64_t tap = 0; tap < taps; ++tap)
          for (int64_t panel = 0; panel < all_panels; ++panel) pack(first, count, tap, panel);
      });
  });
}

/// Memory that will be read soon, of which each product of a tile brings the next `step` elements nearer.
template <class T>
struct ReadAhead {
  const T* at;
  int64_t step;  ///< 0: nothing
};

/// The pixels of a tile: bases in the buffer, and rows of the result, `pitch` elements apart.
template <class T>
struct TilePixels {
  const T* buffer;
  const int64_t* bases;
  T* y;
  const int64_t* rows;
  int64_t pitch;
  ReadAhead<T> source_ahead;
  int64_t rows_ahead;     ///< from each row to one that will be written soon
  int64_t weights_ahead;  ///< elements from those that are read to those that are fetched; 0: none
};

/// Packed weights of one panel.
template <class T>
struct PanelWeights {
  const T* data;
  int64_t tap;  ///< elements of a tap
};

/// y[row] = start + the products of some pixels with one panel of weights; without `start`, adds them to y.
template <class T, int bytes, int vectors, int pixel_count>
void sum_tile(const TilePixels<T>& tile, const std::vector<GatherRun>& runs, const PanelWeights<T>& panel,
              const T* start) {
  using V = Vector<T, bytes>;
  constexpr int64_t width = bytes / static_cast<int64_t>(sizeof(T));
  // Few sums would wait for each other: they are made in parts.
  constexpr int parts = pixel_count * vectors >= 4 ? 1 : 4 / (pixel_count * vectors);
  V total[pixel_count][vectors];
  V more[parts][pixel_count][vectors] = {};
  const T* pixels[pixel_count];
  for_constants<pixel_count>([&](auto i) {
    pixels[i] = tile.buffer + tile.bases[i];
    const T* from = start != nullptr ? start : tile.y + tile.rows[i] * tile.pitch;
    for_constants<vectors>([&](auto v) {
      total[i][v] = simd::load<bytes>(from + v * width);
      __builtin_prefetch(tile.y + (tile.rows[i] + tile.rows_ahead) * tile.pitch + v * width, 1);
    });
  });
  const T* ahead = tile.source_ahead.at;
  for (const GatherRun& run : runs) {
    const T* weights = panel.data + run.tap * panel.tap;
    int64_t c = run.offset;
    const int64_t end = run.offset + run.length;
    const auto add_product = [&](V(&sums)[pixel_count][vectors]) __attribute__((always_inline)) {
      __builtin_prefetch(ahead);
      ahead += tile.source_ahead.step;
      V w[vectors];
      for_constants<vectors>([&](auto v) {
        __builtin_prefetch(weights + tile.weights_ahead + v * width);
        w[v] = simd::load<bytes>(weights + v * width);
      });
      for_constants<pixel_count>([&](auto i) {
        const V x = pixels[i][c] - V{};  // the element in every lane
        for_constants<vectors>([&](auto v) { sums[i][v] += x * w[v]; });
      });
      ++c;
      weights += vectors * width;
    };
    if constexpr (parts > 1)
      while (c + parts <= end) for_constants<parts>([&](auto part) { add_product(more[part]); });
    while (c < end) add_product(total);
  }
  if constexpr (parts > 1)
    for_constants<parts>([&](auto part) {
      for_constants<pixel_count>(
          [&](auto i) { for_constants<vectors>([&](auto v) { total[i][v] += more[part][i][v]; }); });
    });
  for_constants<pixel_count>([&](auto i) {
    T* to = tile.y + tile.rows[i] * tile.pitch;
    for_constants<vectors>([&](auto v) { simd::store<bytes>(to + v * width, total[i][v]); });
  });
}

/// sum_tile for 1 ... pixel_tile pixels.
template <class T, int bytes, int vectors>
constexpr auto sum_tile_of = []<int... i>(std::integer_sequence<int, i...>) {
  return std::array{&sum_tile<T, bytes, vectors, i + 1>...};
}
(std::make_integer_sequence<int, pixel_tile>());

/// All pixels of a piece times a block of one panel's weights; `y` are the result's rows from the panel's
/// first channel on, of which `valid` are its own. Begins with the bias, or goes on with the sums in `y`.
/// Where pixels are read for the first time, `read_ahead` is the number of products of one; else 0. Complete
/// rows, of the channels from `channel` on, are of part `part`.
template <class T, int bytes, int vectors>
void multiply_panel(const GatherPixels& pixels, const T* buffer, const PanelWeights<T>& weights,
                    const T* bias, bool go_on, int64_t valid, int64_t pitch, int64_t read_ahead, T* y,
                    const Completion<T>& completion, int64_t part, int64_t channel) {
  constexpr int64_t width = vectors * bytes / static_cast<int64_t>(sizeof(T));
  alignas(64) T begin[width] = {};
  if (bias != nullptr) std::copy_n(bias, valid, begin);
  const T* start = go_on ? nullptr : begin;
  std::size_t p = 0, completed = 0;
  const auto complete = [&] {
    if (!completion || (p - completed < rows_completed && p < pixels.rows.size())) return;
    const auto more = static_cast<int64_t>(p - completed);
    completion.add_sums(part, channel, valid, {y, pitch, false}, &pixels.rows[completed], pitch, more);
    completion.finish_rows(channel, valid, {y, pitch, false}, &pixels.rows[completed], pitch, more);
    completed = p;
  };
  for (const GatherPixels::Group& group : pixels.groups)
    while (p < group.end) {
      const std::size_t count = std::min<std::size_t>(pixel_tile, group.end - p);
      const auto run = sum_tile_of<T, bytes, vectors>[count - 1];
      const int64_t* bases = &pixels.bases[p];
      const int64_t* rows = &pixels.rows[p];
      ReadAhead<T> ahead{buffer, 0};
      int64_t rows_ahead = 0;
      if (p + pixel_tile < pixels.bases.size()) {
        const int64_t distance = bases[pixel_tile] - bases[0];
        if (read_ahead > 0 && distance > 0 && distance <= line_elements<T> * read_ahead)
          ahead = {buffer + bases[pixel_tile], distance / read_ahead};
        rows_ahead = rows[pixel_tile] - rows[0];
      }
      // The first pixels read the weights from memory: for few pixels that takes as long as the products.
      const int64_t weights_ahead = p == 0 ? page_elements<T> : 0;
      p += count;
      if (valid == width) {
        run({buffer, bases, y, rows, pitch, ahead, rows_ahead, weights_ahead}, group.runs, weights, start);
        complete();
        continue;
      }
      // Vectors must not write beyond a row of y.
      static constexpr int64_t in_turn[] = {0, 1, 2, 3, 4, 5, 6, 7};
      static_assert(std::size(in_turn) >= pixel_tile);
      alignas(64) T own[pixel_tile * width];
      for (std::size_t i = 0; go_on && i < count; ++i)
        copy_channels(y + rows[i] * pitch, valid, own + static_cast<int64_t>(i) * width);
      run({buffer, bases, own, in_turn, width, ahead, 0, weights_ahead}, group.runs, weights, start);
      for (std::size_t i = 0; i < count; ++i)
        copy_channels(own + static_cast<int64_t>(i) * width, valid, y + rows[i] * pitch);
      complete();
    }
}

/// For two pieces at most, tasks pack the weights that they read, into a cache: to pack them in memory takes
/// longer than the products of few pixels. Elements of a task's; 0: all are packed before.
template <class T>
int64_t packed_in_task(const Gather& gather, const GatherPieces& pieces, const ChannelBlocks<T>& blocks,
                       const Panels<T>& panels) {
  return pieces.count() <= 2 && panels.count() > 0 ? panels[0].width * blocks.block * gather.taps() : 0;
}

template <class T>
GatherTasks<T> panel_tasks(const Gather& gather, const GatherWeights<T>& weights) {
  const ChannelBlocks<T> blocks(gather);
  GatherPieces pieces = blocks.pieces(gather);
  if (weights.shared != nullptr) pieces.keep_lists(blocks.block);
  const Panels<T> panels(gather.result_channels);
  const int64_t in_task = weights.shared == nullptr ? packed_in_task(gather, pieces, blocks, panels) : 0;
  const auto packed = in_task > 0 ? nullptr : pack_panels(gather, weights, blocks);
  // Some panels a task: two at least where one is little work beside filling the buffer, which each task does
  // for itself, so that few threads have few tasks. The bits do not depend on it. Those that are kept may be
  // run by other numbers of threads.
  const int64_t all_panels = gather.groups * panels.count();
  const int64_t least = blocks.in_place || gather.taps() > 1 ? 1 : 2;
  const int64_t wanted =
      weights.shared == nullptr ? std::min(tasks_wanted, int64_t{4} * num_threads()) : tasks_wanted;
  const int64_t parts = std::min(ceil_div(all_panels, least), ceil_div(wanted, pieces.count()));
  const auto run = [=](int64_t task, const GatherOperands<T>& operands) {
    const auto memory = scratch<T>(blocks.in_place ? 0 : pieces.buffer_elements());
    const auto own = scratch<T>(in_task);
    T* buffer = elements_of<T>(memory);
    const GatherPixels* pixels = nullptr;
    const int64_t piece = task / parts;
    const int64_t begin = all_panels * (task % parts) / parts;
    const int64_t end = all_panels * (task % parts + 1) / parts;
    int64_t listed = 0;  // channels for which the pixels' runs are
    for (int64_t next = begin; next < end;) {
      const int64_t group = next / panels.count();
      const int64_t first = std::exchange(next, std::min(end, (group + 1) * panels.count()));
      for (int64_t b = 0; b < blocks.count(); ++b) {
        const int64_t from = group * gather.source_channels + blocks.first(b);
        if (!blocks.in_place) pieces.fill(piece, operands.source, from, blocks.size(b), buffer);
        if (std::exchange(listed, blocks.size(b)) != blocks.size(b)) pixels = &pieces.listed(piece, listed);
        for (int64_t i = first; i < next; ++i) {
          const Panel& panel = panels[i % panels.count()];
          const int64_t of_tap = blocks.size(b) * panel.width;
          for (int64_t tap = 0; in_task > 0 && tap < gather.taps(); ++tap)
            pack_part(weights, panels, group, panel, tap, blocks.first(b), blocks.size(b),
                      elements_of<T>(own) + tap * of_tap);
          const PanelWeights<T> of_block{
              in_task ? elements_of<T>(own)
                      : elements_of<T>(packed) + (group * panels.padded() + panel.first) * gather.depth() +
                            blocks.first(b) * gather.taps() * panel.width,
              of_tap};
          constexpr int whole = simd::register_bytes, half = std::max(whole / 2, 16);
          const auto multiply = panel.vectors == 2     ? multiply_panel<T, whole, 2>
                                : panel.bytes == whole ? multiply_panel<T, whole, 1>
                                : panel.bytes == half  ? multiply_panel<T, half, 1>
                                                       : multiply_panel<T, 16, 1>;
          const int64_t channel = group * gather.result_channels + panel.first;
          multiply(*pixels, blocks.in_place ? operands.source + from : buffer, of_block,
                   operands.bias != nullptr ? operands.bias + channel : nullptr, b > 0, panels.valid(panel),
                   gather.result_pitch(), blocks.in_place && i == first ? blocks.size(b) : 0,
                   operands.y + channel, b + 1 == blocks.count() ? operands.completion : Completion<T>(),
                   piece, channel);
        }
      }
    }
  };
  return {pieces.count() * parts, run, pieces.count()};
}

template <class T>
GatherMemory panels_memory(const Gather& gather) {
  constexpr int64_t element = sizeof(T);
  const Panels<T> panels(gather.result_channels);
  const ChannelBlocks<T> blocks(gather);
  const GatherPieces pieces = blocks.pieces(gather);
  const int64_t in_task = packed_in_task(gather, pieces, blocks, panels);
  const int64_t weights = in_task > 0 ? 0 : gather.groups * panels.padded() * gather.depth();
  return {weights * element, (in_task + (blocks.in_place ? 0 : pieces.buffer_elements())) * element};
}

}  // namespace

template <class T>
DirectKernel<T> panels_kernel() {
  return {[](const Gather&) { return true; }, panel_tasks<T>, panels_memory<T>, true};
}
template DirectKernel<float> panels_kernel();
template DirectKernel<double> panels_kernel();

}  // namespace pleat::ops
