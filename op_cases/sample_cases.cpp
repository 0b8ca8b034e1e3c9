// Images read at computed places.

#include <algorithm>
#include <cmath>

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/sample/boxes.h"
#include "pleat/ops/sample/deform_conv.h"
#include "pleat/ops/sample/grid_sample.h"
#include "pleat/ops/sample/roi_align.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

/// A place reflected at `low` and `high` until it is between them.
double reflected(double x, double low, double high) {
  if (high <= low) return 0;
  while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
  return x;
}

/// A place in pixels where padding moves it to.
double moved_inside(double x, int64_t size, const GridSampleOptions& o) {
  const auto n = static_cast<double>(size);
  if (o.padding == GridPadding::reflection)
    x = o.align_corners ? reflected(x, 0, n - 1) : reflected(x, -0.5, n - 0.5);
  return o.padding == GridPadding::zeros ? x : std::clamp(x, 0.0, n - 1);
}

double weight(double distance, GridMode mode) {
  const double x = std::abs(distance);
  if (mode == GridMode::linear) return std::max(1 - x, 0.0);
  return x < 1   ? 1.25 * x * x * x - 2.25 * x * x + 1
         : x < 2 ? -0.75 * (x * x * x - 5 * x * x + 8 * x - 4)
                 : 0;
}

/// What each pixel of a line weighs at a place.
Numbers weights(double u, int64_t size, const GridSampleOptions& o) {
  const auto n = static_cast<double>(size);
  double place = o.align_corners ? (u + 1) / 2 * (n - 1) : ((u + 1) * n - 1) / 2;
  Numbers result(static_cast<std::size_t>(size));
  if (o.mode != GridMode::cubic) place = moved_inside(place, size, o);
  const auto add = [&](double pixel, double w) {
    if (pixel >= 0 && pixel < n) result[static_cast<std::size_t>(pixel)] += w;
  };
  if (o.mode == GridMode::nearest) {
    add(std::nearbyint(place), 1);
    return result;
  }
  for (double pixel = std::floor(place) - 2; pixel <= place + 3; ++pixel)
    add(o.mode == GridMode::cubic ? moved_inside(pixel, size, o) : pixel, weight(pixel - place, o.mode));
  return result;
}

Array sampled(const Arrays& x, const GridSampleOptions& o) {
  const std::size_t dims = x[0].shape.size() - 2;
  Shape shape{x[0].size(0), x[0].size(1)};
  shape.insert(shape.end(), x[1].shape.begin() + 1, x[1].shape.end() - 1);
  return computed(shape, [&](const Index& at) {
    std::vector<Numbers> lines;
    for (std::size_t d = 0; d < dims; ++d) {
      Index place{at[0]};
      place.insert(place.end(), at.begin() + 2, at.end());
      place.push_back(static_cast<int64_t>(dims - 1 - d));
      lines.push_back(weights(x[1](place), x[0].shape[d + 2], o));
    }
    double sum = 0;
    (void)computed(Shape(x[0].shape.begin() + 2, x[0].shape.end()), [&](const Index& pixel) {
      Index i{at[0], at[1]};
      double w = 1;
      for (std::size_t d = 0; d < dims; ++d) {
        i.push_back(pixel[d]);
        w *= lines[d][static_cast<std::size_t>(pixel[d])];
      }
      sum += w * x[0](i);
      return 0.0;
    });
    return sum;
  });
}

OpCase sampling(const std::string& variant, const GridSampleOptions& options, int64_t dims) {
  const Tensors inputs = dims == 2 ? Tensors{normal({2, 3, 4, 5}), uniform({2, 3, 2, 2}, -1.7, 1.7, 2)}
                                   : Tensors{normal({2, 2, 3, 2, 4}), uniform({2, 2, 1, 3, 3}, -1.7, 1.7, 2)};
  return {.name = "grid_sample",
          .inputs = inputs,
          .call = [options](T x) { return grid_sample(x[0], x[1], options); },
          .reference = [options](const Arrays& x) { return Arrays{sampled(x, options)}; },
          .variant = variant + ", " + std::to_string(dims) + "-d",
          .slack = 64};  // of a place among pixels
}

Array affine(const Array& theta, const Index& sizes, bool align_corners) {
  Shape shape{theta.size(0)};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  shape.push_back(std::ssize(sizes));
  return computed(shape, [&](const Index& at) {
    double sum = theta({at[0], at.back(), std::ssize(sizes)});
    for (int64_t k = 0; k < std::ssize(sizes); ++k) {
      const auto d = static_cast<std::size_t>(std::ssize(sizes) - 1 - k);
      const auto n = static_cast<double>(sizes[d]), i = static_cast<double>(at[d + 1]);
      const double place = n == 1 ? 0 : align_corners ? 2 * i / (n - 1) - 1 : (2 * i + 1) / n - 1;
      sum += theta({at[0], at.back(), k}) * place;
    }
    return sum;
  });
}

