#include "pleat/ops/conv/cpu/direct_weight.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/nhwc.h"

/// dw [K, taps C] is dy [pixels, K], transposed, times the windows of x [pixels, taps C]. The products of
/// some hundred pixels are summed in registers, in tiles of some rows by two vectors, before they are
/// added to sums in memory. A task has a block of dw, and a share of the pixels where there are few blocks;
/// piece by piece it copies its channels of x and dy into panels that are dense in the order in which tiles
/// read them: what a panel's tiles share stays in the first-level cache, the rest of the piece in the second.
/// (Goto, van de Geijn: "Anatomy of high-performance matrix multiplication", ACM TOMS 2008.) Each tap goes
/// through those windows alone in which it is not on padding. Groups are so many products; small ones are
/// copied some at a time, as they lie in the same lines of the cache. x of 1x1 convolutions, and dy of few
/// channels, are read where they lie. Each tile fetches one column of what comes next, a pixel of it with
/// each of its own: fetched at once it would wait.
///
/// One thread of a Zen 4, float32, of the FMA ceiling, products on padding not counted: 3x3 of 64 to 512
/// channels 85 to 87 %, 1x1 of 64 to 1024 84 to 86 %; on a busy machine 3x3 of 32 groups of 16 or 32 channels
/// 65 to 70 %.

namespace pleat::ops {
namespace {

using namespace direct_weight;

/// Bytes of a pixel of dy up to which it is read where it lies. Longer ones share too few sets of a cache.
constexpr int64_t most_pixel_bytes = 1024;
/// Elements of a window up to which vectors of dy that cross lines of the cache cost less than a copy.
constexpr int64_t most_depth_across_lines = 64;

/// Taps whose elements lie side by side in the buffer.
struct TapRun {
  int64_t offset;  ///< in pixels of the buffer, in place in elements
  int64_t taps;
  int64_t tap;  ///< the first one, of all
};

template <class T>
class WeightTask {
 public:
  WeightTask(const WeightPlan<T>& plan, const ConvProblem& p, const T* dy, const T* x, T* sums, int64_t task)
      : plan_(plan),
        p_(p),
        dy_(dy),
        x_(x),
        dy_end_(dy + p.batch * p.output_pixels() * p.out_channels),
        x_end_(x + p.batch * p.input_pixels() * p.in_channels) {
    chunk_ = task % plan.chunks;
    const int64_t block = task / plan.chunks;
    const int64_t group = block / plan.channel_blocks / plan.filter_blocks * plan.together;
    groups_ = std::min(plan.together, p.groups - group);
    first_channel_ = block % plan.channel_blocks * plan.channels;
    first_filter_ = block / plan.channel_blocks % plan.filter_blocks * plan.filters;
    channels_ = std::min(plan.channels, p.group_in() - first_channel_);
    filters_ = std::min(plan.filters, p.group_out() - first_filter_);
    x_ += group * p.group_in() + first_channel_;
    dy_ += group * p.group_out() + first_filter_;
    sums_ = sums + (chunk_ * p.groups + group) * plan.sums(p);
  }

  void run() {
    const auto source = plan_.in_place ? nullptr : scratch<T>(plan_.source_elements());
    const auto dy_copy = scratch<T>(plan_.filter_elements());
    copy_ = elements_of<T>(source);
    dy_copy_ = elements_of<T>(dy_copy);
    const int64_t pieces = plan_.pieces.count();
    const int64_t begin = pieces * chunk_ / plan_.chunks;
    for (int64_t piece = begin; piece < pieces * (chunk_ + 1) / plan_.chunks; ++piece) {
      plan_.pieces.list(piece, 1, pixels_);
      list_runs();
      if (!plan_.in_place) fill_source(piece);
      const auto windows = static_cast<int64_t>(pixels_.bases.size());
      const int64_t parts = ceil_div(windows, most_pixels);
      for (int64_t part = 0; part < parts; ++part)
        add_part(piece, windows * part / parts, windows * (part + 1) / parts, piece > begin || part > 0);
    }
  }

