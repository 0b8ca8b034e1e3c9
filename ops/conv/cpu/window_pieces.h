// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/ops/conv/cpu/gather.h"
#include "pleat/ops/conv/nhwc.h"

/// How the gradient of the weight cuts a convolution's windows: in pieces whose part of x fits a buffer.

namespace pleat::ops {

/// One dimension of the pieces that x is cut into. In the buffer `step` lies between the first elements of
/// neighbouring windows, and a tap `offset` into its window; what no tap reads is not there.
struct WindowDim {
  int64_t count;  ///< windows
  int64_t step;
  int64_t source_step;    ///< between windows, in x
  int64_t source_stride;  ///< between neighbours of the buffer, in x
  int64_t low;            ///< of the first window, in x
  std::vector<int64_t> offsets;

  explicit WindowDim(const GatherDim& dim);
  /// Elements that some neighbouring windows read.
  int64_t extent(int64_t windows) const { return (windows - 1) * step + offsets.back() + 1; }
  /// How many windows at a time, in equal shares, so that they read about as much as `wanted`.
  int64_t share(int64_t wanted) const;
};

/// Pieces of the windows: a stretch of a line, else a band of lines, else some images, so that what they read
/// of x is about as much as wanted.
class WindowPieces {
 public:
  /// `wanted`: pixels.
  WindowPieces(const Gather& gather, int64_t wanted);

  int64_t count() const {
    return ceil_div(batch_, images_) * slice_.count * ceil_div(line_.count, lines_) *
           ceil_div(column_.count, columns_);
  }
  int64_t windows() const { return batch_ * slice_.count * line_.count * column_.count; }
  int64_t windows_of_piece() const { return images_ * lines_ * columns_; }
  int64_t pixels_of_piece() const { return images_ * image_pixels_; }

  /// Where the taps of a window are, as pixels in the buffer, in the order of the weight.
  std::vector<int64_t> taps() const;
  /// Taps that lie side by side.
  int64_t neighbouring_taps() const {
    const auto taps = static_cast<int64_t>(column_.offsets.size());
    return column_.offsets.back() + 1 == taps ? taps : 1;
  }

  /// Calls `copy(to, from, count, stride)` for the stretches of pixels of piece `index` that lie in x, and
  /// `clear(to, count)` for those in the padding; lists the first pixel of each window in the buffer, and its
  /// row in dy.
  template <class Copy, class Clear>
  void visit(int64_t index, const Copy& copy, const Clear& clear, std::vector<int64_t>& firsts,
             std::vector<int64_t>& rows) const;

 private:
  int64_t batch_;
  Spatial source_;
  WindowDim slice_, line_, column_;
  int64_t columns_, lines_, images_;  ///< windows of a piece
  int64_t image_pixels_;              ///< of one image in the buffer
};

template <class Copy, class Clear>
void WindowPieces::visit(int64_t index, const Copy& copy, const Clear& clear, std::vector<int64_t>& firsts,
                         std::vector<int64_t>& rows) const {
  const auto next = [&index](int64_t pieces) { return std::exchange(index, index / pieces) % pieces; };
  const int64_t first_column = next(ceil_div(column_.count, columns_)) * columns_;
  const int64_t first_line = next(ceil_div(line_.count, lines_)) * lines_;
  const int64_t slice = next(slice_.count);
  const int64_t first_image = index * images_;
  const int64_t images = std::min(images_, batch_ - first_image);
  const int64_t lines = std::min(lines_, line_.count - first_line);
  const int64_t columns = std::min(columns_, column_.count - first_column);

  const int64_t line_pixels = column_.extent(columns_);
  const int64_t filled = column_.extent(columns);
  const int64_t left = column_.source_step * first_column + column_.low;
  // Pixels left + i * stride of the line that are inside it.
  const int64_t stride = column_.source_stride;
  const int64_t from = std::clamp<int64_t>(ceil_div(-left, stride), 0, filled);
  const int64_t to = std::clamp<int64_t>(ceil_div(source_[2] - left, stride), from, filled);
  firsts.resize(static_cast<std::size_t>(images * lines * columns));
  rows.resize(firsts.size());
  int64_t* next_first = firsts.data();
  int64_t* next_row = rows.data();
  for (int64_t i = 0; i < images; ++i) {
    const int64_t n = first_image + i;
    int64_t at = i * image_pixels_;
    for (const int64_t offset : slice_.offsets) {
      const int64_t d = slice_.source_step * slice + slice_.low + offset * slice_.source_stride;
      for (int64_t l = 0; l < line_.extent(lines_); ++l, at += line_pixels) {
        const int64_t h = line_.source_step * first_line + line_.low + l * line_.source_stride;
        if (d < 0 || d >= source_[0] || h < 0 || h >= source_[1]) {
          clear(at, filled);
          continue;
        }
        clear(at, from);
        if (to > from)
          copy(at + from, ((n * source_[0] + d) * source_[1] + h) * source_[2] + left + from * stride,
               to - from, stride);
        clear(at + to, filled - to);
      }
    }
    for (int64_t j = 0; j < lines; ++j) {
      const int64_t first = i * image_pixels_ + j * line_.step * line_pixels;
      const int64_t row = ((n * slice_.count + slice) * line_.count + first_line + j) * column_.count;
      for (int64_t k = 0; k < columns; ++k) *next_first++ = first + k * column_.step;
      for (int64_t k = 0; k < columns; ++k) *next_row++ = row + first_column + k;
    }
  }
}

}  // namespace pleat::ops
