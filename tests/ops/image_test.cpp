#include "pleat/ops/image/image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;

namespace {

constexpr int64_t images = 6, channels = 3, height = 5, width = 7;

/// Images of both types; a batch whose elements do not lie row-major.
std::vector<Tensor> batches() {
  manual_seed(11);
  const Shape shape = {images, channels, height, width};
  return {rand(shape), randint(0, 256, shape).to(uint8), rand(shape).to(MemoryFormat::channels_last),
          zeros({0, channels, height, width})};
}

/// What `f(x)` gives, checked to be what it gives on a GPU where there is one, to the bit.
template <class F>
std::vector<double> on_both(const Tensor& x, const F& f) {
  const std::vector<double> plain = f(x).template to_vector<double>();
  if (cuda::is_available()) CHECK((f(x.to("cuda")).template to_vector<double>() == plain));
  return plain;
}

template <class F>
void for_pixels(const Tensor& x, const F& f) {
  for (int64_t n = 0; n < x.size(0); ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t h = 0; h < height; ++h)
        for (int64_t w = 0; w < width; ++w)
          f(n, h, w, static_cast<std::size_t>(((n * channels + c) * height + h) * width + w));
}

std::size_t place(int64_t n, int64_t c, int64_t h, int64_t w) {
  return static_cast<std::size_t>(((n * channels + c) * height + h) * width + w);
}

}  // namespace

TEST_CASE("images are read at mapped places, between pixels", "[image][device]") {
  const std::vector<ops::ImageMap> maps = {{},
                                           {.row = {0.9F, 0.25F, -1.3F}, .column = {-0.25F, 0.9F, 0.7F}},
                                           {.row = {0, 1, 0}, .column = {1, 0, 0}},
                                           {.row = {2, 0, 0.5F}, .column = {0, 2, 0.5F}},
                                           {.row = {-1, 0, 3}, .column = {0, -1, 3}},
                                           {.row = {1, 0, 1e30F}, .column = {0, 1, -1e30F}}};
  constexpr int64_t rows = 6, columns = 5;
  for (const Tensor& x : batches())
    for (const bool repeat_edge : {false, true}) {
      CAPTURE(x.describe(), repeat_edge);
      const std::span all = std::span(maps).first(static_cast<std::size_t>(x.size(0)));
      const auto mapped = [&](const Tensor& t) {
        return ops::map_images(t, all, {rows, columns, repeat_edge}).to_vector<double>();
      };
      const auto y = mapped(x);
      // A GPU's compiler may fuse products with sums.
      const auto on_gpu = cuda::is_available() ? mapped(x.to("cuda")) : y;
      const auto from = x.to_vector<double>();
      double worst = 0;
      std::size_t at = 0;
      for (int64_t n = 0; n < x.size(0); ++n)
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t h = 0; h < rows; ++h)
            for (int64_t w = 0; w < columns; ++w, ++at) {
              const ops::ImageMap& map = maps[static_cast<std::size_t>(n)];
              const auto coordinate = [&](const std::array<float, 3>& of, int64_t size) {
                const double place = double{of[0]} * static_cast<double>(h) +
                                     double{of[1]} * static_cast<double>(w) + double{of[2]};
                const auto last = static_cast<double>(size - 1);
                return repeat_edge ? std::clamp(place, 0.0, last) : std::clamp(place, -2.0, last + 2);
              };
              const double row = coordinate(map.row, height), column = coordinate(map.column, width);
              double wanted = 0;
              for (int64_t i = 0; i < height; ++i)
                for (int64_t j = 0; j < width; ++j)
                  wanted += std::max(0.0, 1 - std::abs(row - static_cast<double>(i))) *
                            std::max(0.0, 1 - std::abs(column - static_cast<double>(j))) *
                            from[place(n, c, i, j)];
              worst = std::max({worst, std::abs(y[at] - wanted), std::abs(on_gpu[at] - wanted)});
            }
      CHECK(worst < (x.dtype() == uint8 ? 0.501 : 1e-5));
    }
  const std::vector<ops::ImageMap> one(1);
  CHECK_THROWS_AS(ops::map_images(zeros({2, 1, 3, 3}), one, {3, 3}), ShapeError);
  CHECK_THROWS_AS(ops::map_images(zeros({1, 1, 3, 3}), one, {-3, 3}), ShapeError);
  CHECK_THROWS_AS(
      ops::map_images(zeros({1, 1, 3, 3}), std::vector<ops::ImageMap>{{.row = {INFINITY, 0, 0}}}, {3, 3}),
      ValueError);
}