/// What x holds at a place, bilinear; `edges`: up to a pixel beyond the image its edge, else 0 there.
double bilinear(const Array& x, int64_t n, int64_t c, double row, double column, bool edges) {
  const auto height = static_cast<double>(x.size(2)), width = static_cast<double>(x.size(3));
  if (edges) {
    if (row < -1 || row > height || column < -1 || column > width) return 0;
    row = std::clamp(row, 0.0, height - 1);
    column = std::clamp(column, 0.0, width - 1);
  }
  double sum = 0;
  for (int64_t i = 0; i < x.size(2); ++i)
    for (int64_t j = 0; j < x.size(3); ++j)
      sum += std::max(1 - std::abs(row - static_cast<double>(i)), 0.0) *
             std::max(1 - std::abs(column - static_cast<double>(j)), 0.0) * x({n, c, i, j});
  return sum;
}

/// Exact in each type: inside, beyond two edges, small, far away, with its corners exchanged.
const Numbers boxes_of_images{0, 0.5, 1.25, 11.5, 8.75, 1,   -4, -3, 6, 18, 1, 6.5, 4,
                              7, 4.5, 0,    100,  90,   120, 95, 0,  8, 6,  4, 2.5};

Array aligned(const Array& x, const Numbers& boxes, const RoiAlignOptions& o) {
  const std::vector<int64_t>& bins = o.output_size.get().values();
  return computed({std::ssize(boxes) / 5, x.size(1), bins[0], bins[1]}, [&](const Index& at) {
    const double* const box = boxes.data() + 5 * at[0];
    double start[2], width[2];
    int64_t samples[2];
    for (int d = 0; d < 2; ++d) {
      start[d] = box[2 - d] * o.spatial_scale - (o.aligned ? 0.5 : 0);
      double length = (box[4 - d] - box[2 - d]) * o.spatial_scale;
      if (!o.aligned) length = std::max(length, 1.0);
      width[d] = length / static_cast<double>(bins[static_cast<std::size_t>(d)]);
      samples[d] = o.sampling_ratio > 0 ? o.sampling_ratio : static_cast<int64_t>(std::ceil(width[d]));
    }
    const auto place = [&](int d, int64_t bin, int64_t i) {
      return start[d] +
             (static_cast<double>(bin) + (static_cast<double>(i) + 0.5) / static_cast<double>(samples[d])) *
                 width[d];
    };
    double sum = 0;
    for (int64_t i = 0; i < samples[0]; ++i)
      for (int64_t j = 0; j < samples[1]; ++j)
        sum += bilinear(x, static_cast<int64_t>(box[0]), at[1], place(0, at[2], i), place(1, at[3], j), true);
    return sum / static_cast<double>(std::max<int64_t>(samples[0] * samples[1], 1));
  });
}

OpCase regions(const std::string& variant, const RoiAlignOptions& options) {
  const Tensor boxes = from_vector(boxes_of_images, {5, 5}, Device());
  const auto of = [options](const Numbers& numbers) {
    return [options, numbers](T x) {
      return roi_align(x[0], constant(from_vector(numbers, {1, std::ssize(numbers)}, Device()), x[0]),
                       options);
    };
  };
  return {
      .name = "roi_align",
      .inputs = {normal({2, 3, 6, 7})},
      .call = [=](T x) { return roi_align(x[0], constant(boxes, x[0]), options); },
      .reference = [=](const Arrays& x) { return Arrays{aligned(x[0], boxes_of_images, options)}; },
      .variant = variant,
      .slack = 8,
      .large = {normal({2, 64, 30, 40})},
      .refused = {{{normal({3, 4, 5})}, of({0, 1, 1, 2, 2}), "roi_align: needs images [N, C, H, W]"},
                  {{normal({2, 3, 4, 5})}, of({0, 1, 1, 2}), "roi_align: needs images [N, C, H, W]"},
                  {{normal({2, 3, 0, 5})}, of({0, 1, 1, 2, 2}), "roi_align: the images have no pixels"},
                  {{normal({2, 3, 4, 5})}, of({2, 1, 1, 2, 2}), "roi_align: box 0 is of image 2, but"},
                  {{normal({2, 3, 4, 5})}, of({0.5, 1, 1, 2, 2}), "roi_align: box 0 is of image 0.5"},
                  {{normal({2, 3, 4, 5})}, of({0, 1, 1, infinity, 2}), "roi_align: box 0 must be finite"}}};
}

