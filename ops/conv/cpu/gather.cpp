#include "pleat/ops/conv/cpu/gather.h"

#include <algorithm>

#include "pleat/core/base/checked_math.h"
#include "pleat/ops/conv/nhwc.h"

namespace pleat::ops {
namespace {

/// What a piece of the work is cut for: pieces for many threads, pixels in each, of which kernels take so
/// many at once.
constexpr int64_t pieces_wanted = 16;
constexpr int64_t fewest_pixels = 256;
constexpr int64_t most_pixels = 2048;
constexpr int64_t pixel_multiple = 8;

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

/// Images of one pixel are a line of pixels.
ConvProblem joined_pixels(const ConvProblem& problem) {
  ConvProblem p = problem;
  if (is_pointwise(p) && p.input == Spatial{1, 1, 1}) {
    p.input[2] = p.output[2] = p.batch;
    p.batch = 1;
  }
  return p;
}

}  // namespace

Gather forward_gather(const ConvProblem& problem) {
  const ConvProblem p = joined_pixels(problem);
  return {p.batch, p.in_channels, p.out_channels,
          p.input, p.output,      {forward_dim(p, 0), forward_dim(p, 1), forward_dim(p, 2)}};
}

std::vector<Gather> backward_input_gathers(const ConvProblem& problem) {
  const ConvProblem p = joined_pixels(problem);
  std::vector<Gather> gathers;
  for (const GatherDim& depth : backward_dims(p, 0))
    for (const GatherDim& row : backward_dims(p, 1))
      for (const GatherDim& column : backward_dims(p, 2))
        gathers.push_back({p.batch, p.out_channels, p.in_channels, p.output, p.input, {depth, row, column}});
  return gathers;
}

std::vector<int64_t> kernel_taps(const Gather& gather, const Spatial& kernel) {
  std::vector<int64_t> taps;
  for (const GatherDim::Tap& t : gather.dims[0].taps)
    for (const GatherDim::Tap& r : gather.dims[1].taps)
      for (const GatherDim::Tap& s : gather.dims[2].taps)
        taps.push_back((t.kernel * kernel[1] + r.kernel) * kernel[2] + s.kernel);
  return taps;
}

GatherBand::Side::Side(const GatherDim& dim)
    : step(dim.taps.size() == 1 ? 1 : dim.source_step),
      reach(dim.high() - dim.low() + 1),
      spacing(dim.taps.size() == 1 ? dim.source_step : 1) {}

int64_t GatherBand::Side::outputs(int64_t length, int64_t most, int64_t count) const {
  const int64_t fitting = std::clamp<int64_t>(std::min((length - reach) / step + 1, most), 1, count);
  return ceil_div(count, ceil_div(count, fitting));
}

GatherBand::GatherBand(const Gather& gather, int64_t elements_wanted, int64_t stride)
    : gather_(gather),
      stride_(stride),
      spans_{spans(gather.dims[0], gather.source[0]), spans(gather.dims[1], gather.source[1]),
             spans(gather.dims[2], gather.source[2])},
      row_(gather.dims[1]),
      column_(gather.dims[2]) {
  const GatherDim& row = gather.dims[1];
  const GatherDim& column = gather.dims[2];
  const auto slices = static_cast<int64_t>(gather.dims[0].taps.size());
  depths_ = gather.dims[0].count;
  // Pixels enough for a piece's share of the weights to be read often, few enough for many threads.
  const int64_t pixels = gather.batch * depths_ * row.count * column.count;
  const int64_t most = std::clamp<int64_t>(pixels / pieces_wanted, fewest_pixels, most_pixels);
  const int64_t elements = std::max<int64_t>(1, elements_wanted / (slices * stride));
  part_ = column_.outputs(elements / row_.length(1), most, column.count);
  if (part_ < column.count) part_ = std::min(column.count, round_up(part_, pixel_multiple));
  parts_ = ceil_div(column.count, part_);
  columns_ = column_.length(part_);
  band_ = row_.outputs(elements / columns_, most / part_, row.count);
  bands_ = ceil_div(row.count, band_);
  lines_ = row_.length(band_);
  image_elements_ = slices * lines_ * columns_ * stride;
  // Several small images make one piece, so that tiles of pixels are full.
  const int64_t images = std::min(elements_wanted / image_elements_, most / (band_ * part_));
  images_ = bands_ * parts_ > 1 ? 1 : std::clamp<int64_t>(images, 1, gather.batch);
  image_groups_ = ceil_div(gather.batch, images_);
}

std::vector<GatherBand::Span> GatherBand::spans(const GatherDim& dim, int64_t source) {
  // A tap is inside from one output pixel on to another.
  std::vector<int64_t> bounds{0, dim.count};
  for (const GatherDim::Tap& tap : dim.taps)
    for (const int64_t border : {int64_t{0}, source})
      bounds.push_back(std::clamp<int64_t>(ceil_div(border - tap.offset, dim.source_step), 0, dim.count));
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  std::vector<Span> spans;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const auto taps_before = [&](int64_t border) {
      const auto outside = [&](const GatherDim::Tap& tap) {
        return dim.source_step * bounds[i] + tap.offset >= border;
      };
      return static_cast<std::size_t>(std::find_if(dim.taps.begin(), dim.taps.end(), outside) -
                                      dim.taps.begin());
    };
    spans.push_back({bounds[i], bounds[i + 1], taps_before(0), taps_before(source)});
  }
  return spans;
}

