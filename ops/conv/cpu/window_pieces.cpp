#include "pleat/ops/conv/cpu/window_pieces.h"

#include "pleat/core/base/checked_math.h"

namespace pleat::ops {
namespace {

/// Lines of windows wanted in a piece, so that few of x are copied for two pieces.
constexpr int64_t least_lines = 4;

}  // namespace

WindowDim::WindowDim(const GatherDim& dim)
    : count(dim.count),
      step(dim.taps.size() == 1 ? 1 : dim.source_step),
      source_step(dim.source_step),
      source_stride(dim.taps.size() == 1 ? dim.source_step : 1),
      low(dim.low()) {
  for (const GatherDim::Tap& tap : dim.taps) offsets.push_back(tap.offset - low);
}

int64_t WindowDim::share(int64_t wanted) const {
  const int64_t fitting = std::clamp<int64_t>((wanted - offsets.back() - 1) / step + 1, 1, count);
  return ceil_div(count, ceil_div(count, fitting));
}

WindowPieces::WindowPieces(const Gather& gather, int64_t wanted)
    : batch_(gather.batch),
      source_(gather.source),
      slice_(gather.dims[0]),
      line_(gather.dims[1]),
      column_(gather.dims[2]) {
  const auto slices = static_cast<int64_t>(slice_.offsets.size());
  columns_ = column_.share(wanted / (slices * line_.extent(std::min(line_.count, least_lines))));
  const int64_t line = slices * column_.extent(columns_);
  lines_ = columns_ < column_.count ? 1 : line_.share(wanted / line);
  image_pixels_ = line * line_.extent(lines_);
  const bool whole = columns_ == column_.count && lines_ == line_.count;
  const int64_t fitting = whole ? std::clamp<int64_t>(wanted / image_pixels_, 1, batch_) : 1;
  images_ = ceil_div(batch_, ceil_div(batch_, fitting));
}

std::vector<int64_t> WindowPieces::taps() const {
  std::vector<int64_t> places;
  const int64_t lines = line_.extent(lines_);
  const int64_t columns = column_.extent(columns_);
  for (std::size_t t = 0; t < slice_.offsets.size(); ++t)
    for (const int64_t r : line_.offsets)
      for (const int64_t s : column_.offsets)
        places.push_back((static_cast<int64_t>(t) * lines + r) * columns + s);
  return places;
}

}  // namespace pleat::ops
