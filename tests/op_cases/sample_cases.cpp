// Images read at computed places.

#include <algorithm>
#include <cmath>

#include "pleat/autograd/functions/grid_sample.h"
#include "pleat/tests/op_cases/op_case.h"

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
                        "affine_grid: sizes must not be negative"}}});
    }
  return cases;
}

}  // namespace

const std::vector<OpCase>& sample_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