 private:
  /// Adds the products of the windows from `first` to `end` of a piece with their gradients; the first ones
  /// are stored.
  void add_part(int64_t piece, int64_t first, int64_t end, bool accumulate) {
    read_ahead(first, end - first);
    if (plan_.along == Along::windows)
      take_gradients<Along::windows>(first, end - first);
    else
      take_gradients<Along::filters>(first, end - first);
    all_.resize(static_cast<std::size_t>(end - first));
    for (int64_t i = first; i < end; ++i)
      all_[static_cast<std::size_t>(i - first)] = {pixels_.bases[static_cast<std::size_t>(i)],
                                                   (i - first) * gradients_.step};
    for (const TapRun& run : runs_) {
      windows_ = all_;
      if (plan_.skips_padding &&
          !plan_.pieces.all_inside(piece, run.tap, plan_.taps_join, first, end, inside_)) {
        if (inside_.empty() && accumulate) continue;
        some_.resize(inside_.size());
        for (std::size_t i = 0; i < inside_.size(); ++i)
          some_[i] = all_[static_cast<std::size_t>(inside_[i] - first)];
        windows_ = some_;
      }
      for (int64_t group = 0; group < groups_; ++group)
        for (int64_t c = 0; c < channels_; c += plan_.source_block) {
          const int64_t channels = std::min(plan_.source_block, channels_ - c);
          const TileRow row{group, source(run, group, c), run.taps * channels,
                            run.tap * p_.group_in() + first_channel_ + c};
          if (plan_.along == Along::windows)
            sum_along_windows(row, accumulate);
          else
            sum_along_filters(row, accumulate);
        }
    }
  }

  /// Elements of the windows that are summed with all filters: `length` of them, `column` in a filter's
  /// weights.
  struct TileRow {
    int64_t group;
    const T* source;
    int64_t length;
    int64_t column;
  };

  /// What is read after some windows: those behind them, or what will be copied for the next piece.
  void read_ahead(int64_t first, int64_t count) {
    const int64_t* rows = pixels_.rows.data() + first;
    dy_ahead_ = {dy_ + (rows[count - 1] + 1) * p_.out_channels, groups_ * filters_, p_.out_channels};
    x_ahead_ = {x_, 0, 0};
    if (plan_.in_place && count > 1) {
      const int64_t* bases = pixels_.bases.data() + first;
      const int64_t step = bases[1] - bases[0];
      x_ahead_ = {x_ + bases[count - 1] + step, groups_ * channels_, step};
    } else if (!plan_.in_place && first == 0 && x_is_read_on_) {
      x_ahead_ = {next_x_, groups_ * channels_, p_.in_channels};
    }
  }

  /// Taps that lie side by side in the buffer are one run where all their channels do, too.
  void list_runs() {
    runs_.clear();
    for (const GatherPixels::Group& group : pixels_.groups)
      for (const GatherRun& run : group.runs)
        for (int64_t i = 0; i < run.length;) {
          const int64_t tap = run.tap + i;
          const int64_t of_line = std::min(run.length - i, p_.kernel[2] - tap % p_.kernel[2]);
          runs_.push_back({run.offset + i, plan_.taps_join ? of_line : 1, tap});
          i += runs_.back().taps;
        }
  }

  /// Of a group in the copy: fewer than the plan's where the last block of channels is smaller.
  int64_t source_blocks() const { return ceil_div(channels_, plan_.source_block); }
  /// The elements of a run's windows from channel c of a group on.
  const T* source(const TapRun& run, int64_t group, int64_t c) const {
    if (plan_.in_place) return x_ + run.offset + group * p_.group_in() + c;
    const int64_t block = group * source_blocks() + c / plan_.source_block;
    return copy_ + block * plan_.source_block_elements() + run.offset * plan_.source_block;
  }

  void fill_source(int64_t piece) {
    const int64_t block = plan_.source_block;
    const int64_t pitch = p_.in_channels;
    const auto copy = [&](int64_t to, int64_t from, int64_t count, int64_t stride) {
      next_x_ = x_ + (from + count * stride) * pitch;
      x_is_read_on_ = stride == 1;
      const PanelPixels<T> pixels{x_ + from * pitch,
                                  stride * pitch,
                                  x_end_,
                                  groups_,
                                  p_.group_in(),
                                  channels_,
                                  copy_ + to * block,
                                  plan_.source_block_elements(),
                                  stride == 1};
      if (block == pitch && stride == 1)
        std::copy_n(x_ + from * pitch, count * pitch, copy_ + to * pitch);
      else if (block == tile_width<T>)
        copy_panels<tile_width<T>>(pixels, count);
      else if (block == lanes<T>)
        copy_panels<lanes<T>>(pixels, count);
      else if (block == most_rows)
        copy_panels<most_rows>(pixels, count);
      else
        for (int64_t i = 0; i < count; ++i)
          for (int64_t group = 0; group < groups_; ++group)
            copy_channels(pixels.from + i * pixels.pitch + group * block, block,
                          pixels.to + group * pixels.between + i * block);
    };
    // Of the padding only runs of several taps read some.
    const auto clear = [&](int64_t to, int64_t count) {
      if (!plan_.taps_join) return;
      for (int64_t b = 0; b < groups_ * source_blocks(); ++b)
        std::fill_n(copy_ + b * plan_.source_block_elements() + to * block, count * block, T(0));
    };
    plan_.pieces.visit(piece, copy, clear);
    for (int64_t& base : pixels_.bases) base *= block;
  }

