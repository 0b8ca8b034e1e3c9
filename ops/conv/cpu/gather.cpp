#include "pleat/ops/conv/cpu/gather.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "pleat/core/base/simd.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/ops/conv/nhwc.h"

/// How a pass becomes gathers, and these are cut into pieces whose part of the source fits the second-level
/// cache. Lists the pixels of a piece, grouped by their taps, and copies what they read.

namespace pleat::ops {
namespace {

/// Pixels of a piece that is copied, at most, and those of which kernels take so many at once.
constexpr int64_t most_pixels = 2048;
constexpr int64_t pixel_multiple = 8;
/// Lines wanted in a piece of sums, so that few source pixels are copied for two pieces.
constexpr int64_t least_lines = 4;

GatherDim forward_dim(const ConvProblem& p, std::size_t d) {
  // A stride that moves no output may be any number.
  GatherDim dim{.count = p.output[d], .source_step = p.output[d] > 1 ? p.stride[d] : 1, .taps = {}};
  for (int64_t r = 0; r < p.kernel[d]; ++r) dim.taps.push_back({r, r * p.dilation[d] - p.padding_low[d]});
  return dim;
}

/// The class of input positions `first`, `first` + stride ...
GatherDim backward_dim(const ConvProblem& p, std::size_t d, int64_t first) {
  const int64_t stride = p.stride[d];
  GatherDim dim{.first = first, .step = stride, .count = ceil_div(p.input[d] - first, stride), .taps = {}};
  for (int64_t r = p.kernel[d] - 1; r >= 0; --r) {
    const int64_t shift = first + p.padding_low[d] - r * p.dilation[d];
    if (shift % stride == 0) dim.taps.push_back({r, shift / stride});
  }
  return dim;
}

std::vector<GatherDim> backward_dims(const ConvProblem& p, std::size_t d) {
  std::vector<GatherDim> classes;
  for (int64_t first = 0; first < std::min(p.stride[d], p.input[d]); ++first)
    classes.push_back(backward_dim(p, d, first));
  return classes;
}

Gather backward_gather(const ConvProblem& p, GatherDim depth, GatherDim row, GatherDim column) {
  return {p.batch,
          p.groups,
          p.group_out(),
          p.group_in(),
          p.output,
          p.input,
          {std::move(depth), std::move(row), std::move(column)}};
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
  return {p.batch,
          p.groups,
          p.group_in(),
          p.group_out(),
          p.input,
          p.output,
          {forward_dim(p, 0), forward_dim(p, 1), forward_dim(p, 2)}};
}

std::vector<Gather> gathers_of(const ConvProblem& problem, ConvPass pass) {
  if (pass != ConvPass::backward_input) return {forward_gather(problem)};
  const ConvProblem p = joined_pixels(problem);
  std::vector<Gather> gathers;
  for (const GatherDim& depth : backward_dims(p, 0))
    for (const GatherDim& row : backward_dims(p, 1))
      for (const GatherDim& column : backward_dims(p, 2))
        gathers.push_back(backward_gather(p, depth, row, column));
  return gathers;
}

Gather first_backward_input_gather(const ConvProblem& problem) {
  const ConvProblem p = joined_pixels(problem);
  return backward_gather(p, backward_dim(p, 0, 0), backward_dim(p, 1, 0), backward_dim(p, 2, 0));
}

SmallVector<int64_t, 32> kernel_taps(const Gather& gather, const Spatial& kernel) {
  SmallVector<int64_t, 32> taps;
  for (const GatherDim::Tap& t : gather.dims[0].taps)
    for (const GatherDim::Tap& r : gather.dims[1].taps)
      for (const GatherDim::Tap& s : gather.dims[2].taps)
        taps.push_back((t.kernel * kernel[1] + r.kernel) * kernel[2] + s.kernel);
  return taps;
}

int64_t Gather::pixels_wanted(int64_t most, int64_t fewest) const {
  return std::clamp(pixels() / tasks_wanted, fewest, std::max(fewest, most));
}

int64_t GatherDim::outputs(int64_t length, int64_t most, int64_t source) const {
  const int64_t fitting = length >= source ? count
                                           : std::max((length - reach()) / source_step + 1,
                                                      length / static_cast<int64_t>(taps.size()));
  const int64_t wanted = std::clamp<int64_t>(std::min(fitting, most), 1, count);
  return ceil_div(count, ceil_div(count, wanted));
}

GatherDim::Spans GatherDim::spans(int64_t source) const {
  // A tap is inside from one output pixel on to another.
  SmallVector<int64_t, 32> bounds{0, count};
  for (const Tap& tap : taps)
    for (const int64_t border : {int64_t{0}, source})
      bounds.push_back(std::clamp<int64_t>(ceil_div(border - tap.offset, source_step), 0, count));
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  Spans list;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const auto taps_before = [&](int64_t border) {
      const auto outside = [&](const Tap& tap) { return source_step * bounds[i] + tap.offset >= border; };
      return static_cast<std::size_t>(std::find_if(taps.begin(), taps.end(), outside) - taps.begin());
    };
    list.push_back({bounds[i], bounds[i + 1], taps_before(0), taps_before(source)});
  }
  return list;
}

std::pair<int64_t, int64_t> GatherDim::inside(std::size_t tap, int64_t source) const {
  const int64_t begin = std::clamp<int64_t>(ceil_div(-taps[tap].offset, source_step), 0, count);
  return {begin, std::clamp<int64_t>(ceil_div(source - taps[tap].offset, source_step), begin, count)};
}

void GatherPieces::set_sizes(int64_t images, int64_t lines, int64_t columns) {
  images_ = images;
  lines_ = lines;
  columns_ = columns;
  const Spatial outputs{1, lines, columns};
  int64_t pixels = 1;
  for (std::size_t d = 3; d-- > 0;) {
    const GatherDim& dim = gather_.dims[d];
    const bool apart = !in_place_ && dim.taps_apart(outputs[d]);
    pitch_[d] = pixels;
    step_[d] = (apart ? 1 : dim.source_step) * pixels;
    tap_at_[d].clear();
    for (const GatherDim::Tap& tap : dim.taps) {
      const int64_t at = in_place_ ? tap.offset : tap.offset - dim.low();
      tap_at_[d].push_back((apart ? static_cast<int64_t>(tap_at_[d].size()) * outputs[d] : at) * pixels);
    }
    pixels *= in_place_ ? gather_.source[d] : dim.extent(outputs[d]);
  }
  image_pixels_ = pixels;
}

GatherPieces::Stretches GatherPieces::stretches(std::size_t d, int64_t first, int64_t outputs) const {
  const GatherDim& dim = gather_.dims[d];
  const int64_t from = dim.source_step * first;
  if (!dim.taps_apart(Spatial{1, lines_, columns_}[d]))
    return {{0, from + dim.low(), dim.source_step * (outputs - 1) + dim.reach(), 1}};
  Stretches list;
  for (std::size_t t = 0; t < dim.taps.size(); ++t)
    list.push_back({tap_at_[d][t] / pitch_[d], from + dim.taps[t].offset, outputs, dim.source_step});
  return list;
}

void GatherPieces::choose_sizes(int64_t source_pixels, int64_t most, bool whole_lines) {
  for (std::size_t d = 0; d < 3; ++d) spans_[d] = gather_.dims[d].spans(gather_.source[d]);
  const GatherDim& row = gather_.dims[1];
  const GatherDim& column = gather_.dims[2];
  if (whole_lines) spans_[2] = {{0, column.count, 0, column.taps.size()}};
  const int64_t slices = gather_.read(0, 1);
  int64_t columns = column.outputs(source_pixels / (slices * gather_.read(1, 1)), most, gather_.source[2]);
  if (columns < column.count) columns = std::min(column.count, round_up(columns, pixel_multiple));
  const int64_t lines =
      row.outputs(source_pixels / (slices * gather_.read(2, columns)), most / columns, gather_.source[1]);
  set_sizes(1, lines, columns);
  // Several small images make one piece, so that tiles of pixels are full, those of each group among them.
  if (lines == row.count && columns == column.count) {
    const auto groups = static_cast<int64_t>(spans_[1].size() * spans_[2].size());
    const int64_t wanted = std::max(most, groups * pixel_multiple);
    const int64_t of_image = slices * gather_.read(1, lines) * gather_.read(2, columns);
    const int64_t fitting = std::min(source_pixels / of_image, wanted / (lines * columns));
    images_ = std::clamp<int64_t>(fitting, 1, gather_.batch);
  }
}

GatherPieces GatherPieces::for_results(const Gather& gather, int64_t elements_wanted, int64_t stride) {
  GatherPieces pieces(gather, stride);
  pieces.choose_sizes(elements_wanted / stride, gather.pixels_wanted(most_pixels));
  return pieces;
}

GatherPieces GatherPieces::in_place(const Gather& gather, int64_t most, bool whole_lines) {
  GatherPieces pieces(gather, gather.source_pitch());
  pieces.in_place_ = true;
  pieces.choose_sizes(std::numeric_limits<int64_t>::max(), most, whole_lines);
  return pieces;
}

GatherPieces GatherPieces::for_sums(const Gather& gather, int64_t source_pixels, int64_t most,
                                    bool in_place) {
  GatherPieces pieces(gather, in_place ? gather.source_pitch() : 1);
  pieces.in_place_ = in_place;
  if (in_place) source_pixels = std::numeric_limits<int64_t>::max();
  const GatherDim& row = gather.dims[1];
  const GatherDim& column = gather.dims[2];
  const int64_t slices = gather.read(0, 1);
  const int64_t columns = column.outputs(
      source_pixels / (slices * gather.read(1, std::min(row.count, least_lines))), most, gather.source[2]);
  const int64_t lines =
      columns < column.count
          ? 1
          : row.outputs(source_pixels / (slices * gather.read(2, columns)), most / columns, gather.source[1]);
  pieces.set_sizes(1, lines, columns);
  if (lines == row.count && columns == column.count) {
    const int64_t of_image = slices * gather.read(1, lines) * gather.read(2, columns);
    const int64_t fitting = std::min(source_pixels / of_image, most / (lines * columns));
    pieces.images_ =
        ceil_div(gather.batch, ceil_div(gather.batch, std::clamp<int64_t>(fitting, 1, gather.batch)));
  }
  for (std::size_t d = 0; d < 3; ++d)
    pieces.spans_[d] = {{0, gather.dims[d].count, 0, gather.dims[d].taps.size()}};
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

void GatherPieces::list_runs(const Span& slices, const Span& rows, const Span& columns, int64_t channels,
                             std::vector<GatherRun>& runs) const {
  runs.clear();
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
}

void GatherPieces::list(int64_t index, int64_t channels, GatherPixels& pixels) const {
  const Piece p = piece(index);
  const auto& [d, r, c] = gather_.dims;
  const int64_t origin = in_place_ ? p.first_image * image_pixels_ + p.slice * step_[0] +
                                         p.first_line * step_[1] + p.first_column * step_[2]
                                   : 0;
  pixels.bases.resize(static_cast<std::size_t>(p.images * p.lines * p.columns));
  pixels.rows.resize(pixels.bases.size());
  int64_t* next_base = pixels.bases.data();
  int64_t* next_row = pixels.rows.data();
  std::size_t groups = 0;  // those of the piece before are used again, with the memory of their runs
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
            const int64_t base = (origin + i * image_pixels_ + (j - p.first_line) * step_[1]) * stride_;
            const int64_t step = step_[2] * stride_;
            for (int64_t k = columns.first; k < columns.end; ++k)
              *next_base++ = base + step * (k - p.first_column);
            for (int64_t k = columns.first; k < columns.end; ++k) *next_row++ = row + c.step * k;
          }
        }
        if (groups == pixels.groups.size()) pixels.groups.emplace_back();
        GatherPixels::Group& group = pixels.groups[groups++];
        group.end = static_cast<std::size_t>(next_base - pixels.bases.data());
        list_runs(slices, lines, columns, channels, group.runs);
      }
    }
  }
  pixels.groups.resize(groups);
}

