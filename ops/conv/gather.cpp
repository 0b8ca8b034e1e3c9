#include "pleat/ops/conv/gather.h"

#include <algorithm>

#include "pleat/ops/conv/rows.h"

namespace pleat::ops {
namespace {

GatherDim forward_dim(const ConvProblem& p, std::size_t d) {
  GatherDim dim{.count = p.output[d], .source_step = p.stride[d], .taps = {}};
  for (int64_t r = 0; r < p.kernel[d]; ++r) dim.taps.push_back({r, r * p.dilation[d] - p.padding_low[d]});
  return dim;
}

/// The classes of input positions by their remainder modulo stride.
std::vector<GatherDim> backward_dims(const ConvProblem& p, std::size_t d) {
  std::vector<GatherDim> classes;
  const int64_t stride = p.stride[d];
  for (int64_t first = 0; first < std::min(stride, p.input[d]); ++first) {
    GatherDim dim{.first = first, .step = stride, .count = ceil_div(p.input[d] - first, stride), .taps = {}};
    for (int64_t r = p.kernel[d] - 1; r >= 0; --r) {
      const int64_t shift = first + p.padding_low[d] - r * p.dilation[d];
      if (shift % stride == 0) dim.taps.push_back({r, shift / stride});
    }
    classes.push_back(std::move(dim));
  }
  return classes;
}

}  // namespace

Gather forward_gather(const ConvProblem& p) {
  return {p.batch, p.in_channels, p.out_channels,
          p.input, p.output,      {forward_dim(p, 0), forward_dim(p, 1), forward_dim(p, 2)}};
}

std::vector<Gather> backward_input_gathers(const ConvProblem& p) {
  std::vector<Gather> gathers;
  for (const GatherDim& depth : backward_dims(p, 0))
    for (const GatherDim& row : backward_dims(p, 1))
      for (const GatherDim& column : backward_dims(p, 2))
        gathers.push_back({p.batch, p.out_channels, p.in_channels, p.output, p.input, {depth, row, column}});
  return gathers;
}

GatherBand::GatherBand(const Gather& gather, int64_t elements_wanted) : gather_(gather) {
  const GatherDim& row = gather.dims[1];
  const GatherDim& column = gather.dims[2];
  const int64_t channels = gather.source_channels;
  const auto slices = static_cast<int64_t>(gather.dims[0].taps.size());
  columns_ = column.source_step * (column.count - 1) + column.high() - column.low() + 1;
  const int64_t line = std::max<int64_t>(1, slices * columns_ * channels);
  const int64_t fitting = (elements_wanted / line - (row.high() - row.low()) - 1) / row.source_step + 1;
  band_ = std::clamp<int64_t>(fitting, 1, row.count);
  bands_ = ceil_div(row.count, band_);
  lines_ = row.source_step * (band_ - 1) + row.high() - row.low() + 1;
  image_elements_ = line * lines_;
  depths_ = gather.dims[0].count;
  // Several small images make one piece, so that tiles of pixels are full.
  images_ = bands_ > 1 ? 1
                       : std::clamp<int64_t>(elements_wanted / image_elements_, 1,
                                             std::min<int64_t>(gather.batch, 8));
  image_groups_ = ceil_div(gather.batch, images_);

  for (int64_t t = 0; t < slices; ++t)
    for (const GatherDim::Tap& r : row.taps) {
      const int64_t start = (t * lines_ + r.offset - row.low()) * columns_;
      for (const GatherDim::Tap& s : column.taps) {
        const int64_t offset = (start + s.offset - column.low()) * channels;
        if (!runs_.empty() && runs_.back().offset + runs_.back().length == offset)
          runs_.back().length += channels;
        else
          runs_.push_back({offset, channels});
      }
    }
}

template <class T>
void GatherBand::fill(int64_t index, const T* source, T* buffer, std::vector<int64_t>& bases,
                      std::vector<int64_t>& rows) const {
  const int64_t band = index % bands_;
  const int64_t depth = index / bands_ % depths_;
  const int64_t first_image = index / bands_ / depths_ * images_;
  const int64_t images = std::min(images_, gather_.batch - first_image);
  const GatherDim& d = gather_.dims[0];
  const GatherDim& r = gather_.dims[1];
  const GatherDim& c = gather_.dims[2];
  const int64_t channels = gather_.source_channels;
  const int64_t first_row = band * band_;
  const int64_t last_row = std::min(first_row + band_, r.count);
  const int64_t top = r.source_step * first_row + r.low();
  const int64_t left = c.low();
  const int64_t inside_from = std::clamp<int64_t>(-left, 0, columns_);
  const int64_t inside_to = std::clamp<int64_t>(gather_.source[2] - left, inside_from, columns_);

  bases.clear();
  rows.clear();
  for (int64_t i = 0; i < images; ++i) {
    const int64_t n = first_image + i;
    T* to = buffer + i * image_elements_;
    for (const GatherDim::Tap& tap : d.taps) {
      const int64_t slice = d.source_step * depth + tap.offset;
      const bool slice_inside = slice >= 0 && slice < gather_.source[0];
      for (int64_t l = 0; l < lines_; ++l, to += columns_ * channels) {
        const int64_t h = top + l;
        if (!slice_inside || h < 0 || h >= gather_.source[1]) {
          std::fill_n(to, columns_ * channels, T(0));
          continue;
        }
        const T* from =
            source +
            (((n * gather_.source[0] + slice) * gather_.source[1] + h) * gather_.source[2] + left) * channels;
        std::fill_n(to, inside_from * channels, T(0));
        std::copy(from + inside_from * channels, from + inside_to * channels, to + inside_from * channels);
        std::fill(to + inside_to * channels, to + columns_ * channels, T(0));
      }
    }
    const int64_t plane = (n * gather_.result[0] + d.first + d.step * depth) * gather_.result[1];
    for (int64_t j = first_row; j < last_row; ++j) {
      const int64_t line = (plane + r.first + r.step * j) * gather_.result[2] + c.first;
      const int64_t base = i * image_elements_ + r.source_step * (j - first_row) * columns_ * channels;
      for (int64_t k = 0; k < c.count; ++k) {
        bases.push_back(base + c.source_step * k * channels);
        rows.push_back(line + c.step * k);
      }
    }
  }
}

template void GatherBand::fill(int64_t, const float*, float*, std::vector<int64_t>&,
                               std::vector<int64_t>&) const;
template void GatherBand::fill(int64_t, const double*, double*, std::vector<int64_t>&,
                               std::vector<int64_t>&) const;

}  // namespace pleat::ops
