#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/core/kernels/offsets.h"
#include "pleat/ops/spatial/lanes.h"
#include "pleat/ops/spatial/linear_map_rows.h"
#include "pleat/ops/spatial/linear_map_tables.h"

/// A block makes `slabs` times some rows of the result, a row being what has all coordinates but the last
/// one's, and a `chunk` of channels: some that lie side by side, else one. First it adds up
/// the rows of x that each of them is made of, in shared memory; then columns of that sum. Each thread makes
/// one column of the same row of every slab, or four channels of it of a quarter of them: all have the same
/// taps.

namespace pleat::ops {
namespace {

constexpr int slabs = 16;
constexpr int slab_elements = 256;
constexpr int slab_pitch = slab_elements + 4;  ///< so that slabs lie in different banks of shared memory
constexpr int row_pitch = slabs + 1;  ///< so that rows of a slab lie in different banks of shared memory
constexpr int slab_rows = block_threads / slabs;  ///< at most: so each thread finds one row
constexpr auto width = static_cast<int>(vector_width);
constexpr int slab_threads = slab_elements / width;  ///< fill a slab, a vector each
constexpr int most_columns = block_threads;          ///< of a tile
constexpr int most_taps = 512;                       ///< of these
constexpr int64_t no_row = -1;
constexpr int64_t most_channel_bytes = 32;  ///< of a row: what memory moves at once

/// Numbers in shared memory, of which neighbours can be written at once.
class SharedFloats {
 public:
  /// The `count` elements that element i is among, from a multiple of their number on; so in a later slab.
  template <std::size_t count>
  __device__ Vector<float, count> read(int i, int slab) const {
    return *place<count>(i, slab, false);
  }
  template <std::size_t count>
  __device__ void write(int i, const Vector<float, count>& value) const {
    *place<count>(i, 0, true) = value;
  }

 private:
  static constexpr std::size_t bytes = slabs * slab_pitch * sizeof(float);

  static __device__ unsigned char* memory() {
    alignas(16) __shared__ unsigned char shared[bytes];
    return shared;
  }
  template <std::size_t count>
  static __device__ Vector<float, count>* place(int i, int slab, [[maybe_unused]] bool writes) {
    constexpr int log_count = std::bit_width(count) - 1;
#if defined(PLEAT_CUDA_DOUBLE)
    for (int j = i >> log_count << log_count; j <= (i | (static_cast<int>(count) - 1)); ++j)
      cuda_double::watch_shared(memory(), static_cast<std::size_t>(j + slab * slab_pitch), sizeof(float),
                                bytes, writes);
#endif
    return reinterpret_cast<Vector<float, count>*>(memory()) + (i >> log_count) +
           slab * (slab_pitch >> log_count);
  }
};

/// What a row is made of: the taps [depth[0], depth[1]) and [height[0], height[1]), from element x on, times
/// scale.
struct alignas(16) RowTaps {
  int32_t depth[2], height[2];
};
struct alignas(8) RowStart {
  uint32_t x;
  float scale;
};
/// The first tap of a column and how many there are.
struct alignas(8) ColumnTaps {
  int32_t first, count;
};

struct Shared {
  SharedArray<RowTaps, slab_rows * row_pitch> row_taps;
  SharedArray<RowStart, slab_rows * row_pitch> row_start;
  SharedArray<int64_t, slab_rows * row_pitch> row_result;  ///< where it goes, in bytes
  SharedArray<ColumnTaps, most_columns> column_taps;
  SharedArray<float, most_columns> column_scale;
  SharedArray<Tap<float>, most_taps + most_taps / 16> tap_of_column;
  SharedFloats sums;
};

/// norm: squares are added up, and their roots are the results.
template <class T, bool norm>
struct MapRows {
  SparseRowsView<float> taps[3];
  Divider<uint32_t> heights, depths, chunks;  ///< of the result: rows by their number
  Divider<uint32_t> tiles;                    ///< of columns, which are done by different blocks
  Divider<uint32_t> chunk;                    ///< channels in a row
  Divider<uint32_t> pitch;           ///< elements of x in a row of a slab, a multiple of vector_width
  Divider<uint32_t> results, units;  ///< in a row of a tile, in one of its columns; of `at_once` each
  Divider<uint32_t> slab_row;        ///< rows in a slab
  uint32_t rows, rows_in_slab;
  int32_t tile_columns, columns;  ///< of the result
  int32_t inputs;                 ///< columns of x
  std::array<uint32_t, 5> x_step, y_step;
  bool ascends;      ///< columns begin where those before them do, or behind
  int together;      ///< elements of x that are read at once: 1, 2, 4, or 8 of a half type
  int at_once;       ///< results that are made at once: 1 or, of channels side by side, 4
  int tap_gap;       ///< log2 of how many taps there are from a gap to the next
  int spread, swap;  ///< columns at a distance lie in other banks by these bits of the product
  const T* x;
  T* y;