  /// dy of some windows where it lies, else copied.
  template <Along along>
  void take_gradients(int64_t first, int64_t count) {
    constexpr int64_t block = filter_block<T, along>;
    const int64_t* rows = pixels_.rows.data() + first;
    const bool dense = rows[count - 1] - rows[0] == count - 1;
    // Vectors along filters may cross lines of the cache, and reach beyond the last filter.
    const T* last = dy_ + rows[count - 1] * p_.out_channels + (groups_ - 1) * p_.group_out();
    const bool whole =
        along == Along::windows || filters_ % lanes<T> == 0 ||
        (p_.depth() <= most_depth_across_lines && dy_end_ - last >= round_up(filters_, lanes<T>));
    if (dense && whole && p_.out_channels * static_cast<int64_t>(sizeof(T)) <= most_pixel_bytes) {
      gradients_ = {dy_ + rows[0] * p_.out_channels, p_.out_channels, block, p_.group_out()};
      return;
    }
    const int64_t between = plan_.filter_block_elements();
    gradients_ = {dy_copy_, block, between, ceil_div(filters_, block) * between};
    for (int64_t i = 0; i < count;) {
      const int64_t side_by_side = dense ? count : 1;
      copy_panels<block, T>({dy_ + rows[i] * p_.out_channels, p_.out_channels, dy_end_, groups_,
                             p_.group_out(), filters_, dy_copy_ + i * block, between, true},
                            side_by_side);
      i += side_by_side;
    }
  }

  T* sums_of(const TileRow& row) const { return sums_ + row.group * plan_.sums(p_); }
  auto windows() const { return static_cast<int64_t>(windows_.size()); }

  void sum_along_windows(const TileRow& row, bool accumulate) {
    const int64_t leading = plan_.leading(p_);
    for (int64_t c = 0, width = 0; c < row.length; c += width) {
      const int64_t vectors = window_vectors<T>(row.length - c);
      width = std::min(vectors * lanes<T>, row.length - c);
      const auto& kernels = vectors > 2    ? sum_outer_of<T, Along::windows, most_vectors>
                            : vectors == 2 ? sum_outer_of<T, Along::windows, 2>
                                           : sum_outer_of<T, Along::windows, 1>;
      T* sums = sums_of(row) + first_filter_ * leading + row.column + c;
      const T* dy = gradients_.data + row.group * gradients_.group;
      for (int64_t k = 0; k < filters_; k += most_rows, dy += gradients_.between) {
        const int64_t rows = std::min<int64_t>(most_rows, filters_ - k);
        kernels[static_cast<std::size_t>(rows - 1)](row.source + c, dy, windows_.data(), windows(),
                                                    x_ahead_.next(), dy_ahead_.next(),
                                                    {sums + k * leading, leading, width, accumulate});
      }
    }
  }

  void sum_along_filters(const TileRow& row, bool accumulate) {
    const int64_t leading = plan_.leading(p_);
    const T* dy = gradients_.data + row.group * gradients_.group;
    for (int64_t k = 0; k < filters_; k += tile_width<T>, dy += gradients_.between) {
      const int64_t width = round_up(std::min(tile_width<T>, filters_ - k), lanes<T>);
      const auto& kernels =
          width > lanes<T> ? sum_outer_of<T, Along::filters, 2> : sum_outer_of<T, Along::filters, 1>;
      const int64_t tiles = ceil_div(row.length, most_rows);
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t c = row.length * tile / tiles;
        const int64_t rows = row.length * (tile + 1) / tiles - c;
        T* sums = sums_of(row) + (row.column + c) * leading + first_filter_ + k;
        kernels[static_cast<std::size_t>(rows - 1)](row.source + c, dy, windows_.data(), windows(),
                                                    x_ahead_.next(), dy_ahead_.next(),
                                                    {sums, leading, width, accumulate});
      }
    }
  }