/// Taps moved by an offset.
Array deformed(const Arrays& x, const DeformConvOptions& o, bool masked) {
  const Array &image = x[0], &offset = x[1], &weight = x[2];
  const int64_t kernel_rows = weight.size(2), kernel_columns = weight.size(3);
  const int64_t offset_groups = offset.size(1) / (2 * kernel_rows * kernel_columns);
  return computed({image.size(0), weight.size(0), offset.size(2), offset.size(3)}, [&](const Index& at) {
    double sum = x[3]({at[1]});
    for (int64_t c = 0; c < weight.size(1); ++c)
      for (int64_t r = 0; r < kernel_rows; ++r)
        for (int64_t s = 0; s < kernel_columns; ++s) {
          const int64_t group = at[1] / (weight.size(0) / (image.size(1) / weight.size(1)));
          const int64_t channel = group * weight.size(1) + c;
          const int64_t tap =
              (channel / (image.size(1) / offset_groups) * kernel_rows + r) * kernel_columns + s;
          const auto place = [&](std::size_t d, int64_t output, int64_t k) {
            return static_cast<double>(output * o.stride[d] - o.padding[d] + k * o.dilation[d]) +
                   offset({at[0], 2 * tap + static_cast<int64_t>(d), at[2], at[3]});
          };
          sum += weight({at[1], c, r, s}) * (masked ? x[4]({at[0], tap, at[2], at[3]}) : 1) *
                 bilinear(image, at[0], channel, place(0, at[2], r), place(1, at[3], s), false);
        }
    return sum;
  });
}

OpCase deforming(const std::string& variant, bool masked, int64_t groups, int64_t offset_groups) {
  const DeformConvOptions options{.stride = {1, 2}, .padding = {1, 0}, .dilation = {2, 1}};
  const int64_t taps = offset_groups * 2 * 3;
  Tensors inputs{normal({2, 4, 4, 5}), uniform({2, 2 * taps, 4, 2}, -1.4, 1.4, 2),
                 normal({4, 4 / groups, 2, 3}, 3), normal({4}, 4)};
  if (masked) inputs.push_back(uniform({2, taps, 4, 2}, 0, 1, 5));
  const auto call = [=](T x) {
    DeformConvOptions o = options;
    if (x.size() > 4) o.mask = x[4];
    return deform_conv2d(x[0], x[1], x[2], x[3], o);
  };
  const auto with = [&](std::size_t i, const Tensor& other) {
    Tensors changed = inputs;
    changed[i] = other;
    return changed;
  };
  OpCase c{.name = "deform_conv2d",
           .inputs = inputs,
           .call = call,
           .reference = [=](const Arrays& x) { return Arrays{deformed(x, options, masked)}; },
           .variant = variant,
           .slack = 64};
  if (masked)
    c.refused = {
        {with(0, normal({4, 4, 5})), call, "deform_conv2d: needs x [N, C, H, W]"},
        {with(1, normal({2, 2 * taps, 4, 3})), call, "deform_conv2d: the offset must be [2, G times"},
        {with(1, normal({2, 5, 4, 2})), call, "deform_conv2d: the offset must be [2, G times"},
        {with(2, normal({4, 3, 2, 3})), call, "deform_conv2d: the weight [K, C / groups, R, S] does"},
        {with(3, normal({3})), call, "deform_conv2d: the bias must be [4]"},
        {with(4, normal({2, 1, 4, 2})), call, "deform_conv2d: the mask must be"},
        {with(0, normal({2, 4, 4, 5}).to(float32)), call, "must be of one type"}};
  return c;
}

/// Boxes whose overlaps differ by more than a half type's rounding.
Tensor some_boxes() {
  return from_vector<double>({0, 0, 8, 8, 1, 1, 9, 8, 2, 4, 7, 9, 20, 21, 30, 31}, {4, 4}, Device());
}

double overlap_of(const Array& a, int64_t i, const Array& b, int64_t j) {
  const auto area = [](const Array& x, int64_t k) {
    return (x({k, 2}) - x({k, 0})) * (x({k, 3}) - x({k, 1}));
  };
  const double width = std::min(a({i, 2}), b({j, 2})) - std::max(a({i, 0}), b({j, 0}));
  const double height = std::min(a({i, 3}), b({j, 3})) - std::max(a({i, 1}), b({j, 1}));
  const double common = std::max(width, 0.0) * std::max(height, 0.0);
  return common / (area(a, i) + area(b, j) - common);
}

OpCase overlapping() {
  return {.name = "box_iou",
          .inputs = {some_boxes(), from_vector<double>({2.25, 1.5, 9.25, 10.25, 18.25, 20.5, 29.25, 27.25,
                                                        3.25, 3.25, 4.25, 4.25},
                                                       {3, 4}, Device())},
          .call = [](T x) { return box_iou(x[0], x[1]); },
          .reference =
              [](const Arrays& x) {
                return Arrays{computed({x[0].size(0), x[1].size(0)}, [&](const Index& at) {
                  return overlap_of(x[0], at[0], x[1], at[1]);
                })};
              },
          .slack = 4,
          .refused = {{{normal({3, 4}), normal({3, 5})},
                       [](T x) { return box_iou(x[0], x[1]); },
                       "box_iou: boxes must be [N, 4]"}}};
}