int64_t GatherBand::tap_offset(std::size_t slice, std::size_t row, std::size_t column) const {
  const int64_t line =
      static_cast<int64_t>(slice) * lines_ + gather_.dims[1].taps[row].offset - gather_.dims[1].low();
  return (line * columns_ + gather_.dims[2].taps[column].offset - gather_.dims[2].low()) * stride_;
}

std::vector<int64_t> GatherBand::tap_offsets() const {
  std::vector<int64_t> offsets;
  for (std::size_t t = 0; t < gather_.dims[0].taps.size(); ++t)
    for (std::size_t r = 0; r < gather_.dims[1].taps.size(); ++r)
      for (std::size_t s = 0; s < gather_.dims[2].taps.size(); ++s) offsets.push_back(tap_offset(t, r, s));
  return offsets;
}

std::vector<GatherRun> GatherBand::runs(const Span& slices, const Span& rows, const Span& columns,
                                        int64_t channels) const {
  std::vector<GatherRun> runs;
  for (std::size_t t = slices.first_tap; t < slices.end_tap; ++t)
    for (std::size_t r = rows.first_tap; r < rows.end_tap; ++r)
      for (std::size_t s = columns.first_tap; s < columns.end_tap; ++s) {
        const int64_t offset = tap_offset(t, r, s);
        const auto tap =
            static_cast<int64_t>((t * gather_.dims[1].taps.size() + r) * gather_.dims[2].taps.size() + s);
        if (!runs.empty() && runs.back().offset + runs.back().length == offset &&
            runs.back().tap + runs.back().length / channels == tap)
          runs.back().length += channels;
        else
          runs.push_back({offset, channels, tap});
      }
  return runs;
}

template <class T>
void GatherBand::fill_line(const T* line, int64_t left, int64_t positions, int64_t channels, T* to) const {
  const int64_t all = gather_.source_channels;
  const int64_t spacing = column_.spacing;
  const int64_t from = std::clamp<int64_t>(ceil_div(-left, spacing), 0, positions);
  const int64_t end = std::clamp<int64_t>(ceil_div(gather_.source[2] - left, spacing), from, positions);
  std::fill_n(to, from * stride_, T(0));
  if (spacing == 1 && stride_ == all)
    std::copy_n(line + (left + from) * all, (end - from) * all, to + from * all);
  else
    for (int64_t i = from; i < end; ++i) {
      T* pixel = to + i * stride_;
      std::copy_n(line + (left + i * spacing) * all, channels, pixel);
      std::fill(pixel + channels, pixel + stride_, T(0));
    }
  std::fill(to + end * stride_, to + positions * stride_, T(0));
}

