#include "pleat/ops/conv/cpu/gather.h"

#include <algorithm>
#include <utility>

#include "pleat/ops/conv/nhwc.h"

namespace pleat::ops {
namespace {

/// What a piece of the work is cut for: pieces for many threads, pixels in each, of which kernels take so
/// many at once.
constexpr int64_t pieces_wanted = 16;
constexpr int64_t fewest_pixels = 256;
constexpr int64_t most_pixels = 2048;
constexpr int64_t pixel_multiple = 8;
/// Lines wanted in a piece of sums, so that few source pixels are copied for two pieces.
constexpr int64_t least_lines = 4;

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

int64_t GatherDim::outputs(int64_t length, int64_t most) const {
  const int64_t fitting =
      std::clamp<int64_t>(std::min((length - reach()) / window_step() + 1, most), 1, count);
  return ceil_div(count, ceil_div(count, fitting));
}

void GatherPieces::set_sizes(int64_t images, int64_t lines, int64_t columns) {
  images_ = images;
  lines_ = lines;
  columns_ = columns;
  buffer_lines_ = gather_.dims[1].extent(lines);
  line_pixels_ = gather_.dims[2].extent(columns);
  image_pixels_ = static_cast<int64_t>(gather_.dims[0].taps.size()) * buffer_lines_ * line_pixels_;
}

GatherPieces GatherPieces::for_results(const Gather& gather, int64_t elements_wanted, int64_t stride) {
  GatherPieces pieces(gather, stride);
  for (std::size_t d = 0; d < 3; ++d) pieces.spans_[d] = spans(gather.dims[d], gather.source[d]);
  const GatherDim& row = gather.dims[1];
  const GatherDim& column = gather.dims[2];
  const auto slices = static_cast<int64_t>(gather.dims[0].taps.size());
  // Pixels enough for a piece's share of the weights to be read often, few enough for many threads.
  const int64_t most = std::clamp<int64_t>(gather.pixels() / pieces_wanted, fewest_pixels, most_pixels);
  const int64_t wanted = std::max<int64_t>(1, elements_wanted / (slices * stride));
  int64_t columns = column.outputs(wanted / row.extent(1), most);
  if (columns < column.count) columns = std::min(column.count, round_up(columns, pixel_multiple));
  const int64_t lines = row.outputs(wanted / column.extent(columns), most / columns);
  pieces.set_sizes(1, lines, columns);
  // Several small images make one piece, so that tiles of pixels are full.
  if (lines == row.count && columns == column.count) {
    const int64_t fitting =
        std::min(elements_wanted / (pieces.image_pixels_ * stride), most / (lines * columns));
    pieces.images_ = std::clamp<int64_t>(fitting, 1, gather.batch);
  }
  return pieces;
}

GatherPieces GatherPieces::for_sums(const Gather& gather, int64_t pixels_wanted) {
  GatherPieces pieces(gather, 1);
  for (std::size_t d = 0; d < 3; ++d)
    pieces.spans_[d] = {{0, gather.dims[d].count, 0, gather.dims[d].taps.size()}};
  const GatherDim& row = gather.dims[1];
  const GatherDim& column = gather.dims[2];
  const auto slices = static_cast<int64_t>(gather.dims[0].taps.size());
  const int64_t columns =
      column.outputs(pixels_wanted / (slices * row.extent(std::min(row.count, least_lines))), column.count);
  const int64_t lines =
      columns < column.count ? 1 : row.outputs(pixels_wanted / (slices * column.extent(columns)), row.count);
  pieces.set_sizes(1, lines, columns);
  if (lines == row.count && columns == column.count) {
    const int64_t fitting = std::clamp<int64_t>(pixels_wanted / pieces.image_pixels_, 1, gather.batch);
    pieces.images_ = ceil_div(gather.batch, ceil_div(gather.batch, fitting));
  }
  return pieces;
}

GatherPieces::Piece GatherPieces::piece(int64_t index) const {
  const auto next = [&index](int64_t count) { return std::exchange(index, index / count) % count; };
  const auto& [slices, lines, columns] = gather_.dims;
  Piece p{};
  p.first_column = next(ceil_div(columns.count, columns_)) * columns_;
  p.first_line = next(ceil_div(lines.count, lines_)) * lines_;
  p.slice = next(slices.count);
  p.first_image = index * images_;
  p.images = std::min(images_, gather_.batch - p.first_image);
  p.lines = std::min(lines_, lines.count - p.first_line);
  p.columns = std::min(columns_, columns.count - p.first_column);
  return p;
}

std::vector<GatherPieces::Span> GatherPieces::spans(const GatherDim& dim, int64_t source) {
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

int64_t GatherPieces::tap_offset(std::size_t slice, std::size_t row, std::size_t column) const {
  const int64_t line =
      static_cast<int64_t>(slice) * buffer_lines_ + gather_.dims[1].taps[row].offset - gather_.dims[1].low();
  return (line * line_pixels_ + gather_.dims[2].taps[column].offset - gather_.dims[2].low()) * stride_;
}

std::vector<int64_t> GatherPieces::tap_offsets() const {
  std::vector<int64_t> offsets;
  for (std::size_t t = 0; t < gather_.dims[0].taps.size(); ++t)
    for (std::size_t r = 0; r < gather_.dims[1].taps.size(); ++r)
      for (std::size_t s = 0; s < gather_.dims[2].taps.size(); ++s) offsets.push_back(tap_offset(t, r, s));
  return offsets;
}

std::vector<GatherRun> GatherPieces::runs(const Span& slices, const Span& rows, const Span& columns,
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

void GatherPieces::list(int64_t index, int64_t channels, GatherPixels& pixels) const {
  const Piece p = piece(index);
  const auto& [d, r, c] = gather_.dims;
  pixels.bases.resize(static_cast<std::size_t>(p.images * p.lines * p.columns));
  pixels.rows.resize(pixels.bases.size());
  int64_t* next_base = pixels.bases.data();
  int64_t* next_row = pixels.rows.data();
  pixels.groups.clear();
  const auto inside = [](const Span& span, int64_t first, int64_t count) {
    return Span{std::max(span.first, first), std::min(span.end, first + count), span.first_tap, span.end_tap};
  };
  for (const Span& slices : spans_[0]) {
    if (p.slice < slices.first || p.slice >= slices.end) continue;
    for (const Span& all_lines : spans_[1]) {
      const Span lines = inside(all_lines, p.first_line, p.lines);
      if (lines.first >= lines.end) continue;
      for (const Span& all_columns : spans_[2]) {
        const Span columns = inside(all_columns, p.first_column, p.columns);
        if (columns.first >= columns.end) continue;
        for (int64_t i = 0; i < p.images; ++i) {
          const int64_t slice =
              ((p.first_image + i) * gather_.result[0] + d.first + d.step * p.slice) * gather_.result[1];
          for (int64_t j = lines.first; j < lines.end; ++j) {
            const int64_t row = (slice + r.first + r.step * j) * gather_.result[2] + c.first;
            const int64_t base =
                (i * image_pixels_ + r.window_step() * (j - p.first_line) * line_pixels_) * stride_;
            const int64_t step = c.window_step() * stride_;
            for (int64_t k = columns.first; k < columns.end; ++k)
              *next_base++ = base + step * (k - p.first_column);
            for (int64_t k = columns.first; k < columns.end; ++k) *next_row++ = row + c.step * k;
          }
        }
        pixels.groups.push_back(
            {static_cast<std::size_t>(next_base - pixels.bases.data()),
             channels > 0 ? runs(slices, lines, columns, channels) : std::vector<GatherRun>()});
      }
    }
  }
}

template <class T>
void GatherPieces::fill(int64_t index, const T* source, int64_t first_channel, int64_t channels, T* buffer,
                        GatherPixels& pixels) const {
  const int64_t all = gather_.source_channels;
  const auto copy = [&](int64_t to, int64_t from, int64_t count, int64_t step) {
    T* pixel = buffer + to * stride_;
    const T* next = source + from * all + first_channel;
    if (step == 1 && stride_ == all) {
      std::copy_n(next, count * all, pixel);
      return;
    }
    for (int64_t i = 0; i < count; ++i, pixel += stride_, next += step * all) {
      std::copy_n(next, channels, pixel);
      std::fill(pixel + channels, pixel + stride_, T(0));
    }
  };
  const auto clear = [&](int64_t to, int64_t count) {
    std::fill_n(buffer + to * stride_, count * stride_, T(0));
  };
  visit(index, copy, clear);
  list(index, channels, pixels);
}

template void GatherPieces::fill(int64_t, const float*, int64_t, int64_t, float*, GatherPixels&) const;
template void GatherPieces::fill(int64_t, const double*, int64_t, int64_t, double*, GatherPixels&) const;

}  // namespace pleat::ops
