// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/ops/conv/problem.h"

/// A convolution as a gather: every output pixel sums weighted input pixels at fixed offsets. Forward is one
/// such gather; backward_input with stride s falls into s classes of pixels for each dimension, each a gather
/// with the taps that reach it. So one kernel serves both passes, multiplies no zero that stride put in, and
/// scatters nothing.

namespace pleat::ops {

/// One dimension of a gather: output pixel first + step * j reads source pixel source_step * j + offset of
/// each tap.
struct GatherDim {
  struct Tap {
    int64_t kernel;  ///< index in the weight
    int64_t offset;
  };
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;  ///< j = 0 ... count-1
  int64_t source_step = 1;
  std::vector<Tap> taps;  ///< by rising offset

  int64_t low() const { return taps.front().offset; }
  int64_t reach() const { return taps.back().offset - low() + 1; }

  /// In a copy of the source that leaves out what lies between the windows of a single tap: from a window to
  /// that of the next output pixel, and, in the source, from an element to its neighbour.
  int64_t window_step() const { return taps.size() == 1 ? 1 : source_step; }
  int64_t spacing() const { return taps.size() == 1 ? source_step : 1; }
  /// Elements of the copy that neighbouring output pixels read.
  int64_t extent(int64_t outputs) const { return window_step() * (outputs - 1) + reach(); }
  /// Output pixels for each piece of the dimension, `most` or fewer, in about equal pieces, so that they read
  /// about `length` elements of the copy.
  int64_t outputs(int64_t length, int64_t most) const;
};

struct Gather {
  int64_t batch = 0;
  int64_t source_channels = 0;
  int64_t result_channels = 0;
  Spatial source{};
  Spatial result{};
  GatherDim dims[3];

  int64_t taps() const {
    return static_cast<int64_t>(dims[0].taps.size() * dims[1].taps.size() * dims[2].taps.size());
  }
  int64_t pixels() const { return batch * dims[0].count * dims[1].count * dims[2].count; }
  /// Products that make one result element.
  int64_t depth() const { return taps() * source_channels; }
};

/// Elements of the padded source that stay in the second-level cache beside weights and results.
inline constexpr int64_t buffer_elements_wanted = 64 << 10;

/// y from x.
Gather forward_gather(const ConvProblem& problem);

/// dx from dy: one gather for each class of input pixels. Classes that no tap reaches have no taps: their dx
/// is 0.
std::vector<Gather> backward_input_gathers(const ConvProblem& problem);

/// The kernel's taps in the order in which a gather reads them.
std::vector<int64_t> kernel_taps(const Gather& gather, const Spatial& kernel);

/// The weights in the order in which a gather reads them, and the distances of their elements.
template <class T>
struct GatherWeights {
  const T* data;
  std::vector<int64_t> taps;  ///< of the kernel, in the gather's order
  int64_t tap;
  int64_t source;  ///< channels; this distance or the next is 1
  int64_t result;
};

/// A stretch of consecutive source elements that a pixel reads, relative to its base.
struct GatherRun {
  int64_t offset;
  int64_t length;
  int64_t tap;  ///< the first one's, among all taps by rising offset
};

/// The pixels of a piece.
struct GatherPixels {
  /// Pixels that have the same taps inside the source: those after the group before, up to `end`.
  struct Group {
    std::size_t end;
    std::vector<GatherRun> runs;
  };
  std::vector<int64_t> bases;  ///< of each pixel in the buffer
  std::vector<int64_t> rows;   ///< in the result
  std::vector<Group> groups;
};

/// Pieces of a gather: some images, or one image's band of lines at one depth, or a part of one line. What a
/// piece reads of the source is copied into a buffer with the padding around it, so that kernels need no
/// border cases; what no tap reads is left out.
class GatherPieces {
 public:
  /// For kernels that compute tiles of result pixels. `elements_wanted`: about how large the buffer may be;
  /// `stride`: elements from one of its pixels to the next.
  static GatherPieces for_results(const Gather& gather, int64_t elements_wanted, int64_t stride);
  static GatherPieces for_results(const Gather& gather, int64_t elements_wanted) {
    return for_results(gather, elements_wanted, gather.source_channels);
  }
  /// For sums over all result pixels. `pixels_wanted`: about how many pixels of the source a piece reads; the
  /// stride is 1. The pixels of a piece are one group, in their order in the result.
  static GatherPieces for_sums(const Gather& gather, int64_t pixels_wanted);