TEST_CASE("images are moved, then mirrored", "[image][device]") {
  const std::vector<ops::ImageShift> shifts = {{},
                                               {.down = 2, .right = -3},
                                               {.down = -4, .right = 6, .mirror_columns = true},
                                               {.mirror_rows = true},
                                               {.down = 1, .mirror_columns = true, .mirror_rows = true},
                                               {.right = 1}};
  for (const Tensor& x : batches())
    for (const bool reflect : {false, true}) {
      CAPTURE(x.describe(), reflect);
      const std::span all = std::span(shifts).first(static_cast<std::size_t>(x.size(0)));
      const auto y = on_both(x, [&](const Tensor& t) { return ops::shift_images(t, all, reflect); });
      const auto from = x.to_vector<double>();
      const auto source = [&](int64_t i, int64_t size) {
        if (i >= 0 && i < size) return i;
        return !reflect ? int64_t{-1} : i < 0 ? -i : 2 * size - 2 - i;
      };
      for_pixels(x, [&](int64_t n, int64_t h, int64_t w, std::size_t at) {
        const ops::ImageShift& s = shifts[static_cast<std::size_t>(n)];
        const int64_t c = static_cast<int64_t>(at) / (height * width) % channels;
        const int64_t sh = source((s.mirror_rows ? height - 1 - h : h) + s.down, height);
        const int64_t sw = source((s.mirror_columns ? width - 1 - w : w) + s.right, width);
        REQUIRE(y[at] == (sh < 0 || sw < 0 ? 0 : from[place(n, c, sh, sw)]));
      });
    }
  // Without reflection an image may leave altogether.
  const Tensor one = ones({1, 1, 2, 2});
  for (const int64_t far : {2, -2, 1000})
    CHECK((on_both(one, [&](const Tensor& t) {
             return ops::shift_images(t, std::vector<ops::ImageShift>{{.down = far}});
           }) == std::vector<double>(4, 0)));
  CHECK_THROWS_AS(ops::shift_images(one, std::vector<ops::ImageShift>{{.down = 2}}, true), ShapeError);
}

TEST_CASE("boxes are erased, images are mixed", "[image][device]") {
  const std::vector<ops::ImageBox> boxes = {
      {}, {0, 0, height, width}, {1, 2, 3, 5}, {-3, -3, 2, 2}, {3, 4, 100, 100}, {3, 4, 1, 2}};
  for (const Tensor& x : batches()) {
    CAPTURE(x.describe());
    const std::span all = std::span(boxes).first(static_cast<std::size_t>(x.size(0)));
    const auto erased = on_both(x, [&](const Tensor& t) { return ops::erase_boxes(t, all); });
    const auto from = x.to_vector<double>();
    const auto inside = [&](int64_t n, int64_t h, int64_t w) {
      const ops::ImageBox& b = boxes[static_cast<std::size_t>(n)];
      return h >= b.top && h < b.bottom && w >= b.left && w < b.right;
    };
    for_pixels(x, [&](int64_t n, int64_t h, int64_t w, std::size_t at) {
      REQUIRE(erased[at] == (inside(n, h, w) ? 0 : from[at]));
    });
    if (x.dtype() != float32) continue;

    std::vector<ops::ImageMix> mixes;
    for (int64_t n = 0; n < x.size(0); ++n)
      mixes.push_back({.partner = (n * 5 + 1) % images,
                       .share = 0.125F * static_cast<float>(n),
                       .box = boxes[static_cast<std::size_t>(n)]});
    const auto mixed = ops::mix_images(x, mixes).to_vector<double>();
    if (cuda::is_available())
      CHECK(test::relative_error(ops::mix_images(x.to("cuda"), mixes).to("cpu"), mixed) < 1e-7);
    for_pixels(x, [&](int64_t n, int64_t h, int64_t w, std::size_t at) {
      const ops::ImageMix& mix = mixes[static_cast<std::size_t>(n)];
      const double other = from[at + static_cast<std::size_t>((mix.partner - n) * channels * height * width)];
      const double share = mix.share;
      const double wanted = inside(n, h, w) ? other : share * from[at] + (1 - share) * other;
      REQUIRE(mixed[at] == Approx(wanted).epsilon(1e-6));
    });
  }
}

