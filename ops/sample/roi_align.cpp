#include "pleat/ops/sample/roi_align.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/sample/sample_points.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

constexpr const char* op = "roi_align";

/// A pixel of a line, and what it weighs.
struct LineTap {
  int32_t pixel;
  double weight;
};
using Bin = std::vector<LineTap>;

/// Adds to the pixel where it is one of the last two; samples of a bin are in order.
void add_tap(Bin& bin, double pixel, double weight) {
  const auto at = static_cast<int32_t>(pixel);
  for (std::size_t k = bin.size(); k-- > 0 && k + 2 >= bin.size();)
    if (bin[k].pixel == at) {
      bin[k].weight += weight;
      return;
    }
  bin.push_back({at, weight});
}

/// The mean of `samples` places, evenly from `start` on; of those beyond the line nothing is added.
Bin bin_of(double start, double width, double samples, int64_t size) {
  Bin bin;
  const auto pixels = static_cast<double>(size);
  const double step = width / samples;
  // Of a bin that begins or ends far away, the samples around the line.
  const double near_first = (-1 - start) / step - 2, near_last = (pixels - start) / step + 2;
  const bool runs_on = step > 0;
  const double first = runs_on ? std::max(0.0, std::floor(near_first)) : 0;
  const double last = runs_on ? std::min(samples, std::ceil(near_last)) : samples;
  for (double i = first; i < last; ++i) {
    const double place = start + (i + 0.5) * step;
    if (place < -1 || place > pixels) continue;
    const double inside = std::clamp(place, 0.0, pixels - 1);
    const double low = std::floor(inside), part = inside - low;
    add_tap(bin, low, (1 - part) / samples);
    if (part > 0) add_tap(bin, low + 1, part / samples);
  }
  return bin;
}

/// The bins of all boxes along one dimension, as pixels and weights [K, taps, bins]; `step`: from a pixel to
/// the next.
struct Lines {
  int64_t taps = 1;  ///< the most of a bin
  Tensor pixel, weight;
};

Lines lines_of(const std::vector<Bin>& all, int64_t boxes, int64_t bins, int64_t step, TensorOptions like) {
  Lines lines;
  for (const Bin& bin : all) lines.taps = std::max(lines.taps, std::ssize(bin));
  const int64_t count = checked_multiply(boxes * bins, lines.taps, op);
  check_host_memory(op, checked_multiply(count, 2 * sizeof(LineTap), op));
  std::vector<int32_t> pixels(static_cast<std::size_t>(count));
  std::vector<double> weights(static_cast<std::size_t>(count));
  for (int64_t k = 0; k < boxes; ++k)
    for (int64_t b = 0; b < bins; ++b) {
      const Bin& bin = all[static_cast<std::size_t>(k * bins + b)];
      for (int64_t t = 0; t < std::ssize(bin); ++t) {
        const auto at = static_cast<std::size_t>((k * lines.taps + t) * bins + b);
        pixels[at] = bin[static_cast<std::size_t>(t)].pixel * static_cast<int32_t>(step);
        weights[at] = bin[static_cast<std::size_t>(t)].weight;
      }
    }
  const Shape shape{boxes, lines.taps, bins};
  lines.pixel = from_vector(pixels, shape, like.device);
  lines.weight = ops::to_device(ops::cast(from_vector(weights, shape, Device()), like.dtype), like.device);
  return lines;
}

/// Every bin of every box along one dimension, whose coordinates stand in columns `low` and `high`.
std::vector<Bin> bins_of(const std::vector<double>& boxes, std::size_t low, int64_t bins, int64_t size,
                         const RoiAlignOptions& o) {
  const int64_t count = checked_multiply(std::ssize(boxes) / 5, bins, op);
  check_host_memory(op, checked_multiply(count, sizeof(Bin) + 4 * sizeof(LineTap), op));
  std::vector<Bin> all;
  all.reserve(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < boxes.size(); k += 5) {
    const double shift = o.aligned ? 0.5 : 0;
    const double start = boxes[k + low] * o.spatial_scale - shift;
    const double length = boxes[k + low + 2] * o.spatial_scale - shift - start;
    const double width = (o.aligned ? length : std::max(length, 1.0)) / static_cast<double>(bins);
    const double samples = o.sampling_ratio > 0 ? static_cast<double>(o.sampling_ratio) : std::ceil(width);
    for (int64_t b = 0; b < bins; ++b)
      all.push_back(samples < 1 ? Bin()
                                : bin_of(start + static_cast<double>(b) * width, width, samples, size));
  }
  return all;
}

