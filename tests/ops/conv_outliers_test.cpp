#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

// Whatever single pixels are, huge or not finite: every other result is as right as its own window allows.

using namespace pleat;
using namespace pleat::ops;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Problem {
  Shape input, weight;
  ConvOptions options;
};

int64_t draw(int64_t low, int64_t high, Generator& generator) {
  return randint(low, high + 1, {}, generator).item<int64_t>();
}

/// Of 1 to 3 dimensions, with kernels, strides and sizes that `winograd` computes and tiles do not divide.
Problem draw_problem(Generator& generator) {
  const int64_t dims = draw(1, 3, generator), stride = 1 + draw(1, 4, generator) / 4,
                taps = draw(0, 2, generator) > 0 ? draw(2, 3, generator)
                                                 : draw(4, dims == 1 ? 11 : 6 - stride, generator);
  const bool many = draw(0, 3, generator) > 0, depthwise = !many && draw(0, 1, generator) == 0;
  std::vector<int64_t> input{draw(1, 3, generator), many ? draw(16, 40, generator) : draw(1, 18, generator)};
  std::vector<int64_t> weight{depthwise ? input[1] : draw(many ? 16 : 1, 40, generator),
                              depthwise ? 1 : input[1]};
  std::vector<int64_t> strides, dilations, padding;
  for (int64_t d = 0; d < dims; ++d) {
    const bool has_tiles = d + 2 >= dims;  // of a third dimension the stride is 1
    weight.push_back(has_tiles ? taps * stride : draw(1, 3, generator));
    strides.push_back(has_tiles ? stride : 1);
    dilations.push_back(has_tiles && stride == 1 ? 1 + draw(0, 4, generator) / 3 * draw(0, 2, generator) : 1);
    padding.push_back(draw(0, std::min<int64_t>(2, weight.back() - 1), generator));
    const int64_t least = dilations.back() * (weight.back() - 1) + 2;
    input.push_back(draw(least, std::max<int64_t>(least, dims == 1 ? 40 : dims == 2 ? 18 : 9), generator));
  }
  return {Shape(input),
          Shape(weight),
          {.stride = strides, .padding = padding, .dilation = dilations, .groups = depthwise ? input[1] : 1}};
}

/// Sets some of x [N, C, spatial...] to `size`: single elements, or a pixel or a line, of one channel or all.
void spoil(const Tensor& x, double size, Generator& generator) {
  const bool single = draw(0, 1, generator) == 0;
  for (int64_t i = single ? draw(1, 4, generator) : 1; i > 0; --i) {
    Tensor part = pleat::select(x, 0, draw(0, x.size(0) - 1, generator));
    const bool all_channels = !single && draw(0, 1, generator) == 0,
               line = !single && draw(0, 1, generator) == 0;
    if (!all_channels) part = pleat::select(part, 0, draw(0, x.size(1) - 1, generator));
    for (int64_t d = part.rank() - 1; d >= (all_channels ? 1 : 0) + (line ? 1 : 0); --d) {
      const int64_t end = part.size(d) - 1;
      part = pleat::select(
          part, d, draw(0, 2, generator) == 0 ? draw(0, 1, generator) * end : draw(0, end, generator));
    }
    fill_(part, i % 2 == 0 ? -size : size);
  }
}

/// Makes channels of x, of dimension 1, loud or quiet, each by a power of ten, and what w does with them, of
/// dimension `dim`, as quiet or loud. A loud one may stay unused.
void scale_channels(const Tensor& x, const Tensor& w, int64_t dim, double most, Generator& generator) {
  for (int64_t c = 0; c < x.size(1); ++c) {
    const double by = std::pow(10.0, static_cast<double>(draw(0, 2, generator)) / 2 * std::log10(most));
    const Tensor of_x = pleat::select(x, 1, c), of_w = pleat::select(w, dim, c);
    copy_into(of_x, of_x * by);
    copy_into(of_w, of_w * (draw(0, 9, generator) == 0 ? 0 : 1 / by));
  }
}

