#include "pleat/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pleat/autograd/functions.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::data;

namespace {

Batch transformed(const Transform& transform, const Tensor& images, const Tensor& targets = {},
                  int64_t epoch = 0) {
  Batch batch{images.clone(), targets};
  std::vector<int64_t> indices(static_cast<std::size_t>(images.size(0)));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  apply(std::span(&transform, 1), batch, 17, epoch, indices);
  return batch;
}

}  // namespace

TEST_CASE("normalize scales bytes and removes mean and std of each channel", "[data]") {
  const Tensor bytes = tensor({{{{0}}, {{255}}}}, uint8);
  const Batch batch = transformed(normalize({0.5F, 0.25F}, {0.5F, 0.75F}), bytes);
  CHECK(batch.inputs.dtype() == float32);
  const auto values = batch.inputs.to_vector();
  CHECK(values[0] == Approx(-1));
  CHECK(values[1] == Approx(1));
  CHECK(transformed(to_float(), bytes).inputs.to_vector() == std::vector<float>{0, 1});
}

TEST_CASE("random_crop moves images whole and fills with zeros or the mirrored border", "[data]") {
  const Tensor images = rand({64, 2, 6, 5}) + 1;
  const auto source = images.to_vector();
  for (const bool reflect : {false, true}) {
    const auto moved =
        transformed(random_crop({.padding = 2, .reflect = reflect}), images).inputs.to_vector();
    int64_t found = 0;
    std::vector<bool> shifts(25);
    for (int64_t n = 0; n < 64; ++n)
      for (int64_t down = -2; down <= 2; ++down)
        for (int64_t right = -2; right <= 2; ++right) {
          bool same = true;
          for (int64_t c = 0; c < 2; ++c)
            for (int64_t h = 0; h < 6; ++h)
              for (int64_t w = 0; w < 5; ++w) {
                int64_t sh = h + down;
                int64_t sw = w + right;
                const bool inside = sh >= 0 && sh < 6 && sw >= 0 && sw < 5;
                if (reflect) {
                  sh = sh < 0 ? -sh : sh >= 6 ? 10 - sh : sh;
                  sw = sw < 0 ? -sw : sw >= 5 ? 8 - sw : sw;
                }
                const float expected =
                    inside || reflect ? source[static_cast<std::size_t>(((n * 2 + c) * 6 + sh) * 5 + sw)] : 0;
                same = same && moved[static_cast<std::size_t>(((n * 2 + c) * 6 + h) * 5 + w)] == expected;
              }
          if (same) {
            ++found;
            shifts[static_cast<std::size_t>((down + 2) * 5 + right + 2)] = true;
          }
        }
    CHECK(found == 64);
    CHECK(std::count(shifts.begin(), shifts.end(), true) > 15);
  }
}

TEST_CASE("flips mirror about half of the images, others in another epoch", "[data]") {
  const Tensor images = tensor({{{{1, 2, 3}, {4, 5, 6}}}}, uint8).as_strided({200, 1, 2, 3}, {0, 6, 3, 1}, 0);
  const auto count = [&](const Transform& transform, const std::vector<int>& mirrored, int64_t epoch) {
    const auto values = transformed(transform, images, {}, epoch).inputs.to_vector<int>();
    int flipped = 0;
    for (std::size_t i = 0; i < values.size(); i += 6) {
      const std::vector<int> image(values.begin() + static_cast<std::ptrdiff_t>(i),
                                   values.begin() + static_cast<std::ptrdiff_t>(i) + 6);
      const bool same = image == std::vector<int>{1, 2, 3, 4, 5, 6};
      CHECK((same || image == mirrored));
      flipped += same ? 0 : 1;
    }
    return flipped;
  };
  CHECK(std::abs(count(random_horizontal_flip(), {3, 2, 1, 6, 5, 4}, 0) - 100) < 30);
  CHECK(std::abs(count(random_vertical_flip(), {4, 5, 6, 1, 2, 3}, 0) - 100) < 30);
  CHECK(count(random_horizontal_flip(1), {3, 2, 1, 6, 5, 4}, 0) == 200);
  CHECK(count(random_horizontal_flip(0), {3, 2, 1, 6, 5, 4}, 0) == 0);
  CHECK(transformed(random_horizontal_flip(), images, {}, 0).inputs.to_vector() !=
        transformed(random_horizontal_flip(), images, {}, 1).inputs.to_vector());
}