bool GatherPieces::all_inside(int64_t index, int64_t tap, bool of_line, int64_t first, int64_t end,
                              std::vector<int64_t>& pixels) const {
  pixels.clear();
  const Piece p = piece(index);
  // Of the piece's pixels in a dimension those for which the tap is inside.
  const auto inside = [&](std::size_t d, int64_t begin, int64_t count) {
    const auto taps = static_cast<int64_t>(gather_.dims[d].taps.size());
    const auto [low, high] = gather_.dims[d].inside(
        static_cast<std::size_t>(std::exchange(tap, tap / taps) % taps), gather_.source[d]);
    return std::pair(std::max<int64_t>(low - begin, 0), std::min(high - begin, count));
  };
  auto columns = inside(2, p.first_column, p.columns);
  if (of_line) columns = {0, p.columns};
  const auto lines = inside(1, p.first_line, p.lines);
  const auto slices = inside(0, p.slice, 1);
  if (slices.first >= slices.second) return false;
  if (lines == std::pair(int64_t{0}, p.lines) && columns == std::pair(int64_t{0}, p.columns)) return true;
  pixels.resize(static_cast<std::size_t>(end - first));
  int64_t* next = pixels.data();
  for (int64_t i = 0; i < p.images; ++i)
    for (int64_t j = lines.first; j < lines.second; ++j) {
      const int64_t line = (i * p.lines + j) * p.columns;
      const int64_t last = std::min(end, line + columns.second);
      for (int64_t k = std::max(first, line + columns.first); k < last; ++k) *next++ = k;
    }
  pixels.resize(static_cast<std::size_t>(next - pixels.data()));
  return false;
}