  const WeightPlan<T>& plan_;
  const ConvProblem& p_;
  // From the task's first channel and filter on.
  const T* dy_;
  const T* x_;
  const T* dy_end_;
  const T* x_end_;
  T* sums_;
  int64_t chunk_;
  int64_t groups_;
  int64_t first_channel_, channels_;  // of each group
  int64_t first_filter_, filters_;
  std::vector<TapRun> runs_;
  T* copy_ = nullptr;          ///< of x: [group][block][pixel][source_block]
  T* dy_copy_ = nullptr;       ///< [group][block][window][filter_block]
  const T* next_x_ = nullptr;  ///< after the last pixel copied
  bool x_is_read_on_ = false;  ///< the next pixels are those behind it
  /// Of a part's windows: the first, and from a window, a block and a group to the next.
  struct {
    const T* data;
    int64_t step;
    int64_t between;
    int64_t group;
  } gradients_{};
  ReadAhead<T> x_ahead_, dy_ahead_;
  GatherPixels pixels_;                ///< of the piece
  std::vector<int64_t> inside_;        ///< those of a part that a run reads
  std::vector<WindowAt> all_, some_;   ///< those of a part, and of a run
  std::span<const WindowAt> windows_;  ///< these or those
};

template <class T>
void multiply_transposed(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const WeightPlan<T> plan(p);
  const int64_t size = plan.sums(p);
  const auto partials = plan.sums_are_result() ? nullptr : scratch<T>(plan.chunks * p.groups * size);
  T* sums = plan.sums_are_result() ? dw : elements_of<T>(partials);
  parallel_chunks(plan.tasks(), [&](int64_t task) { WeightTask<T>(plan, p, dy, x, sums, task).run(); });
  if (plan.along == Along::filters)
    for (int64_t g = 0; g < p.groups; ++g)
      sum_transposed(sums + g * size, plan.chunks, p.groups * size, p.depth(), p.group_out(), plan.leading(p),
                     dw + g * p.group_out() * p.depth());
  else if (!plan.sums_are_result())
    sum_partials(sums, plan.chunks, p.groups * size, dw);
}

/// The kernel that computes a gradient instead of products; none where these do.
template <class T>
std::optional<DirectWeightKernel<T>> kernel_for(const Gather& gather) {
  for (const auto& kernel : {lines_weight_kernel<T>(), lanes_weight_kernel<T>()})
    if (kernel.suits(gather)) return kernel;
  return std::nullopt;
}

}  // namespace

template <class T>
void sum_transposed(const T* sums, int64_t chunks, int64_t chunk_size, int64_t depth, int64_t channels,
                    int64_t leading, T* dw) {
  // By blocks that are transposed in the first-level cache.
  constexpr int64_t width = lanes<T>, height = 64;
  parallel_for(0, ceil_div(channels, width), ceil_div(8192, chunks * depth * width),
               [&](int64_t begin, int64_t end) {
                 alignas(64) T block[height * width];
                 for (int64_t k = begin * width; k < std::min(end * width, channels); k += width)
                   for (int64_t first = 0; first < depth; first += height) {
                     const int64_t columns = std::min(width, channels - k);
                     const int64_t rows = std::min(height, depth - first);
                     for (int64_t i = 0; i < rows; ++i) {
                       const T* from = sums + (first + i) * leading + k;
                       T* total = block + i * width;
                       std::copy_n(from, columns, total);
                       for (int64_t c = 1; c < chunks; ++c)
                         for (int64_t j = 0; j < columns; ++j) total[j] += from[c * chunk_size + j];
                     }
                     transpose_matrix(dw + k * depth + first, depth, block, width, rows, columns);
                   }
               });
}

template <class T>
void direct_backward_weight(const ConvProblem& p, const T* dy, const T* x, T* dw) {
  const Gather gather = forward_gather(p);
  if (const auto kernel = kernel_for<T>(gather)) return kernel->gradient(gather, dy, x, dw);
  multiply_transposed(p, dy, x, dw);
}

template void direct_backward_weight(const ConvProblem&, const float*, const float*, float*);
template void direct_backward_weight(const ConvProblem&, const double*, const double*, double*);
template void sum_transposed(const float*, int64_t, int64_t, int64_t, int64_t, int64_t, float*);
template void sum_transposed(const double*, int64_t, int64_t, int64_t, int64_t, int64_t, double*);

int64_t direct_weight_workspace(const ConvProblem& p) {
  int64_t bytes = 0;
  by_type(p, [&]<class T>(Type<T>) {
    const Gather gather = forward_gather(p);
    if (const auto kernel = kernel_for<T>(gather)) {
      bytes = kernel->workspace(gather);
      return;
    }
    const WeightPlan<T> plan(p);
    int64_t elements = num_threads() * (plan.source_elements() + plan.filter_elements());
    if (!plan.sums_are_result()) elements += plan.chunks * p.groups * plan.sums(p);
    bytes = elements * static_cast<int64_t>(sizeof(T));
  });
  return bytes;
}

}  // namespace pleat::ops