TEST_CASE("cutout blackens one square", "[data]") {
  const auto values = transformed(cutout(3), ones({50, 1, 8, 8})).inputs.to_vector();
  for (std::size_t i = 0; i < 50; ++i) {
    const auto zeros_in = std::count(values.begin() + static_cast<std::ptrdiff_t>(i * 64),
                                     values.begin() + static_cast<std::ptrdiff_t>(i * 64 + 64), 0.0F);
    CHECK(zeros_in <= 9);
    CHECK(zeros_in >= 4);
  }
}

namespace {

/// Images [n, 1, height, width] whose pixel (h, w) is f(h, w).
template <class F>
Tensor pictures(int64_t n, int64_t height, int64_t width, const F& f) {
  std::vector<float> values;
  for (int64_t h = 0; h < height; ++h)
    for (int64_t w = 0; w < width; ++w) values.push_back(static_cast<float>(f(h, w)));
  return from_vector(values, {1, 1, height, width}).as_strided({n, 1, height, width}, {0, 0, width, 1}, 0);
}

}  // namespace

// In an image that is linear in h and w, what is read between pixels tells the place, exactly.
TEST_CASE("random_affine turns, magnifies, shears and moves about the centre", "[data]") {
  constexpr int64_t n = 200, size = 33, centre = 16;
  const Tensor rows = pictures(n, size, size, [](int64_t h, int64_t) { return h - centre; });
  const Tensor columns = pictures(n, size, size, [](int64_t, int64_t w) { return w - centre; });
  /// Where the pixel of the result that is (down, right) of the centre comes from, image by image.
  const auto places = [&](const Transform& transform, int64_t down, int64_t right) {
    const auto h = transformed(transform, rows).inputs.to_vector();
    const auto w = transformed(transform, columns).inputs.to_vector();
    std::vector<std::pair<double, double>> result;
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>((i * size + centre + down) * size + centre + right);
      result.emplace_back(h[at], w[at]);
    }
    return result;
  };
  // A rotation keeps the distance, and its angles are spread over the range.
  double least = 1, most = -1;
  for (const auto& [h, w] : places(random_rotation(30), 0, 8)) {
    CHECK(std::hypot(h, w) == Approx(8).margin(1e-4));
    least = std::min(least, h / 8);
    most = std::max(most, h / 8);
  }
  CHECK(least == Approx(-0.5).margin(0.05));
  CHECK(most == Approx(0.5).margin(0.05));
  for (const auto& [h, w] : places(random_affine({.scale = {2, 2}}), 4, -6)) {
    CHECK(h == Approx(2).margin(1e-5));
    CHECK(w == Approx(-3).margin(1e-5));
  }
  for (const auto& [h, w] : places(random_affine({.scale = {0.5, 2}}), 4, 4)) {
    CHECK((h >= 2 && h <= 8));
    CHECK(h == Approx(w).margin(1e-5));
  }
  // A shear moves rows along themselves: at 8 rows from the centre by up to 8 tan(20 degrees).
  most = 0;
  for (const auto& [h, w] : places(random_affine({.shear = 20}), 8, 0)) {
    CHECK(h == Approx(8).margin(1e-5));
    most = std::max(most, std::abs(w));
  }
  CHECK(most == Approx(8 * std::tan(20 * 3.14159265 / 180)).margin(0.1));
  // All together: half as large, a shear keeps areas, and along a row of the source it keeps lengths.
  const Transform all = random_affine({.degrees = 40, .translate = 0.1, .scale = {2, 2}, .shear = 25});
  const auto origin = places(all, 0, 0), below = places(all, 6, 0), beside = places(all, 0, 6);
  for (std::size_t i = 0; i < origin.size(); ++i) {
    const double h_down = (below[i].first - origin[i].first) / 6,
                 h_right = (beside[i].first - origin[i].first) / 6;
    const double w_down = (below[i].second - origin[i].second) / 6,
                 w_right = (beside[i].second - origin[i].second) / 6;
    CHECK(h_down * w_right - h_right * w_down == Approx(0.25).margin(1e-5));
    CHECK(std::hypot(h_down, h_right) == Approx(0.5).margin(1e-5));
  }
  most = 0;
  for (const auto& [h, w] : places(random_affine({.translate = 0.25}), 0, 0)) {
    most = std::max(most, std::abs(h));
    CHECK(std::abs(w) <= 0.25 * size);
  }
  CHECK(most == Approx(0.25 * size).margin(0.3));
}

