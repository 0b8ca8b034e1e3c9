// Pooling and resampling.

#include <algorithm>
#include <cmath>
#include <utility>

#include "pleat/op_cases/op_case.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/ops/pool/pool.h"

namespace pleat::test {
namespace {

using T = const Tensors&;

/// The first place that a window covers and the one behind its last, in one dimension.
struct Span {
  int64_t begin, end;
};
/// For each window of a dimension of n elements.
using Spans = std::function<std::vector<Span>(int64_t n)>;

/// Windows of 3 in steps of 2 with padding 1.
Spans windows(bool ceil_mode) {
  return [=](int64_t n) {
    std::vector<Span> spans;
    for (int64_t begin = -1; ceil_mode ? begin < n : begin + 3 <= n + 1; begin += 2) {
      spans.push_back({std::max<int64_t>(begin, 0), std::min(begin + 3, n)});
      if (begin + 3 >= n + 1) break;
    }
    return spans;
  };
}

/// Windows of 3 in steps of 2.
std::vector<Span> unpadded(int64_t n) {
  std::vector<Span> spans;
  for (int64_t begin = 0; begin + 3 <= n; begin += 2) spans.push_back({begin, begin + 3});
  return spans;
}

Spans adaptive(int64_t count) {
  return [=](int64_t n) {
    std::vector<Span> spans;
    for (int64_t o = 0; o < count; ++o) spans.push_back({o * n / count, ((o + 1) * n + count - 1) / count});
    return spans;
  };
}

/// What `fold` makes of the elements in each window, and of their places in the plane.
Array pooled(const Array& x, const Spans& spans,
             const std::function<double(const Numbers&, const Index& places)>& fold) {
  std::vector<std::vector<Span>> all;
  Shape shape{x.shape[0], x.shape[1]};
  for (std::size_t d = 2; d < x.shape.size(); ++d) {
    all.push_back(spans(x.shape[d]));
    shape.push_back(static_cast<int64_t>(all.back().size()));
  }
  return computed(shape, [&](const Index& at) {
    Shape sizes;
    for (std::size_t d = 0; d < all.size(); ++d) {
      const Span& span = all[d][static_cast<std::size_t>(at[d + 2])];
      sizes.push_back(span.end - span.begin);
    }
    Numbers elements;
    Index places;
    (void)computed(sizes, [&](const Index& k) {
      Index i{at[0], at[1]};
      int64_t place = 0;
      for (std::size_t d = 0; d < k.size(); ++d) {
        i.push_back(all[d][static_cast<std::size_t>(at[d + 2])].begin + k[d]);
        place = place * x.shape[d + 2] + i.back();
      }
      elements.push_back(x(i));
      places.push_back(place);
      return 0.0;
    });
    return fold(elements, places);
  });
}

double largest(const Numbers& x, const Index&) { return *std::max_element(x.begin(), x.end()); }
double place_of_largest(const Numbers& x, const Index& places) {
  return static_cast<double>(
      places[static_cast<std::size_t>(std::max_element(x.begin(), x.end()) - x.begin())]);
}
double mean(const Numbers& x, const Index&) {
  double sum = 0;
  for (const double n : x) sum += n;
  return sum / static_cast<double>(x.size());
}

using Fold = std::function<double(const Numbers&, const Index&)>;

/// The same function for any number of dimensions, and for `dims` of them under a name with that number.
template <class Options>
void add_pools(std::vector<OpCase>& cases, const std::string& name, const Options& options,
               const std::vector<Tensor (*)(const Tensor&, const Options&)>& functions, const Spans& spans,
               const Fold& fold, const std::string& variant = "") {
  const std::vector<Shape> shapes{{2, 3, 9}, {2, 3, 7, 6}, {1, 2, 5, 4, 3}};
  const std::vector<Shape> small{{1, 2, 5}, {1, 2, 3, 4}, {1, 1, 3, 3, 3}};
  // Powers and roots are of positive numbers.
  const auto input = [&](const Shape& shape) {
    return variant.empty() ? normal(shape) : uniform(shape, 0.5, 2);
  };
  for (std::size_t k = 0; k < functions.size(); ++k) {
    const std::size_t d = k == 0 ? 1 : k - 1;  // the first is for any number
    cases.push_back(
        {.name = k == 0 ? name : name + std::to_string(k) + "d",
         .inputs = {input(shapes[d])},
         .call = [=, f = functions[k]](T x) { return f(x[0], options); },
         .reference = [=](const Arrays& x) { return Arrays{pooled(x[0], spans, fold)}; },
         .variant = variant,
         .smooth = {{input(small[d])}},
         .slack = 2,
         .large = {input({8, 16, 40, 40})},
         .refused = {{{normal({3}, 2)}, [=, f = functions[k]](T x) { return f(x[0], options); }, name}}});
    if (d != 1) cases.back().large.clear();
  }
}

/// Windows of 2 elements with one between them, in steps of 2 with 1 zero before and 0 behind.
void add_dilated(std::vector<OpCase>& cases) {
  for (const bool counts_padding : {true, false}) {
    const AvgPoolOptions options{.kernel_size = 2,
                                 .stride = 2,
                                 .padding = Padding::Sides(1, 0),
                                 .dilation = 2,
                                 .count_include_pad = counts_padding};
    cases.push_back({.name = "avg_pool",
                     .inputs = {normal({2, 3, 8})},
                     .call = [=](T x) { return avg_pool(x[0], options); },
                     .reference =
                         [=](const Arrays& x) {
                           return Arrays{computed({2, 3, 4}, [&](const Index& at) {
                             const int64_t start = 2 * at[2] - 1;
                             const double first = start < 0 ? 0 : x[0]({at[0], at[1], start});
                             const double sum = first + x[0]({at[0], at[1], start + 2});
                             return sum / (start < 0 && !counts_padding ? 1 : 2);
                           })};
                         },
                     .variant = counts_padding ? "dilation" : "dilation, without padding",
                     .slack = 2});
  }
}

/// Where output o reads the input: the lower neighbour, the upper one, and the latter's weight.
struct Reading {
  int64_t low, high;
  double weight;
};
using Read = std::function<Reading(int64_t o, int64_t in, int64_t out)>;

Array resampled(const Array& x, const Index& sizes, const Read& read) {
  Shape shape{x.shape[0], x.shape[1]};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  return computed(shape, [&](const Index& at) {
    double sum = 0;
    (void)computed(Shape(sizes.size(), 2), [&](const Index& corner) {
      Index i{at[0], at[1]};
      double weight = 1;
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        const Reading r = read(at[d + 2], x.shape[d + 2], sizes[d]);
        i.push_back(corner[d] == 0 ? r.low : r.high);
        weight *= corner[d] == 0 ? 1 - r.weight : r.weight;
      }
      sum += weight * x(i);
      return 0.0;
    });
    return sum;
  });
}

Reading between(double at, int64_t in) {
  const auto low = static_cast<int64_t>(std::floor(at));
  return {low, std::min(low + 1, in - 1), at - std::floor(at)};
}

/// `step`: inputs for one output, or 0 where it follows from the sizes.
Read nearest(double step) {
  return [=](int64_t o, int64_t in, int64_t out) {
    const double s = step > 0 ? step : static_cast<double>(in) / static_cast<double>(out);
    const auto i = std::min(static_cast<int64_t>(std::floor(static_cast<double>(o) * s)), in - 1);
    return Reading{i, i, 0};
  };
}

Read linear(double step) {
  return [=](int64_t o, int64_t in, int64_t out) {
    const double s = step > 0 ? step : static_cast<double>(in) / static_cast<double>(out);
    return between(std::max((static_cast<double>(o) + 0.5) * s - 0.5, 0.0), in);
  };
}

Reading aligned(int64_t o, int64_t in, int64_t out) {
  return between(static_cast<double>(o * (in - 1)) / static_cast<double>(out - 1), in);
}

OpCase resampling(const std::string& variant, const Shape& shape, const InterpolateOptions& options,
                  const Index& sizes, const Read& read) {
  Shape small = shape;
  small[0] = small[1] = 1;
  return {.name = "interpolate",
          .inputs = {normal(shape)},
          .call = [options](T x) { return interpolate(x[0], options); },
          .reference = [=](const Arrays& x) { return Arrays{resampled(x[0], sizes, read)}; },
          .variant = variant,
          .smooth = {{normal(small)}},
          .slack = 2,
          .large = shape.size() == 4 ? Tensors{normal({8, 16, 40, 40})} : Tensors{}};
}

/// Element o of the result in one dimension: elements of the input with their weights.
using Taps = std::function<std::vector<std::pair<int64_t, double>>(int64_t o, int64_t in, int64_t out)>;

Array resampled(const Array& x, const Index& sizes, const Taps& taps) {
  Array y = x;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    Shape shape = y.shape;
    shape[d + 2] = sizes[d];
    y = computed(shape, [&, from = y](Index at) {
      double sum = 0;
      for (const auto& [i, weight] : taps(at[d + 2], from.shape[d + 2], sizes[d])) {
        Index place = at;
        place[d + 2] = i;
        sum += weight * from(place);
      }
      return sum;
    });
  }
  return y;
}