/// The largest error of a result, in units of the unit roundoff times the root of the number of products
/// times the sum of their magnitudes (`sums`). Infinite where a result is not finite, or should not be and
/// is.
double largest_error(const Tensor& result, const Tensor& exact, const Tensor& sums, int64_t products,
                     bool may_be_nan = false) {
  const DType dtype = result.dtype();
  const double most = dtype == float64   ? std::numeric_limits<double>::max()
                      : dtype == float16 ? 65504
                                         : 3.3e38;
  const double unit = dtype == float64 ? 0x1p-53 : 0x1p-24;
  // A half type's result is that of float32, rounded.
  const double rounding = dtype == float16 ? 0x1p-11 : dtype == bfloat16 ? 0x1p-8 : 0;
  const double least = dtype == float16 ? 0x1p-25 : static_cast<double>(std::numeric_limits<float>::min());
  const Tensor y = result.to(float64).contiguous(), should_be = exact.contiguous(), all = sums.contiguous();
  double largest = 0;
  for (int64_t i = 0; i < y.numel(); ++i) {
    const double is = y.data<double>()[i], should = should_be.data<double>()[i], sum = all.data<double>()[i];
    if ((std::isnan(should) || may_be_nan) && std::isnan(is)) continue;
    if (is == should) continue;
    if (sum > 0.9 * most && std::isfinite(should)) continue;  // a sum on the way may be too large
    const double error = std::abs(is - should) - rounding * std::abs(should) - least;
    if (!std::isfinite(error) || sum == 0) return infinity;
    if (error > 0)
      largest = std::max(largest, error / (unit * std::sqrt(static_cast<double>(products)) * sum));
  }
  return largest;
}

/// The largest error of each pass of an implementation.
struct Errors {
  double forward, backward_input, backward_weight;
};

Errors errors_of(const Problem& p, const Tensor& x, const Tensor& w, const Tensor& dy,
                 const std::string& name, DType dtype) {
  ConvOptions options = p.options, exact = p.options;
  options.implementation = name;
  exact.implementation = "reference";
  const int64_t taps = w.numel() / (w.size(0) * w.size(1));
  const Tensor ax = abs(x), aw = abs(w), ady = abs(dy);
  const auto in = [dtype](const Tensor& t) { return t.to(dtype); };
  return {largest_error(conv_forward(in(x), in(w), {}, options), conv_forward(x, w, {}, exact),
                        conv_forward(ax, aw, {}, exact), taps * w.size(1)),
          largest_error(conv_backward_input(in(dy), in(w), p.input, options),
                        conv_backward_input(dy, w, p.input, exact),
                        conv_backward_input(ady, aw, p.input, exact), taps * w.size(0) / p.options.groups),
          largest_error(conv_backward_weight(in(dy), in(x), p.weight, options),
                        conv_backward_weight(dy, x, p.weight, exact),
                        conv_backward_weight(ady, ax, p.weight, exact), dy.numel() / dy.size(1),
                        !std::isfinite(pleat::max(ady).item()))};
}

}  // namespace

TEST_CASE("outliers spoil no result that does not read them, also beside loud channels", "[conv][cpu]") {
  Generator generator(36);
  constexpr double most = 8;
  for (int round = 0; round < 300; ++round) {
    const Problem p = draw_problem(generator);
    const DType dtype = round % 5 == 4    ? float64
                        : round % 15 == 0 ? bfloat16
                        : round % 15 == 1 ? float16
                                          : float32;
    const Shape output = conv_forward(zeros(p.input), zeros(p.weight), {}, p.options).shape();
    const auto numbers = [&](const Shape& shape) {
      const Tensor drawn = randn(shape, {.dtype = float64}, generator);
      return (draw(0, 1, generator) == 0 ? relu(drawn) : drawn).to(dtype).to(float64);
    };
    const Tensor x = numbers(p.input),
                 w = (randn(p.weight, {.dtype = float64}, generator) * 0.05).to(dtype).to(float64);
    const Tensor dy = numbers(output);
    const double sizes[]{30,       1e3,         6e4, 1e6, 1e9, 1e20, dtype == float64 ? 1e300 : 3e38,
                         infinity, not_a_number};
    const double size = sizes[draw(0, dtype == float16 ? 2 : 8, generator)];
    const bool of_x = draw(0, 2, generator) > 0, of_dy = !of_x || draw(0, 2, generator) == 0;
    const bool has_loud_channels = p.options.groups == 1 && draw(0, 2, generator) == 0;
    if (has_loud_channels) {
      const double loudest = dtype == float16 ? 100 : 1e8;
      const bool of_input = draw(0, 1, generator) == 0;
      scale_channels(of_input ? x : dy, w, of_input ? 1 : 0, loudest, generator);
      copy_into(w, w.to(dtype).to(float64));
    }
    if (of_x) spoil(x, size, generator);
    if (of_dy) spoil(dy, size, generator);
    std::vector<std::string> names{""};
    if (std::min(p.weight[0], p.weight[1]) >= 16) names.insert(names.end(), {"winograd:f2", "winograd:f4"});
    for (const std::string& name : names) {
      const Errors errors = errors_of(p, x.to(dtype).to(float64), w, dy.to(dtype).to(float64), name, dtype);
      CAPTURE(round, name, dtype, size, of_x, of_dy, p.input, p.weight);
      CHECK(errors.forward < most);
      CHECK(errors.backward_input < most);
      // Below that, sums of sparse numbers may have no product at all: not by default.
      if (name.empty() || dy.numel() / dy.size(1) >= 128) CHECK(errors.backward_weight < most);
    }
  }
}