TEST_CASE("random_affine of nothing changes nothing; what comes in is 0 or the edge", "[data]") {
  const Tensor floats = rand({6, 2, 5, 4}) + 1;
  const Tensor bytes = randint(0, 256, {6, 2, 5, 4}).to(uint8);
  CHECK(transformed(random_affine({}), floats).inputs.to_vector() == floats.to_vector());
  CHECK(transformed(random_rotation(0), bytes).inputs.to_vector<int>() == bytes.to_vector<int>());
  const auto smallest = [&](bool repeat_edge) {
    const auto values =
        transformed(random_affine({.translate = 1, .repeat_edge = repeat_edge}), floats).inputs.to_vector();
    return *std::min_element(values.begin(), values.end());
  };
  CHECK(smallest(false) == 0);
  CHECK(smallest(true) >= 1);
}

TEST_CASE("random_resized_crop shows boxes of the areas and ratios asked for", "[data]") {
  constexpr int64_t n = 300, height = 40, width = 60;
  const RandomResizedCropOptions options{.size = {8, 10}, .area = {0.1, 0.5}, .ratio = {0.5, 2}};
  const Tensor h = transformed(random_resized_crop(options),
                               pictures(n, height, width, [](int64_t i, int64_t) { return i; }))
                       .inputs;
  const Tensor w = transformed(random_resized_crop(options),
                               pictures(n, height, width, [](int64_t, int64_t j) { return j; }))
                       .inputs;
  CHECK(h.shape() == Shape{n, 1, 8, 10});
  const auto down = h.to_vector<double>(), right = w.to_vector<double>();
  double least = 1, most = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = [i](const std::vector<double>& x, int64_t row, int64_t column) {
      return x[static_cast<std::size_t>((i * 8 + row) * 10 + column)];
    };
    const double rows = (at(down, 4, 4) - at(down, 3, 4)) * 8,
                 columns = (at(right, 4, 5) - at(right, 4, 4)) * 10;
    const double top = at(down, 4, 4) - 4.5 * rows / 8 + 0.5,
                 left = at(right, 4, 5) - 5.5 * columns / 10 + 0.5;
    CHECK(rows == Approx(std::round(rows)).margin(1e-3));
    CHECK(columns == Approx(std::round(columns)).margin(1e-3));
    CHECK((top > -0.01 && top + rows < height + 0.01 && left > -0.01 && left + columns < width + 0.01));
    const double area = rows * columns / (height * width);
    least = std::min(least, area);
    most = std::max(most, area);
    CHECK(std::abs(std::log2(columns / rows)) < 1.1);  // rounded to whole pixels
  }
  CHECK(least == Approx(0.1).margin(0.03));
  CHECK(most == Approx(0.5).margin(0.05));
  // No such box fits: the largest in the middle.
  const Tensor wide = pictures(2, 4, 100, [](int64_t, int64_t j) { return j; });
  const auto middle =
      transformed(random_resized_crop({.size = {4, 8}, .area = {1, 1}, .ratio = {1, 2}}), wide)
          .inputs.to_vector();
  for (std::size_t j = 0; j < 8; ++j) CHECK(middle[48 + j] == 46 + static_cast<float>(j));
}