  __device__ void operator()(int64_t number, const Block& block) const {
    auto tile = static_cast<uint32_t>(number);
    const uint32_t group = tiles.divide(tile);
    const int thread = block.thread();
    const int first_column = static_cast<int>(tile) * tile_columns;
    const Shared shared{};
    const int low = find_taps(shared, block, group, first_column);
    __syncthreads();
    if (together == half_width)
      add_rows<half_width>(shared, thread, low);
    else if (together == width)
      add_rows<width>(shared, thread, low);
    else if (together == 2)
      add_rows<2>(shared, thread, low);
    else
      add_rows<1>(shared, thread, low);
    __syncthreads();
    if (at_once == width)
      add_columns<width>(shared, thread, first_column, low);
    else
      add_columns<1>(shared, thread, first_column, low);
  }

 private:
  /// Fills the tables of the block's rows and columns; the first column of x that it needs.
  __device__ int find_taps(const Shared& shared, const Block& block, uint32_t group, int first_column) const {
    const int thread = block.thread();
    const auto in_slab = static_cast<uint32_t>(thread / slabs);
    uint32_t height = (group * slabs + static_cast<uint32_t>(thread % slabs)) * rows_in_slab + in_slab;
    if (in_slab < rows_in_slab) {
      const int place = thread / slabs * row_pitch + thread % slabs;
      RowTaps of_row{};
      RowStart start{};
      int64_t result = no_row;
      if (height < rows) {
        uint32_t depth = heights.divide(height);
        uint32_t part = depths.divide(depth);
        const uint32_t image = chunks.divide(part);
        part *= chunk.divisor();
        of_row = {{taps[0].first[depth], taps[0].first[depth + 1]},
                  {taps[1].first[height], taps[1].first[height + 1]}};
        start = {image * x_step[0] + part * x_step[1], taps[0].scale[depth] * taps[1].scale[height]};
        result = int64_t{sizeof(T)} *
                 (image * y_step[0] + part * y_step[1] + depth * y_step[2] + height * y_step[3]);
      }
      shared.row_taps.write(place, of_row);
      shared.row_start.write(place, start);
      shared.row_result.write(place, result);
    }

    const int last_column = first_column + tile_columns < columns ? first_column + tile_columns : columns;
    const int first = taps[2].first[first_column], last = taps[2].first[last_column];
    int low = inputs;
    if (first_column + thread < last_column) {
      const int begin = taps[2].first[first_column + thread];
      const int count = taps[2].first[first_column + thread + 1] - begin;
      shared.column_taps.write(thread, {begin - first, count});
      shared.column_scale.write(thread, taps[2].scale[first_column + thread]);
      if (!ascends) low = count == 0 ? inputs : taps[2].tap[begin].index;
    }
    for (int t = first + thread; t < last; t += block_threads)
      shared.tap_of_column.write(tap_place(t - first), taps[2].tap[t]);
    if (ascends) {
      low = first < last ? taps[2].tap[first].index : 0;
    } else {
      const Teams all{.log_lanes = log_block_threads};
      block.combine(low, all, [](int& a, int b) { a = b < a ? b : a; });
      block.share(low, all);
    }
    return chunk.divisor() == 1 ? low & ~(together - 1) : low;
  }

  /// Those of different columns lie in different banks: without a gap where columns have an odd number.
  __device__ int tap_place(int t) const { return t + (t >> tap_gap); }
  /// What a place in a slab is changed by.
  __device__ int swapped(int i) const { return (i >> 5) * spread & swap; }

