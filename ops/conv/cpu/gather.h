// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/small_vector.h"
#include "pleat/core/tensor/shared_blocks.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/nhwc.h"
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
  SmallVector<Tap, 8> taps;  ///< by rising offset

  int64_t low() const { return taps.front().offset; }
  int64_t reach() const { return taps.back().offset - low() + 1; }

  /// Of what `outputs` neighbouring output pixels read, a copy holds all from the first element to the last,
  /// or, where that is less, a stretch of single elements for each tap.
  bool taps_apart(int64_t outputs) const {
    return static_cast<int64_t>(taps.size()) * outputs < source_step * (outputs - 1) + reach();
  }
  /// Elements of that copy.
  int64_t extent(int64_t outputs) const {
    return taps_apart(outputs) ? static_cast<int64_t>(taps.size()) * outputs
                               : source_step * (outputs - 1) + reach();
  }
  /// Output pixels for each piece of the dimension, `most` or fewer, in about equal pieces, so that they read
  /// about `length` elements of a source of so many.
  int64_t outputs(int64_t length, int64_t most, int64_t source) const;

  /// Neighbouring output pixels j that have the same taps inside a source of so many elements.
  struct Span {
    int64_t first;
    int64_t end;
    std::size_t first_tap;
    std::size_t end_tap;
  };
  using Spans = SmallVector<Span, 8>;
  Spans spans(int64_t source) const;
  /// Output pixels of which a tap is inside a source of so many elements: from the first to the second.
  std::pair<int64_t, int64_t> inside(std::size_t tap, int64_t source) const;
};

struct Gather {
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t source_channels = 0;  ///< of a group, as the next
  int64_t result_channels = 0;
  Spatial source{};
  Spatial result{};
  GatherDim dims[3];

  int64_t taps() const {
    return static_cast<int64_t>(dims[0].taps.size() * dims[1].taps.size() * dims[2].taps.size());
  }
  int64_t pixels() const { return batch * dims[0].count * dims[1].count * dims[2].count; }
  /// Pixels wanted in a piece, `most` or fewer: few enough for many threads, but `fewest` at least, for which
  /// a piece's share of the weights is read.
  int64_t pixels_wanted(int64_t most, int64_t fewest = 256) const;
  /// Elements from a pixel to the next.
  int64_t source_pitch() const { return groups * source_channels; }
  int64_t result_pitch() const { return groups * result_channels; }
  /// Elements of dimension d that so many neighbouring output pixels read, without padding: it takes room in
  /// a copy, but none in a cache.
  int64_t read(std::size_t d, int64_t outputs) const { return std::min(dims[d].extent(outputs), source[d]); }
  /// Products that make one result element.
  int64_t depth() const { return taps() * source_channels; }
};

/// Elements of the padded source that stay in the second-level cache beside weights and results.
inline constexpr int64_t buffer_elements_wanted = 64 << 10;

template <class T>
inline constexpr int64_t line_elements = 64 / static_cast<int64_t>(sizeof(T));  ///< of a cache's line

/// Whether elements at such a distance share a few sets of the first-level cache, which those of a tile would
/// fill: they are copied to another distance.
template <class T>
constexpr bool is_crowded(int64_t distance) {
  return distance * static_cast<int64_t>(sizeof(T)) % 1024 == 0;
}

/// y from x.
Gather forward_gather(const ConvProblem& problem);

/// Of backward_input, dx from dy: one gather for each class of input pixels. Classes that no tap reaches have
/// no taps: their dx is 0. Of other passes the forward gather.
std::vector<Gather> gathers_of(const ConvProblem& problem, ConvPass pass);
/// The first of backward_input alone: there are as many as strides have steps.
Gather first_backward_input_gather(const ConvProblem& problem);

/// The kernel's taps in the order in which a gather reads them.
SmallVector<int64_t, 32> kernel_taps(const Gather& gather, const Spatial& kernel);

/// The weights in the order in which a gather reads them, and the distances of their elements.
template <class T>
struct GatherWeights {
  const T* data;
  SmallVector<int64_t, 32> taps;  ///< of the kernel, in the gather's order
  int64_t tap;
  int64_t source;  ///< channels; this distance or the next is 1
  int64_t result;
  int64_t group;
  SharedBlocks* shared = nullptr;  ///< of packed weights that are kept

