#include "pleat/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
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