  /// The sums of rows, `count` elements at once, and vectors of them in shared memory.
  template <int count>
  __device__ void add_rows(const Shared& shared, int thread, int low) const {
    if constexpr (count > width && sizeof(T) > 2) return;
    constexpr int threads = std::min(slab_threads, slab_elements / count);
    PLEAT_ROLLED
    for (int k = 0; k < width; k += count) {
      const int element = (k / count * threads + thread % threads) * count;
      auto column = static_cast<uint32_t>(element);
      const auto row = static_cast<int>(pitch.divide(column));
      uint32_t channel = column;
      column = chunk.divide(channel);
      const int input = low + static_cast<int>(column);
      if (row >= static_cast<int>(rows_in_slab) || input >= inputs) continue;
      const uint32_t at = static_cast<uint32_t>(input) * x_step[4] + channel * x_step[1];
      const int moved = swapped(element);
      PLEAT_ROLLED
      for (int slab = thread / threads; slab < slabs; slab += block_threads / threads)
        add_row<count>(shared, row * row_pitch + slab, slab * slab_pitch, element, at, moved);
    }
  }
  template <int count>
  __device__ void add_row(const Shared& shared, int row, int slab_start, int element, uint32_t at,
                          int moved) const {
    const RowTaps of_row = shared.row_taps.read(row);
    const RowStart start = shared.row_start.read(row);
    at += start.x;
    float sum[count] = {};
    PLEAT_ROLLED
    for (int d = of_row.depth[0]; d < of_row.depth[1]; ++d) {
      const Tap<float> outer = taps[0].tap[d];
      const uint32_t plane = at + static_cast<uint32_t>(outer.index) * x_step[2];
      PLEAT_ROLLED
      for (int h = of_row.height[0]; h < of_row.height[1]; ++h) {
        const Tap<float> tap = taps[1].tap[h];
        const float weight = outer.weight * tap.weight;
        float value[count];
        Loaded<T, count>(x + (plane + static_cast<uint32_t>(tap.index) * x_step[3])).unpack(value);
        PLEAT_UNROLL
        for (int j = 0; j < count; ++j) sum[j] += weight * term(value[j]);
      }
    }
    constexpr int part = std::min(count, width);
    PLEAT_UNROLL
    for (int v = 0; v < count; v += part) {
      Vector<float, part> some;
      PLEAT_UNROLL
      for (int j = 0; j < part; ++j) some.lane[j] = sum[v + j] * start.scale;
      if constexpr (part > 1)
        if ((swap & 3) != 0) {  // so are its elements
          if (moved & 1) some = flipped<1>(some);
          if (part > 2 && (moved & 2)) some = flipped<2>(some);
        }
      shared.sums.write(slab_start + ((element + v) ^ moved), some);
    }
  }

  __device__ static float term(float x) { return norm ? x * x : x; }
  /// Of a vector's elements, those `by` apart from each other in each other's place.
  template <int by, class Sum>
  __device__ static Sum flipped(const Sum& sum) {
    Sum result;
    PLEAT_UNROLL
    for (int j = 0; j < static_cast<int>(sizeof sum / sizeof(float)); ++j) result.lane[j ^ by] = sum.lane[j];
    return result;
  }