void check_operands(const Tensor& x, const Tensor& boxes, const RoiAlignOptions& o) {
  ops::check_types<ops::Floating>(op, x.dtype());
  check<DTypeError>(is_floating(boxes.dtype()), "{}: the boxes must be floating, got {}", op, boxes);
  check<ShapeError>(x.rank() == 4 && boxes.rank() == 2 && boxes.size(1) == 5,
                    "{}: needs images [N, C, H, W] and boxes [K, 5], each (image, x1, y1, x2, y2), got {} "
                    "and {}",
                    op, x, boxes);
  check<ShapeError>(x.size(2) >= 1 && x.size(3) >= 1, "{}: the images have no pixels: {}", op, x);
  ops::check_plane(op, x);
  check<ValueError>(std::isfinite(o.spatial_scale) && o.spatial_scale > 0,
                    "{}: spatial_scale must be above 0 and finite, got {}", op, o.spatial_scale);
  check<ValueError>(o.sampling_ratio >= 0 && o.sampling_ratio <= 1024,
                    "{}: sampling_ratio must be from 0 to 1024, got {}", op, o.sampling_ratio);
}

void check_boxes(const std::vector<double>& boxes, const Tensor& x, double scale) {
  for (std::size_t k = 0; k < boxes.size(); k += 5) {
    const double image = boxes[k];
    check<IndexError>(image >= 0 && image < static_cast<double>(x.size(0)) && image == std::floor(image),
                      "{}: box {} is of image {}, but there are {}", op, k / 5, image, x.size(0));
    for (std::size_t c = 1; c < 5; ++c)
      check<ValueError>(std::abs(boxes[k + c] * scale) < 0x1p30,
                        "{}: box {} must be finite and less than 2^30 pixels away, got {}", op, k / 5,
                        boxes[k + c]);
  }
}

}  // namespace

Tensor roi_align(const Tensor& x, const Tensor& any_boxes, const RoiAlignOptions& options) {
  check_operands(x, any_boxes, options);
  const std::vector<int64_t> bins = options.output_size.get().expand(2, op, "output_size");
  for (const int64_t size : bins)
    check<ValueError>(size >= 1, "{}: output_size must be at least 1, got {}", op, size);
  const std::vector<double> boxes = ops::cast(any_boxes.detach(), float64).to_vector<double>();
  check_boxes(boxes, x, options.spatial_scale);
  const int64_t count = any_boxes.size(0);
  const TensorOptions like{.dtype = compute_dtype(x.dtype()), .device = x.device()};
  const Call call(op, {x, any_boxes});
  ops::PixelTaps taps;
  {
    const NoGrad constants;
    (void)checked_multiply(checked_multiply(bins[0], bins[1], op), count, op);
    const Lines rows =
        lines_of(bins_of(boxes, 2, bins[0], x.size(2), options), count, bins[0], x.size(3), like);
    const Lines columns = lines_of(bins_of(boxes, 1, bins[1], x.size(3), options), count, bins[1], 1, like);
    const auto joined = [&](const Tensor& row, const Tensor& column, auto join) {
      return reshape(join(reshape(row, {count, rows.taps, 1, bins[0], 1}),
                          reshape(column, {count, 1, columns.taps, 1, bins[1]})),
                     {count, rows.taps * columns.taps, bins[0] * bins[1]});
    };
    taps.index = joined(rows.pixel, columns.pixel, [](const Tensor& a, const Tensor& b) { return a + b; });
    taps.weight = joined(rows.weight, columns.weight, [](const Tensor& a, const Tensor& b) { return a * b; });
    std::vector<int64_t> images;
    for (std::size_t k = 0; k < boxes.size(); k += 5) images.push_back(static_cast<int64_t>(boxes[k]));
    taps.image = from_vector(images, {count}, x.device());
  }
  return call.gives(weighted_pixels(op, x, taps, bins));
}

}  // namespace pleat