template <class T>
void GatherBand::fill(int64_t index, const T* source, int64_t first_channel, int64_t channels, T* buffer,
                      GatherPixels& pixels) const {
  const int64_t part = index % parts_;
  const int64_t band = index / parts_ % bands_;
  const int64_t depth = index / parts_ / bands_ % depths_;
  const int64_t first_image = index / parts_ / bands_ / depths_ * images_;
  const int64_t images = std::min(images_, gather_.batch - first_image);
  const GatherDim& d = gather_.dims[0];
  const GatherDim& r = gather_.dims[1];
  const GatherDim& c = gather_.dims[2];
  const int64_t first_row = band * band_;
  const int64_t band_rows = std::min(band_, r.count - first_row);
  const int64_t first_column = part * part_;
  const int64_t part_columns = std::min(part_, c.count - first_column);
  const int64_t top = r.source_step * first_row + r.low();
  const int64_t left = c.source_step * first_column + c.low();
  const int64_t lines = row_.length(band_rows);
  const int64_t columns = column_.length(part_columns);

  for (int64_t i = 0; i < images; ++i)
    for (std::size_t t = 0; t < d.taps.size(); ++t) {
      const int64_t slice = d.source_step * depth + d.taps[t].offset;
      const bool slice_inside = slice >= 0 && slice < gather_.source[0];
      T* to = buffer + i * image_elements_ + static_cast<int64_t>(t) * lines_ * columns_ * stride_;
      for (int64_t l = 0; l < lines; ++l, to += columns_ * stride_) {
        const int64_t h = top + l * row_.spacing;
        const int64_t line =
            (((first_image + i) * gather_.source[0] + slice) * gather_.source[1] + h) * gather_.source[2];
        if (slice_inside && h >= 0 && h < gather_.source[1])
          fill_line(source + line * gather_.source_channels + first_channel, left, columns, channels, to);
        else
          std::fill_n(to, columns * stride_, T(0));
      }
    }

  pixels.bases.resize(static_cast<std::size_t>(images * band_rows * part_columns));
  pixels.rows.resize(pixels.bases.size());
  int64_t* next_base = pixels.bases.data();
  int64_t* next_row = pixels.rows.data();
  pixels.groups.clear();
  const auto inside = [](const Span& span, int64_t first, int64_t count) {
    return Span{std::max(span.first, first), std::min(span.end, first + count), span.first_tap, span.end_tap};
  };
  for (const Span& slice_span : spans_[0]) {
    if (depth < slice_span.first || depth >= slice_span.end) continue;
    for (const Span& whole_row_span : spans_[1]) {
      const Span row_span = inside(whole_row_span, first_row, band_rows);
      if (row_span.first >= row_span.end) continue;
      for (const Span& whole_column_span : spans_[2]) {
        const Span column_span = inside(whole_column_span, first_column, part_columns);
        if (column_span.first >= column_span.end) continue;
        for (int64_t i = 0; i < images; ++i) {
          const int64_t plane =
              ((first_image + i) * gather_.result[0] + d.first + d.step * depth) * gather_.result[1];
          for (int64_t j = row_span.first; j < row_span.end; ++j) {
            const int64_t line = (plane + r.first + r.step * j) * gather_.result[2] + c.first;
            const int64_t base = i * image_elements_ + row_.step * (j - first_row) * columns_ * stride_;
            for (int64_t k = column_span.first; k < column_span.end; ++k)
              *next_base++ = base + column_.step * (k - first_column) * stride_;
            for (int64_t k = column_span.first; k < column_span.end; ++k) *next_row++ = line + c.step * k;
          }
        }
        pixels.groups.push_back({static_cast<std::size_t>(next_base - pixels.bases.data()),
                                 runs(slice_span, row_span, column_span, channels)});
      }
    }
  }
}

template void GatherBand::fill(int64_t, const float*, int64_t, int64_t, float*, GatherPixels&) const;
template void GatherBand::fill(int64_t, const double*, int64_t, int64_t, double*, GatherPixels&) const;

}  // namespace pleat::ops