double keys(double distance, double a) {
  const double x = std::abs(distance);
  return x < 1   ? (a + 2) * x * x * x - (a + 3) * x * x + 1
         : x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                 : 0;
}

std::vector<std::pair<int64_t, double>> cubic_taps(int64_t o, int64_t in, int64_t out) {
  const double place =
      (static_cast<double>(o) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5;
  std::vector<std::pair<int64_t, double>> taps;
  for (int64_t i = -4; i < in + 4; ++i)
    taps.emplace_back(std::clamp<int64_t>(i, 0, in - 1), keys(static_cast<double>(i) - place, -0.75));
  return taps;
}

/// All elements by a filter that is stretched where the result is smaller; what they weigh adds up to 1.
Taps smoothed(bool cubic) {
  return [=](int64_t o, int64_t in, int64_t out) {
    const double step = static_cast<double>(in) / static_cast<double>(out);
    std::vector<std::pair<int64_t, double>> taps;
    double sum = 0;
    for (int64_t i = 0; i < in; ++i) {
      const double x =
          (static_cast<double>(i) + 0.5 - (static_cast<double>(o) + 0.5) * step) / std::max(step, 1.0);
      taps.emplace_back(i, cubic ? keys(x, -0.5) : std::max(1 - std::abs(x), 0.0));
      sum += taps.back().second;
    }
    for (auto& tap : taps) tap.second /= sum;
    return taps;
  };
}

std::vector<std::pair<int64_t, double>> area_taps(int64_t o, int64_t in, int64_t out) {
  const Span span = adaptive(out)(in)[static_cast<std::size_t>(o)];
  std::vector<std::pair<int64_t, double>> taps;
  for (int64_t i = span.begin; i < span.end; ++i)
    taps.emplace_back(i, 1 / static_cast<double>(span.end - span.begin));
  return taps;
}

OpCase weighing(const std::string& variant, const Shape& shape, const Index& sizes,
                InterpolateOptions options, const Taps& taps) {
  options.size = sizes;
  Shape small = shape;
  small[0] = small[1] = 1;
  return {.name = "interpolate",
          .inputs = {normal(shape)},
          .call = [options](T x) { return interpolate(x[0], options); },
          .reference = [=](const Arrays& x) { return Arrays{resampled(x[0], sizes, taps)}; },
          .variant = variant + " " + to_string(shape),
          .smooth = {{normal(small)}},
          .slack = 4};
}

Refusal refused(const InterpolateOptions& options, const char* words) {
  return {{normal({2, 3, 4, 4})}, [options](T x) { return interpolate(x[0], options); }, words};
}

std::vector<OpCase> make() {
  std::vector<OpCase> cases;
  const MaxPoolOptions max_options{.kernel_size = 3, .stride = 2, .padding = 1};
  add_pools<MaxPoolOptions>(cases, "max_pool", max_options, {max_pool, max_pool1d, max_pool2d, max_pool3d},
                            windows(false), largest);
  add_pools<AvgPoolOptions>(
      cases, "avg_pool",
      {.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false},
      {avg_pool, avg_pool1d, avg_pool2d, avg_pool3d}, windows(true), mean);
  add_pools<AdaptivePoolOptions>(
      cases, "adaptive_max_pool", {.output_size = 2},
      {adaptive_max_pool, adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d}, adaptive(2),
      largest);
  add_pools<AdaptivePoolOptions>(
      cases, "adaptive_avg_pool", {.output_size = 2},
      {adaptive_avg_pool, adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d}, adaptive(2), mean);
  for (const double p : {1.0, 2.0, 3.0})
    add_pools<LpPoolOptions>(
        cases, "lp_pool", {.norm_type = p, .kernel_size = 3, .stride = 2},
        {lp_pool, lp_pool1d, lp_pool2d, lp_pool3d}, unpadded,
        [p](const Numbers& x, const Index&) {
          double sum = 0;
          for (const double n : x) sum += std::pow(n, p);
          return std::pow(sum, 1 / p);
        },
        "norm_type " + std::to_string(p));
  cases.push_back({.name = "max_pool_with_indices",
                   .inputs = {normal({2, 3, 7, 6})},
                   .call =
                       [=](T x) {
                         const MaxPoolWithIndices y = max_pool_with_indices(x[0], max_options);
                         return Tensors{y.values, y.indices};
                       },
                   .reference =
                       [](const Arrays& x) {
                         return Arrays{pooled(x[0], windows(false), largest),
                                       pooled(x[0], windows(false), place_of_largest)};
                       },
                   .results = {same_type, index_type},
                   .smooth = {{normal({1, 1, 3, 4})}}});
  add_dilated(cases);
  const std::vector<Shape> shapes{{2, 3, 9}, {2, 2, 5, 6}, {1, 2, 3, 4, 3}};
  for (const Shape& shape : shapes) {
    Index sizes(shape.begin() + 2, shape.end());
    for (int64_t& size : sizes) size = static_cast<int64_t>(std::floor(static_cast<double>(size) * 1.7));
    const Index three(sizes.size(), 3);
    const std::string of = to_string(shape);
    cases.push_back(
        resampling("nearest by a factor " + of, shape, {.scale_factor = 1.7}, sizes, nearest(1 / 1.7)));
    cases.push_back(resampling("nearest to a size " + of, shape, {.size = 3}, three, nearest(0)));
    cases.push_back(resampling("linear by a factor " + of, shape,
                               {.scale_factor = 1.7, .mode = Interpolation::linear}, sizes, linear(1 / 1.7)));
    cases.push_back(resampling("linear to a size " + of, shape, {.size = 3, .mode = Interpolation::linear},
                               three, linear(0)));
  }
  for (const auto& [shape, sizes] : std::vector<std::pair<Shape, Index>>{
           {{2, 3, 9}, {4}}, {{2, 2, 5, 6}, {7, 4}}, {{1, 2, 3, 4, 3}, {5, 2, 3}}}) {
    cases.push_back(weighing("cubic", shape, sizes, {.mode = Interpolation::cubic}, cubic_taps));
    cases.push_back(weighing("area", shape, sizes, {.mode = Interpolation::area}, area_taps));
    for (const bool cubic : {false, true})
      cases.push_back(
          weighing(cubic ? "cubic, antialias" : "linear, antialias", shape, sizes,
                   {.mode = cubic ? Interpolation::cubic : Interpolation::linear, .antialias = true},
                   smoothed(cubic)));
  }
  cases.push_back(resampling("nearest, exact", shapes[1],
                             {.size = {9, 4}, .mode = Interpolation::nearest_exact}, {9, 4},
                             [](int64_t o, int64_t in, int64_t out) {
                               const int64_t i = (2 * o + 1) * in / (2 * out);
                               return Reading{i, i, 0};
                             }));
  cases.push_back(resampling("aligned corners", shapes[1],
                             {.size = {9, 4}, .mode = Interpolation::linear, .align_corners = true}, {9, 4},
                             aligned));
  cases.back().refused = {refused({}, "interpolate: needs either size or scale_factor, got neither"),
                          refused({.size = 2, .scale_factor = 2}, "got both"),
                          refused({.size = 2, .align_corners = true}, "linear mode only"),
                          refused({.size = 2, .antialias = true}, "antialias goes with"),
                          refused({.size = 0}, "sizes from 1 to"),
                          refused({.scale_factor = 0.1}, "got 0 in spatial dimension 0"),
                          refused({.scale_factor = -1}, "interpolate: "),
                          refused({.scale_factor = {2, 2, 2}}, "scale_factor needs 1 or 2 values, got 3"),
                          refused({.size = {2, 2, 2}}, "interpolate: "),
                          refused({.size = 2, .implementation = "magic"}, "magic")};
  return cases;
}

}  // namespace

const std::vector<OpCase>& pool_ops() {
  static const std::vector<OpCase> cases = make();
  return cases;
}

}  // namespace pleat::test