TEST_CASE("random_erasing sets boxes to 0, in about half of the images", "[data]") {
  constexpr int64_t n = 400;
  const Tensor y = transformed(random_erasing({.area = {0.1, 0.2}}), ones({n, 2, 20, 20})).inputs;
  const auto values = y.to_vector();
  int64_t erased = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto first = values.begin() + i * 800;
    const auto count = std::count(first, first + 400, 0.0F);
    CHECK(std::count(first + 400, first + 800, 0.0F) == count);
    CHECK((count == 0 || (count >= 30 && count <= 95)));
    erased += count > 0 ? 1 : 0;
  }
  CHECK(std::abs(erased - n / 2) < 50);
  CHECK(transformed(random_erasing({.p = 0}), ones({9, 1, 8, 8})).inputs.to_vector() ==
        std::vector<float>(576, 1));
}

TEST_CASE("masks and boxes go where their pictures go", "[data]") {
  constexpr int64_t count = 24, height = 12, width = 10;
  const Tensor pictures = zeros({count, 1, height, width});
  fill_(narrow(narrow(pictures, 2, 2, 4), 3, 3, 5), 1);
  std::vector<float> boxes;
  for (int64_t i = 0; i < count; ++i)
    for (const int64_t number : {i, int64_t{3}, int64_t{2}, int64_t{8}, int64_t{6}})
      boxes.push_back(static_cast<float>(number));
  struct Case {
    Transform transform;
    double tolerance;  ///< pixels between a box and the pixels in it
  };
  for (const auto& [transform, tolerance] :
       std::vector<Case>{{random_horizontal_flip(), 0},
                         {random_vertical_flip(), 0},
                         {random_crop({.padding = 7}), 0},
                         {random_resized_crop({.size = {20, 30}, .area = {0.2, 1}}), 1.5},
                         {random_affine({.degrees = 0, .translate = 0.5, .scale = {1.5, 2}}), 1.5},
                         {random_rotation(40), 1.5}}) {
    CAPTURE(tolerance);
    Batch batch{pictures.clone(), squeeze(pictures, 1).to(int64)};
    batch.extras["boxes"] = from_vector(boxes, {count, 5});
    batch.extras["labels"] = arange(count);
    std::vector<int64_t> indices(count);
    std::iota(indices.begin(), indices.end(), int64_t{0});
    apply(std::span(&transform, 1), batch, 3, 0, indices);
    const int64_t rows = batch.inputs.size(2), columns = batch.inputs.size(3);
    REQUIRE(batch.targets.shape() == Shape{count, rows, columns});
    CHECK(batch.targets.dtype() == int64);
    const auto pixel = batch.inputs.to_vector<double>();
    const auto mask = batch.targets.to_vector<int64_t>();
    const auto moved = batch.extras.at("boxes").to_vector<double>();
    const auto labels = batch.extras.at("labels").to_vector<int64_t>();
    REQUIRE(moved.size() == 5 * labels.size());
    CHECK(labels.size() > count / 3);
    std::size_t box = 0;
    for (int64_t i = 0; i < count; ++i) {
      double x1 = 1e9, y1 = 1e9, x2 = -1, y2 = -1;
      for (int64_t h = 0; h < rows; ++h)
        for (int64_t w = 0; w < columns; ++w) {
          const auto at = static_cast<std::size_t>((i * rows + h) * columns + w);
          if (tolerance == 0) CHECK((mask[at] == 1) == (pixel[at] == 1));
          CHECK((mask[at] == 0 || mask[at] == 1 || mask[at] == -100));
          if (mask[at] != 1) continue;
          x1 = std::min(x1, static_cast<double>(w)), x2 = std::max(x2, static_cast<double>(w + 1));
          y1 = std::min(y1, static_cast<double>(h)), y2 = std::max(y2, static_cast<double>(h + 1));
        }
      const bool left = box < labels.size() && labels[box] == i;
      if (tolerance == 0) CHECK(left == (x2 > x1));
      if (!left) continue;
      CHECK(moved[5 * box] == static_cast<double>(i));
      const std::vector<double> pixels = {x1, y1, x2, y2};
      for (std::size_t side = 0; side < 4 && x2 > x1; ++side)
        CHECK(std::abs(moved[5 * box + 1 + side] - pixels[side]) <= tolerance);
      ++box;
    }
    CHECK(box == labels.size());
  }
  // What comes in from outside is of no class, unless it repeats or mirrors what is there.
  const auto outside = [&](const Transform& transform) {
    const Tensor moved = transformed(transform, pictures, zeros({count, height, width}, int64)).targets;
    return sum(moved == -100).item() > 0;
  };
  CHECK(outside(random_crop({.padding = 4})));
  CHECK(outside(random_rotation(40)));
  CHECK_FALSE(outside(random_crop({.padding = 4, .reflect = true})));
  CHECK_FALSE(outside(random_affine({.degrees = 40, .repeat_edge = true})));
  // Targets of other shapes and types are no masks.
  const Tensor other = arange(count * height).to(int64);
  CHECK(array_equal(transformed(random_crop(), pictures, reshape(other, {count, height})).targets,
                    reshape(other, {count, height})));
  Batch wrong{pictures, {}, {}, {{"boxes", zeros({1, 4})}}};
  std::vector<int64_t> indices(count);
  const Transform flip = random_horizontal_flip();
  CHECK_THROWS_AS(apply(std::span(&flip, 1), wrong, 1, 0, indices), ShapeError);
  wrong.extras["boxes"] = full({1, 5}, static_cast<double>(count));
  CHECK_THROWS_AS(apply(std::span(&flip, 1), wrong, 1, 0, indices), IndexError);
}

