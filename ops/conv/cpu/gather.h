// Private header: not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "pleat/ops/conv/problem.h"

/// A convolution as a gather: every output pixel sums weighted input pixels at fixed offsets. Forward is one
/// such gather; backward_input with stride s falls into s classes of pixels for each dimension, each a gather
/// with the taps that reach it. So one kernel serves both passes, multiplies no zero that stride put in, and
/// scatters nothing.

namespace pleat::ops {

/// Elements of the padded source that stay in the second-level cache beside weights and results.
inline constexpr int64_t band_elements = 64 << 10;

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
  int64_t high() const { return taps.back().offset; }
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
  /// Products that make one result element.
  int64_t depth() const { return taps() * source_channels; }
};

/// y from x.
Gather forward_gather(const ConvProblem& problem);

/// dx from dy: one gather for each class of input pixels. Classes that no tap reaches have no taps: their dx
/// is 0.
std::vector<Gather> backward_input_gathers(const ConvProblem& problem);

/// The kernel's taps in the order in which a gather reads them.
std::vector<int64_t> kernel_taps(const Gather& gather, const Spatial& kernel);

/// The weights as a gather meets them, and the distances of their elements.
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

/// Pieces of the work: some images, or one image's band of rows at one depth, or a part of one row. A piece's
/// source is copied into a buffer with the padding around it, so that kernels meet no borders.
class GatherBand {
 public:
  /// `elements_wanted`: about how large the buffer may be; `stride`: elements from one of its pixels to the
  /// next.
  GatherBand(const Gather& gather, int64_t elements_wanted, int64_t stride);
  GatherBand(const Gather& gather, int64_t elements_wanted)
      : GatherBand(gather, elements_wanted, gather.source_channels) {}

  int64_t count() const { return image_groups_ * depths_ * bands_ * parts_; }
  int64_t buffer_elements() const { return images_ * image_elements_; }
  /// Where each tap reads, relative to a pixel's base.
  std::vector<int64_t> tap_offsets() const;

  /// Piece `index`: fills `buffer` with `channels` of the source from the first on, 0 after them, and lists
  /// the pixels. Their runs leave out the taps that would read padding alone.
  template <class T>
  void fill(int64_t index, const T* source, int64_t first_channel, int64_t channels, T* buffer,
            GatherPixels& pixels) const;

 private:
  /// One dimension of a piece in the buffer. What lies between the windows of a single tap is left out.
  struct Side {
    int64_t step;     ///< between the windows of neighbouring output pixels
    int64_t reach;    ///< of a window
    int64_t spacing;  ///< between neighbours of the buffer, in the source

    explicit Side(const GatherDim& dim);
    int64_t length(int64_t outputs) const { return step * (outputs - 1) + reach; }
    /// The most output pixels, `most` or fewer, whose windows fit into a length; about equally many in each
    /// part of `count`.
    int64_t outputs(int64_t length, int64_t most, int64_t count) const;
  };

  /// Neighbouring output pixels j of a dimension that have the same taps inside the source.
  struct Span {
    int64_t first;
    int64_t end;
    std::size_t first_tap;
    std::size_t end_tap;
  };
  static std::vector<Span> spans(const GatherDim& dim, int64_t source);
  int64_t tap_offset(std::size_t slice, std::size_t row, std::size_t column) const;
  std::vector<GatherRun> runs(const Span& slices, const Span& rows, const Span& columns,
                              int64_t channels) const;

  /// Copies some channels of `positions` pixels of a source line, of which `left` is the first: 0 where there
  /// are none.
  template <class T>
  void fill_line(const T* line, int64_t left, int64_t positions, int64_t channels, T* to) const;

  const Gather& gather_;
  int64_t stride_;
  std::vector<Span> spans_[3];
  Side row_;
  Side column_;
  int64_t images_;  ///< of a piece
  int64_t image_groups_;
  int64_t depths_;
  int64_t band_;  ///< rows j of a piece
  int64_t bands_;
  int64_t part_;  ///< columns of a piece
  int64_t parts_;
  int64_t lines_;           ///< source rows of a piece, with padding
  int64_t columns_;         ///< source columns, with padding
  int64_t image_elements_;  ///< of one image in the buffer
};

}  // namespace pleat::ops