  int64_t count() const {
    return ceil_div(gather_.batch, images_) * gather_.dims[0].count *
           ceil_div(gather_.dims[1].count, lines_) * ceil_div(gather_.dims[2].count, columns_);
  }
  /// Result pixels in all, and of a piece.
  int64_t pixels() const { return gather_.pixels(); }
  int64_t pixels_of_piece() const { return images_ * lines_ * columns_; }
  /// The buffer.
  int64_t buffer_pixels() const { return images_ * image_pixels_; }
  int64_t buffer_elements() const { return buffer_pixels() * stride_; }
  /// How many taps lie side by side in the buffer: those of a line of the kernel, or single ones.
  int64_t adjacent_taps() const {
    const auto taps = static_cast<int64_t>(gather_.dims[2].taps.size());
    return gather_.dims[2].reach() == taps ? taps : 1;
  }
  /// Where each tap reads in the buffer, relative to a pixel's base.
  std::vector<int64_t> tap_offsets() const;

  /// Calls `copy(to, from, count, step)` for the stretches of pixels of piece `index` that lie in the source,
  /// every `step`th of it, and `clear(to, count)` for those in the padding; `to` is a pixel of the buffer.
  template <class Copy, class Clear>
  void visit(int64_t index, const Copy& copy, const Clear& clear) const;
  /// Lists the pixels of piece `index`. Their runs, of `channels` for each tap (0: no runs are listed), leave
  /// out the taps that would read padding alone.
  void list(int64_t index, int64_t channels, GatherPixels& pixels) const;
  /// Both: fills `buffer` with `channels` of the source from the first on, 0 after them.
  template <class T>
  void fill(int64_t index, const T* source, int64_t first_channel, int64_t channels, T* buffer,
            GatherPixels& pixels) const;

 private:
  /// Neighbouring output pixels j of a dimension that have the same taps inside the source.
  struct Span {
    int64_t first;
    int64_t end;
    std::size_t first_tap;
    std::size_t end_tap;
  };
  /// The output pixels of a piece, by dimension.
  struct Piece {
    int64_t first_image, images;
    int64_t slice;
    int64_t first_line, lines;
    int64_t first_column, columns;
  };

  GatherPieces(const Gather& gather, int64_t stride) : gather_(gather), stride_(stride) {}
  void set_sizes(int64_t images, int64_t lines, int64_t columns);
  static std::vector<Span> spans(const GatherDim& dim, int64_t source);
  Piece piece(int64_t index) const;
  int64_t tap_offset(std::size_t slice, std::size_t row, std::size_t column) const;
  std::vector<GatherRun> runs(const Span& slices, const Span& rows, const Span& columns,
                              int64_t channels) const;

  Gather gather_;
  int64_t stride_;
  std::vector<Span> spans_[3];
  int64_t images_ = 1, lines_ = 1, columns_ = 1;  ///< output pixels of a piece
  int64_t buffer_lines_ = 0;                      ///< of the source, for one slice
  int64_t line_pixels_ = 0;                       ///< of the buffer
  int64_t image_pixels_ = 0;                      ///< of one image in the buffer
};

template <class Copy, class Clear>
void GatherPieces::visit(int64_t index, const Copy& copy, const Clear& clear) const {
  const Piece p = piece(index);
  const auto& [slices, lines, columns] = gather_.dims;
  const Spatial& source = gather_.source;
  const int64_t filled = columns.extent(p.columns);
  const int64_t left = columns.source_step * p.first_column + columns.low();
  // Pixels left + i * spacing of the line that are inside it.
  const int64_t spacing = columns.spacing();
  const int64_t from = std::clamp<int64_t>(ceil_div(-left, spacing), 0, filled);
  const int64_t end = std::clamp<int64_t>(ceil_div(source[2] - left, spacing), from, filled);
  for (int64_t i = 0; i < p.images; ++i)
    for (std::size_t t = 0; t < slices.taps.size(); ++t) {
      const int64_t d = slices.source_step * p.slice + slices.taps[t].offset;
      int64_t at = i * image_pixels_ + static_cast<int64_t>(t) * buffer_lines_ * line_pixels_;
      for (int64_t l = 0; l < lines.extent(p.lines); ++l, at += line_pixels_) {
        const int64_t h = lines.source_step * p.first_line + lines.low() + l * lines.spacing();
        if (d < 0 || d >= source[0] || h < 0 || h >= source[1]) {
          clear(at, filled);
          continue;
        }
        const int64_t line = (((p.first_image + i) * source[0] + d) * source[1] + h) * source[2];
        clear(at, from);
        if (end > from) copy(at + from, line + left + from * spacing, end - from, spacing);
        clear(at + end, filled - end);
      }
    }
}

}  // namespace pleat::ops