  /// Packed weights, to be kept: so many elements, which `pack` writes.
  template <class Pack>
  std::shared_ptr<std::byte> packed(int64_t elements, const Pack& pack) const {
    const auto make = [&] {
      std::shared_ptr<std::byte> memory = scratch<T>(elements);
      pack(elements_of<T>(memory));
      return memory;
    };
    return shared == nullptr ? make() : shared->prepared(elements * static_cast<int64_t>(sizeof(T)), make);
  }
};

/// Those of w [K, taps, C/g] for one of the gathers of a pass.
template <class T>
GatherWeights<T> gather_weights(const Gather& gather, const ConvProblem& p, ConvPass pass, const T* w,
                                SharedBlocks* shared = nullptr) {
  const bool forward = pass == ConvPass::forward;
  return {w,
          kernel_taps(gather, p.kernel),
          p.group_in(),
          forward ? 1 : p.depth(),
          forward ? p.depth() : 1,
          p.group_out() * p.depth(),
          shared};
}

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
/// piece reads of the source is copied into a buffer; what no tap reads is left out.
class GatherPieces {
 public:
  /// For kernels that compute tiles of result pixels. `elements_wanted`: about how large the buffer may be;
  /// `stride`: elements from one of its pixels to the next.
  static GatherPieces for_results(const Gather& gather, int64_t elements_wanted, int64_t stride);
  /// The same for kernels that read the source where it lies, with `most` pixels of the result or fewer.
  /// There is no buffer: `bases` of pixels and offsets of taps are those in the source. With `whole_lines`
  /// all pixels of a line have the same taps, of which those beyond its borders lie in other lines.
  static GatherPieces in_place(const Gather& gather, int64_t most, bool whole_lines = false);
  /// For sums over all result pixels, of which a piece has `most` or fewer. The pixels of a piece are one
  /// group, in their order in the result: what each tap reads inside, all_inside says. A piece reads about
  /// `source_pixels`, its stride is 1, and the buffer has the padding, too; or, `in_place`, it reads the
  /// source where it lies, as in_place does.
  static GatherPieces for_sums(const Gather& gather, int64_t source_pixels, int64_t most,
                               bool in_place = false);

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
  /// Calls `copy(to, from, count, step)` for the stretches of pixels of piece `index` that lie in the source,
  /// every `step`th of it, and `clear(to, count)` for those in the padding; `to` is a pixel of the buffer.
  template <class Copy, class Clear>
  void visit(int64_t index, const Copy& copy, const Clear& clear) const;
  /// Lists the pixels of piece `index`. Their runs, of `channels` for each tap, leave out the taps that would
  /// read padding alone.
  void list(int64_t index, int64_t channels, GatherPixels& pixels) const;
  /// The same in a list of this thread's, which the next call overwrites, or in one that is kept.
  const GatherPixels& listed(int64_t index, int64_t channels) const;
  /// Keeps the lists of all pieces, if they are short: of tasks that are run many times.
  void keep_lists(int64_t channels);
  /// Lists those of the pixels `first` to `end` of piece `index`, in the order of for_sums, for which the
  /// taps from `tap` on, of all taps by rising offset, read inside the source: one, or those of a line that
  /// are left with it, of which some may lie in its padding. Where these are all, returns true and lists
  /// nothing.
  bool all_inside(int64_t index, int64_t tap, bool of_line, int64_t first, int64_t end,
                  std::vector<int64_t>& pixels) const;
  /// Fills `buffer` with `channels` of the source from the first on, and 0 after them to the end of a vector,
  /// as far as the stride goes. Padding is left out.
  template <class T>
  void fill(int64_t index, const T* source, int64_t first_channel, int64_t channels, T* buffer) const;

 private:
  using Span = GatherDim::Span;
  /// The output pixels of a piece, by dimension.
  struct Piece {
    int64_t first_image, images;
    int64_t slice;
    int64_t first_line, lines;
    int64_t first_column, columns;
  };