TEST_CASE("color_jitter stays in [0, 1] and does nothing with factors of 1", "[data]") {
  const Tensor images = rand({8, 3, 4, 4});
  const auto same = transformed(color_jitter({}), images).inputs.to_vector();
  const auto source = images.to_vector();
  for (std::size_t i = 0; i < source.size(); ++i) CHECK(same[i] == Approx(source[i]).margin(1e-6));
  const auto changed =
      transformed(color_jitter({.brightness = 0.5, .contrast = 0.5, .saturation = 0.5}), images)
          .inputs.to_vector();
  CHECK(changed != source);
  CHECK(*std::min_element(changed.begin(), changed.end()) >= 0);
  CHECK(*std::max_element(changed.begin(), changed.end()) <= 1);
}

TEST_CASE("mixup and cutmix mix targets as they mix images", "[data]") {
  // Image i is filled with i, so its mean tells the shares.
  const Tensor images = arange(4).to(float32).as_strided({4, 1, 8, 8}, {1, 0, 0, 0}, 0);
  for (const Transform& transform : {mixup(1.0, 4), cutmix(1.0, 4)}) {
    const Batch batch = transformed(transform, images, arange(4));
    CHECK(batch.targets.shape() == Shape{4, 4});
    const auto pixels = batch.inputs.to_vector();
    const auto targets = batch.targets.to_vector();
    bool mixed = false;
    for (std::size_t i = 0; i < 4; ++i) {
      float mean = 0;
      for (std::size_t k = 0; k < 64; ++k) mean += pixels[i * 64 + k] / 64;
      float expected = 0;
      float total = 0;
      for (std::size_t c = 0; c < 4; ++c) {
        expected += targets[i * 4 + c] * static_cast<float>(c);
        total += targets[i * 4 + c];
        mixed = mixed || (targets[i * 4 + c] > 0.01F && targets[i * 4 + c] < 0.99F);
      }
      CHECK(total == Approx(1));
      CHECK(mean == Approx(expected).margin(1e-4));
    }
    CHECK(mixed);
  }
}