OpCase suppressing(bool by_class) {
  const auto call = [by_class](T x) {
    return by_class ? batched_nms(x[0], x[1], x[2], 0.2) : nms(x[0], x[1], 0.2);
  };
  OpCase c{.name = by_class ? "batched_nms" : "nms",
           .inputs = {some_boxes(), from_vector<double>({0.25, 0.75, 0.5, 0.125}, {4}, Device())},
           .call = call,
           .values_in = "ops/regions_test.cpp",
           .results = {index_type},
           .order = 0,
           .refused = {{{normal({3, 4}), normal({2})}, call, "scores must be [3]"}}};
  if (by_class) {
    c.inputs.push_back(integers({4}, 0, 2));
    c.refused[0].inputs.push_back(integers({3}, 0, 2));
  }
  return c;
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases;
  const std::vector<std::pair<const char*, GridMode>> modes = {
      {"nearest", GridMode::nearest}, {"linear", GridMode::linear}, {"cubic", GridMode::cubic}};
  const std::vector<std::pair<const char*, GridPadding>> paddings = {{"zeros", GridPadding::zeros},
                                                                     {"border", GridPadding::border},
                                                                     {"reflection", GridPadding::reflection}};
  for (const auto& [mode_name, mode] : modes)
    for (const auto& [padding_name, padding] : paddings)
      for (const bool align_corners : {false, true})
        for (const int64_t dims : {2, 3}) {
          if (mode == GridMode::cubic && dims == 3) continue;
          cases.push_back(
              sampling(std::string(mode_name) + ", " + padding_name + (align_corners ? ", aligned" : ""),
                       {mode, padding, align_corners}, dims));
        }
  const auto call = [](const GridSampleOptions& options) {
    return [options](T x) { return grid_sample(x[0], x[1], options); };
  };
  cases.front().large = {normal({2, 16, 30, 30}), uniform({2, 40, 40, 2}, -1.2, 1.2, 2)};
  cases.front().refused = {
      {{normal({2, 3, 4}), normal({2, 3, 2})}, call({}), "grid_sample: needs images"},
      {{normal({2, 3, 4, 5}), normal({1, 3, 2, 2})}, call({}), "grid_sample: needs images"},
      {{normal({2, 3, 4, 5}), normal({2, 3, 2, 3})}, call({}), "grid_sample: needs images"},
      {{normal({2, 3, 0, 5}), normal({2, 3, 2, 2})}, call({}), "grid_sample: the images have no pixels"},
      {{normal({2, 3, 4, 5}), normal({2, 3, 2, 2}).to(float32)}, call({}), "must be of one type"},
      {{normal({1, 1, 2, 2, 2}), normal({1, 2, 2, 2, 3})},
       call({.mode = GridMode::cubic}),
       "grid_sample: cubic goes with two"}};
  for (const bool align_corners : {false, true})
    for (const Index& sizes : {Index{3, 4}, Index{2, 1, 3}}) {
      Shape size{2, 5};
      size.insert(size.end(), sizes.begin(), sizes.end());
      const int64_t dims = std::ssize(sizes);
      cases.push_back(
          {.name = "affine_grid",
           .inputs = {normal({2, dims, dims + 1})},
           .call = [=](T x) { return affine_grid(x[0], size, align_corners); },
           .reference = [=](const Arrays& x) { return Arrays{affine(x[0], sizes, align_corners)}; },
           .variant = std::to_string(dims) + "-d" + (align_corners ? ", aligned" : ""),
           .slack = 8,
           .refused = {{{normal({2, 2, 2})},
                        [](T x) {
                          return affine_grid(x[0], {2, 1, 3, 4});
                        },
                        "affine_grid: needs theta"},
                       {{normal({2, 2, 3})},
                        [](T x) {
                          return affine_grid(x[0], {2, 1, -3, 4});
                        },
                        "affine_grid: channels and pixels must be at least 1"}}});
    }
  for (const bool centres : {false, true})
    for (const int64_t samples : {0, 1, 3})
      cases.push_back(regions(
          (centres ? "aligned, " : "") + std::to_string(samples) + " samples",
          {.output_size = {2, 3}, .spatial_scale = 0.5, .sampling_ratio = samples, .aligned = centres}));
  cases.push_back(overlapping());
  cases.push_back(suppressing(false));
  cases.push_back(suppressing(true));
  cases.push_back(deforming("plain", false, 1, 1));
  cases.push_back(deforming("grouped", false, 2, 4));
  cases.push_back(deforming("masked", true, 1, 2));
  return cases;
}

}  // namespace

const std::vector<OpCase>& sample_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