  /// Results, `count` of them side by side at once, of so many slabs that a thread makes as many as these
  /// are.
  template <int count>
  __device__ void add_columns(const Shared& shared, int thread, int first_column, int low) const {
    constexpr int each = slabs / count;
    const int all = static_cast<int>(rows_in_slab * results.divisor()) * count;
    const auto apart = static_cast<int>(chunk.divisor());
    PLEAT_ROLLED
    for (int i = thread; i < all; i += block_threads) {
      auto channel = static_cast<uint32_t>(i);
      uint32_t row = results.divide(channel);
      const int slab = count == 1 ? 0 : static_cast<int>(slab_row.divide(row)) * each;
      const auto column = static_cast<int>(units.divide(channel));
      channel *= count;
      if (first_column + column >= columns) continue;
      const int start = static_cast<int>(row * pitch.divisor() + channel) - low * apart;
      Vector<float, count> sum[each] = {};
      const ColumnTaps of_column = shared.column_taps.read(column);
      PLEAT_ROLLED
      for (int t = of_column.first; t < of_column.first + of_column.count; ++t) {
        const Tap<float> tap = shared.tap_of_column.read(tap_place(t));
        const int element = start + tap.index * apart;
        const int place = (element ^ swapped(element)) + slab * slab_pitch;
        PLEAT_UNROLL
        for (int k = 0; k < each; ++k) {
          const auto value = shared.sums.template read<count>(place, k);
          PLEAT_UNROLL
          for (int j = 0; j < count; ++j) sum[k].lane[j] += tap.weight * value.lane[j];
        }
      }
      const float scale = shared.column_scale.read(column);
      auto* const to = reinterpret_cast<std::byte*>(
          y + (static_cast<uint32_t>(first_column + column) * y_step[4] + channel * y_step[1]));
      const int first_row = static_cast<int>(row) * row_pitch + slab;
      const auto store = [&](bool all_exist) {
        PLEAT_UNROLL
        for (int k = 0; k < each; ++k) {
          const int64_t result = shared.row_result.read(first_row + k);
          float scaled[count];
          PLEAT_UNROLL
          for (int j = 0; j < count; ++j) {
            const float total = sum[k].lane[j] * scale;
            scaled[j] = norm ? std::sqrt(total) : total;
          }
          if (all_exist || result != no_row) store_lanes<count>(reinterpret_cast<T*>(to + result), scaled);
        }
      };
      // Roots stand here once: twice they would take more registers than there are.
      const int last_row = static_cast<int>(rows_in_slab - 1) * row_pitch + slabs - 1;
      if (!norm && shared.row_result.read(last_row) != no_row)
        store(true);
      else
        store(false);
    }
  }
};

/// Whether no row's first tap lies before that of an earlier row.
bool ascends(const SparseRows& rows) {
  int64_t low = 0;
  for (std::size_t o = 0; o + 1 < rows.first.size(); ++o) {
    if (rows.first[o] == rows.first[o + 1]) continue;
    const int64_t first = rows.index[static_cast<std::size_t>(rows.first[o])];
    if (first < low) return false;
    low = first;
  }
  return true;
}

/// How many inputs tiles of `columns` results are made of at most, from a multiple of `multiple` on.
int64_t span_of(const SparseRows& rows, int64_t columns, int64_t multiple) {
  int64_t span = 1;
  for (int64_t start = 0; start < rows.outputs(); start += columns) {
    int64_t low = rows.inputs, high = 0;
    for (int64_t o = start; o < std::min(start + columns, rows.outputs()); ++o) {
      const auto first = static_cast<std::size_t>(rows.first[static_cast<std::size_t>(o)]);
      const auto last = static_cast<std::size_t>(rows.first[static_cast<std::size_t>(o) + 1]);
      if (first == last) continue;
      low = std::min(low, rows.index[first]);
      high = std::max(high, rows.index[last - 1] + 1);
    }
    span = std::max(span, high - low / multiple * multiple);
  }
  return span;
}

int64_t taps_of(const SparseRows& rows, int64_t columns) {
  int64_t most = 0;
  for (int64_t o = 0; o < rows.outputs(); o += columns)
    most = std::max(most, rows.first[static_cast<std::size_t>(std::min(o + columns, rows.outputs()))] -
                              rows.first[static_cast<std::size_t>(o)]);
  return most;
}

int64_t divisor_up_to(int64_t most, int64_t n) {
  int64_t divisor = std::min(most, n);
  while (n % divisor != 0) --divisor;
  return divisor;
}

}  // namespace

bool apply_by_rows(const char* op, const LinearMap& map, const Tensor& x, const Tensor& y,
                   MemoryFormat format, bool norm) {
  if (y.numel() == 0) return true;
  const SparseRows& last = map.dims.back();
  for (const SparseRows& rows : map.dims)
    if (std::ssize(rows.index) >= small_loop || std::ssize(rows.first) >= small_loop) return false;
  const int64_t reach = std::max(reach_of_image(x), y.numel() / y.size(0));
  if (reach >= small_loop || last.index.empty()) return false;

  const bool channels_last = format == MemoryFormat::channels_last;
  int64_t chunk = channels_last ? divisor_up_to(most_channel_bytes / size_of(x.dtype()), x.size(1)) : 1;
  const int64_t widest = is_half(x.dtype()) ? half_width : vector_width;
  const int64_t aligned = channels_last ? 1 : moved_together(x, x.rank() - 1, widest);
  // All inputs have to find room in slabs.
  int64_t tiles = ceil_div(last.inputs * chunk, int64_t{slab_elements});
  int64_t columns = ceil_div(last.outputs(), tiles);
  const auto room = [&] {
    return round_up(span_of(last, columns, aligned) * chunk, std::max<int64_t>(width, aligned));
  };
  while (room() > slab_elements || columns > most_columns || taps_of(last, columns) > most_taps) {
    if (columns > 1)
      columns = ceil_div(last.outputs(), tiles += ceil_div(tiles, 8));
    else if (chunk > 1)
      chunk = divisor_up_to(chunk - 1, x.size(1));
    else
      return false;
  }
  const int64_t together = chunk > 1 ? moved_together(x, 1, std::gcd(chunk, widest)) : aligned;
  const int64_t at_once = chunk % width == 0 && moved_together(y, 1, width) == width ? width : 1;
  const int64_t pitch = room();

  const auto tables = tables_of<float>(map, x.device());
  const Shape& shape = y.shape();
  const std::size_t rank = shape.size();
  const int64_t heights = rank > 3 ? shape[rank - 2] : 1, depths = rank > 4 ? shape[2] : 1;
  tiles = ceil_div(last.outputs(), columns);
  const int64_t ratio = last.inputs / last.outputs();
  const int64_t swap = ratio >= 4 ? 3 : ratio >= 2 ? 1 : 0;
  const int halves = together == half_width ? width : 0;  // of what is read at once: written by two vectors
  const bool swaps = std::has_single_bit(static_cast<uint64_t>(chunk));
  const int swapped = (swaps ? static_cast<int>(swap * chunk & 31) : 0) | halves;
  const int64_t in_slab = std::min<int64_t>(slab_elements / pitch, slab_rows);
  const int64_t rows_of_image = x.size(1) / chunk * depths * heights;
  for_image_parts(x.size(0), std::max({reach, rows_of_image, x.strides()[0]}),
                  [&](int64_t image, int64_t images) {
                    const int64_t rows = images * rows_of_image;
                    const auto run = [&]<class T, bool roots>(Type<T>, std::bool_constant<roots>) {
                      MapRows<T, roots> functor{.taps = {tables->rows(0), tables->rows(1), tables->rows(2)},
                                                .heights = Divider<uint32_t>(heights),
                                                .depths = Divider<uint32_t>(depths),
                                                .chunks = Divider<uint32_t>(x.size(1) / chunk),
                                                .tiles = Divider<uint32_t>(tiles),
                                                .chunk = Divider<uint32_t>(chunk),
                                                .pitch = Divider<uint32_t>(pitch),
                                                .results = Divider<uint32_t>(columns * chunk / at_once),
                                                .units = Divider<uint32_t>(chunk / at_once),
                                                .slab_row = Divider<uint32_t>(in_slab),
                                                .rows = static_cast<uint32_t>(rows),
                                                .rows_in_slab = static_cast<uint32_t>(in_slab),
                                                .tile_columns = static_cast<int32_t>(columns),
                                                .columns = static_cast<int32_t>(last.outputs()),
                                                .inputs = static_cast<int32_t>(last.inputs),
                                                .x_step = steps_as<uint32_t>(x),
                                                .y_step = steps_as<uint32_t>(y),
                                                .ascends = ascends(last),
                                                .together = static_cast<int>(together),
                                                .at_once = static_cast<int>(at_once),
                                                .tap_gap = taps_of(last, 1) % 2 == 0 ? 4 : 31,
                                                .spread = static_cast<int>(chunk) | halves,
                                                .swap = swapped,
                                                .x = x.data<T>() + image * x.strides()[0],
                                                .y = y.data<T>() + image * y.strides()[0]};
                      launch_blocks(op, y.device(), tiles * ceil_div(rows, slabs * in_slab), functor);
                    };
                    as_stored<float>(x.dtype(), [&](auto type) {
                      if (norm) return run(type, std::true_type{});
                      run(type, std::false_type{});
                    });
                  });
  return true;
}

}  // namespace pleat::ops