template <class T>
void GatherPieces::fill(int64_t index, const T* source, int64_t first_channel, int64_t channels,
                        T* buffer) const {
  static constexpr T zeros[64 / sizeof(T)] = {};  // as long as copy_channels takes at once
  const int64_t pitch = gather_.source_pitch();
  const int64_t after = std::min(stride_, round_up(channels, simd::lanes<T>)) - channels;
  const auto copy = [&](int64_t to, int64_t from, int64_t count, int64_t step) {
    T* pixel = buffer + to * stride_;
    const T* next = source + from * pitch + first_channel;
    if (step == 1 && channels == stride_ && channels == pitch) {
      std::copy_n(next, count * pitch, pixel);
      return;
    }
    for (int64_t i = 0; i < count; ++i, pixel += stride_, next += step * pitch) {
      copy_channels(next, channels, pixel);
      copy_channels(zeros, after, pixel + channels);
    }
  };
  visit(index, copy, [](int64_t, int64_t) {});
}

const GatherPixels& GatherPieces::listed(int64_t index, int64_t channels) const {
  if (kept_ != nullptr && channels == kept_channels_) return (*kept_)[static_cast<std::size_t>(index)];
  constinit thread_local ThreadObject<GatherPixels> own;
  GatherPixels& pixels = *own;
  list(index, channels, pixels);
  return pixels;
}

void GatherPieces::keep_lists(int64_t channels) {
  constexpr int64_t most_kept = 4096;  // more take longer to read than to list
  if (pixels() > most_kept) return;
  std::vector<GatherPixels> lists(static_cast<std::size_t>(count()));
  for (std::size_t i = 0; i < lists.size(); ++i) list(static_cast<int64_t>(i), channels, lists[i]);
  kept_ = std::make_shared<const std::vector<GatherPixels>>(std::move(lists));
  kept_channels_ = channels;
}

template void GatherPieces::fill(int64_t, const float*, int64_t, int64_t, float*) const;
template void GatherPieces::fill(int64_t, const double*, int64_t, int64_t, double*) const;

}  // namespace pleat::ops