TEST_CASE("bad transforms are refused", "[data]") {
  CHECK_THROWS_AS(normalize({0.5F}, {0.0F}), ValueError);
  CHECK_THROWS_AS(normalize({0.5F}, {1, 1}), ShapeError);
  CHECK_THROWS_AS(random_horizontal_flip(1.5), ValueError);
  CHECK_THROWS_AS(random_crop({.padding = -1}), ValueError);
  CHECK_THROWS_AS(cutout(0), ValueError);
  CHECK_THROWS_AS(random_rotation(-1), ValueError);
  CHECK_THROWS_AS(random_affine({.translate = 2}), ValueError);
  CHECK_THROWS_AS(random_affine({.scale = {0, 1}}), ValueError);
  CHECK_THROWS_AS(random_affine({.scale = {1, NAN}}), ValueError);
  CHECK_THROWS_WITH(random_affine({.scale = {1, 2e6}}),
                    Catch::Matchers::Contains("above 0 and at most 1000000, got {1, 2000000}"));
  CHECK_THROWS_AS(random_affine({.shear = 90}), ValueError);
  CHECK_THROWS_AS(random_resized_crop({.size = 0}), ValueError);
  CHECK_THROWS_AS(random_resized_crop({.size = {4, 4, 4}}), ShapeError);
  CHECK_THROWS_AS(random_resized_crop({.size = 4, .area = {0.5, 1.5}}), ValueError);
  CHECK_THROWS_AS(random_erasing({.ratio = {2, 1}}), ValueError);
  CHECK_THROWS_AS(transformed(random_resized_crop({.size = 4}), zeros({2, 1, 0, 3})), ShapeError);
  CHECK_THROWS_AS(transformed(random_rotation(9), zeros({2, 1, 4, 4}, {.dtype = float64})), DTypeError);
  CHECK_THROWS_AS(mixup(0, 10), ValueError);
  CHECK_THROWS_AS(color_jitter({.brightness = 2}), ValueError);
  CHECK_THROWS_AS(transformed(normalize({0, 0}, {1, 1}), zeros({2, 3, 4, 4})), ShapeError);
  CHECK_THROWS_AS(transformed(normalize({127}, {60}), zeros({2, 1, 4, 4}, uint8)), ValueError);
  CHECK_NOTHROW(transformed(normalize({127}, {60}), zeros({2, 1, 4, 4})));
  CHECK_THROWS_AS(transformed(random_crop(), zeros({2, 3})), ShapeError);
  CHECK_THROWS_AS(transformed(mixup(1, 2), zeros({2, 1, 2, 2}), tensor({0, 2})), IndexError);
}

TEST_CASE("transforms give on a GPU what they give on the CPU", "[data][device]") {
  if (pleat_test::lacks_gpus()) return;
  const Tensor bytes = randint(0, 256, {16, 3, 9, 8}).to(uint8);
  const Tensor floats = rand({16, 3, 9, 8});
  const Tensor labels = randint(0, 4, {16});
  struct Case {
    std::string name;
    Transform transform;
    Tensor images;
    double tolerance;  ///< 0 where nothing is computed; else a compiler may fuse products with sums
  };
  const std::vector<Case> cases = {
      {"normalize", normalize({0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}), bytes, 1e-6},
      {"to_float", to_float(), bytes, 1e-6},
      {"random_crop", random_crop({.padding = 3}), bytes, 0},
      {"random_crop, reflected", random_crop({.padding = 3, .reflect = true}), floats, 0},
      {"random_horizontal_flip", random_horizontal_flip(), bytes, 0},
      {"random_vertical_flip", random_vertical_flip(), floats, 0},
      {"random_affine",
       random_affine(
           {.degrees = 30, .translate = 0.2, .scale = {0.8, 1.5}, .shear = 10, .repeat_edge = true}),
       floats, 1e-5},
      {"random_rotation", random_rotation(180), floats, 1e-5},
      {"random_resized_crop", random_resized_crop({.size = {5, 7}}), floats, 1e-5},
      {"random_erasing", random_erasing(), bytes, 0},
      {"cutout", cutout(4), floats, 0},
      {"color_jitter", color_jitter({.brightness = 0.3, .contrast = 0.4, .saturation = 0.5}), floats, 1e-6},
      {"mixup", mixup(0.4, 4), floats, 1e-6},
      {"cutmix", cutmix(1.0, 4), floats, 1e-6}};
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const Batch plain = transformed(one.transform, one.images.to("cpu"), labels.to("cpu"));
    const Batch again = transformed(one.transform, one.images.to("cuda"), labels.to("cuda"));
    CHECK(test::relative_error(again.inputs.to("cpu"), plain.inputs) <= one.tolerance);
    CHECK(test::relative_error(again.targets.to("cpu"), plain.targets) <= one.tolerance);
  }
}