TEST_CASE("channels are scaled", "[image][device]") {
  const std::vector<float> scale = {0.5F, 2, -1};
  const std::vector<float> shift = {1, 0, 0.25F};
  for (const Tensor& x : batches()) {
    CAPTURE(x.describe());
    const Tensor y = ops::scale_channels(x, scale, shift);
    CHECK(y.dtype() == float32);
    const auto values = y.to_vector<double>();
    if (cuda::is_available())
      CHECK(test::relative_error(ops::scale_channels(x.to("cuda"), scale, shift).to("cpu"), values) < 1e-7);
    const auto from = x.to_vector<double>();
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t c = i / static_cast<std::size_t>(height * width) % 3;
      REQUIRE(values[i] == Approx(from[i] * scale[c] + shift[c]).epsilon(1e-6));
    }
  }
}

TEST_CASE("colours are adjusted about the image's mean grey", "[image][device]") {
  const Tensor x = rand({2, 3, 20, 21});
  const std::vector<ops::ImageColors> same = {{}, {}};
  CHECK(test::relative_error(ops::adjust_colors(x, same), x) < 1e-6);
  const std::vector<ops::ImageColors> colors = {{0.5F, 1, 1}, {1, 0, 0}};
  const auto y = ops::adjust_colors(x, colors).to_vector<double>();
  const auto from = x.to_vector<double>();
  constexpr std::size_t n = 420;
  for (std::size_t k = 0; k < 3 * n; ++k) REQUIRE(y[k] == Approx(from[k] * 0.5).margin(1e-6));
  // No contrast leaves one grey.
  double grey = 0;
  for (std::size_t k = 0; k < n; ++k)
    grey += 0.299 * from[3 * n + k] + 0.587 * from[4 * n + k] + 0.114 * from[5 * n + k];
  for (std::size_t k = 3 * n; k < 6 * n; ++k) REQUIRE(y[k] == Approx(grey / n).epsilon(1e-5));
  if (cuda::is_available())
    CHECK(test::relative_error(ops::adjust_colors(x.to("cuda"), colors).to("cpu"), y) < 1e-6);
}

TEST_CASE("rows are taken by indices of the host", "[index]") {
  for (const Tensor& x :
       {arange(0, 24).to(float32), reshape(arange(24), {6, 4}), zeros({5, 0}), rand({4, 3, 2, 2})}) {
    const std::vector<int64_t> indices = {3, 0, 3, x.size(0) - 1};
    on_both(x, [&](const Tensor& t) { return ops::take_rows(t, indices); });
    CHECK((ops::take_rows(x, indices).to_vector() == index_select(x, 0, from_vector(indices)).to_vector()));
  }
  CHECK(ops::take_rows(rand({4, 2}), {}).shape() == Shape{0, 2});
  CHECK_THROWS_WITH(ops::take_rows(zeros({4, 2}), std::vector<int64_t>{1, 4}),
                    Catch::Matchers::Contains("take_rows: row 4 is outside [0, 4)"));
  CHECK_THROWS_AS(ops::take_rows(zeros({4, 2}), std::vector<int64_t>{-1}), IndexError);
  CHECK_THROWS_AS(ops::take_rows(scalar(1.0), std::vector<int64_t>{0}), ShapeError);
}

TEST_CASE("functions of images refuse what they do not take", "[image][device]") {
  const std::vector<ops::ImageShift> two(2);
  CHECK_THROWS_WITH(ops::shift_images(zeros({2, 3, 4}), two),
                    Catch::Matchers::Contains("shift_images: needs images [B, C, H, W]"));
  CHECK_THROWS_AS(ops::shift_images(zeros({3, 1, 2, 2}), two), ShapeError);
  CHECK_THROWS_AS(ops::shift_images(zeros({2, 1, 2, 2}, {.dtype = float64}), two), DTypeError);
  CHECK_THROWS_AS(ops::mix_images(zeros({1, 1, 2, 2}), std::vector<ops::ImageMix>{{.partner = 1}}),
                  IndexError);
  CHECK_THROWS_AS(ops::mix_images(zeros({1, 1, 2, 2}, {.dtype = uint8}), std::vector<ops::ImageMix>(1)),
                  DTypeError);
  CHECK_THROWS_AS(ops::adjust_colors(zeros({1, 1, 2, 2}), std::vector<ops::ImageColors>(1)), ShapeError);
  CHECK_THROWS_AS(ops::scale_channels(zeros({1, 2, 2}), std::vector<float>{1}, std::vector<float>{1}),
                  ShapeError);
  CHECK_THROWS_AS(ops::scale_channels(zeros({1, 1, 2}), std::vector<float>{1}, std::vector<float>{1, 2}),
                  ShapeError);
}