  /// Elements of a dimension's copy that are evenly spaced in the source.
  struct Stretch {
    int64_t to;
    int64_t from;
    int64_t count;
    int64_t spacing;
  };
  using Stretches = SmallVector<Stretch, 8>;

  GatherPieces(const Gather& gather, int64_t stride) : gather_(gather), stride_(stride) {}
  /// So that a piece reads about `source_pixels`, for `most` pixels of the result or fewer.
  void choose_sizes(int64_t source_pixels, int64_t most, bool whole_lines = false);
  void set_sizes(int64_t images, int64_t lines, int64_t columns);
  Piece piece(int64_t index) const;
  Stretches stretches(std::size_t d, int64_t first, int64_t outputs) const;
  int64_t tap_offset(std::size_t slice, std::size_t row, std::size_t column) const {
    return (tap_at_[0][slice] + tap_at_[1][row] + tap_at_[2][column]) * stride_;
  }
  /// Sets `runs` to those of pixels that have the taps of these spans.
  void list_runs(const Span& slices, const Span& rows, const Span& columns, int64_t channels,
                 std::vector<GatherRun>& runs) const;

  Gather gather_;
  int64_t stride_;
  bool in_place_ = false;
  GatherDim::Spans spans_[3];
  int64_t images_ = 1, lines_ = 1, columns_ = 1;  ///< output pixels of a piece
  // Distances in pixels of the buffer, or of the source in place.
  Spatial pitch_{};  ///< of elements
  Spatial step_{};   ///< of output pixels
  SmallVector<int64_t, 8> tap_at_[3];
  int64_t image_pixels_ = 0;                               ///< of one image
  std::shared_ptr<const std::vector<GatherPixels>> kept_;  ///< of the pieces, for runs of `kept_channels_`
  int64_t kept_channels_ = 0;
};

/// Copies a pixel's channels, by vectors, of which the last may be copied twice: that costs less than a call.
template <class T>
void copy_channels(const T* from, int64_t count, T* to) {
  const auto by = [&](auto bytes) {
    constexpr int64_t piece = bytes / static_cast<int64_t>(sizeof(T));
    if (count < piece) return false;
    for (int64_t i = 0; i < count; i += piece) {
      const int64_t at = std::min(i, count - piece);
      std::memcpy(to + at, from + at, bytes);
    }
    return true;
  };
  if (by(std::integral_constant<int, 64>()) || by(std::integral_constant<int, 16>())) return;
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

template <class Copy, class Clear>
void GatherPieces::visit(int64_t index, const Copy& copy, const Clear& clear) const {
  const Piece p = piece(index);
  const Spatial& source = gather_.source;
  const Stretches slices = stretches(0, p.slice, 1);
  const Stretches lines = stretches(1, p.first_line, p.lines);
  const Stretches columns = stretches(2, p.first_column, p.columns);
  const auto visit_line = [&](int64_t at, int64_t image, int64_t d, int64_t h) {
    const bool inside = d >= 0 && d < source[0] && h >= 0 && h < source[1];
    const int64_t line = ((image * source[0] + d) * source[1] + h) * source[2];
    for (const Stretch& s : columns) {
      // Of its elements those that are inside the line.
      const int64_t begin = inside ? std::clamp<int64_t>(ceil_div(-s.from, s.spacing), 0, s.count) : s.count;
      const int64_t end = std::clamp<int64_t>(ceil_div(source[2] - s.from, s.spacing), begin, s.count);
      clear(at + s.to, begin);
      if (end > begin) copy(at + s.to + begin, line + s.from + begin * s.spacing, end - begin, s.spacing);
      clear(at + s.to + end, s.count - end);
    }
  };
  for (int64_t i = 0; i < p.images; ++i)
    for (const Stretch& slice : slices)
      for (int64_t t = 0; t < slice.count; ++t)
        for (const Stretch& stretch : lines)
          for (int64_t l = 0; l < stretch.count; ++l)
            visit_line(i * image_pixels_ + (slice.to + t) * pitch_[0] + (stretch.to + l) * pitch_[1],
                       p.first_image + i, slice.from + t * slice.spacing, stretch.from + l * stretch.spacing);
}

}  // namespace pleat::ops
