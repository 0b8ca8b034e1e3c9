#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/checkpoint.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/transforms.h"
#include "pleat/nn/loss.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/image/image.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/reduce/scan.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/unfold/unfold.h"
#include "pleat/tests/catch.h"

/// What integers and numbers at the ends of their ranges give, where it is known. That nothing else than a
/// result or a pleat::Error comes out is for the sweeps beside this file.

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t most = std::numeric_limits<int64_t>::max();
constexpr int64_t least = std::numeric_limits<int64_t>::min();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<float> numbers(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("a stride beyond the input leaves one window, whatever it is", "[limits]") {
  const Tensor x = arange(1, 10, 1, {.dtype = float32});
  const Tensor image = reshape(x, {1, 1, 3, 3});
  const Tensor usual = unfold(image, {.kernel_size = 2, .stride = 5});
  CHECK(numbers(usual) == std::vector<float>{1, 2, 4, 5});
  for (const int64_t stride : {most, most - 1, int64_t{1} << 62})
    CHECK(numbers(unfold(image, {.kernel_size = 2, .stride = stride})) == numbers(usual));
  CHECK(numbers(max_pool(image, {.kernel_size = 2, .stride = most})) == std::vector<float>{5});
  CHECK(numbers(avg_pool(image, {.kernel_size = 2, .stride = most})) == std::vector<float>{3});
  CHECK(numbers(avg_pool(image, {.kernel_size = 2, .stride = most, .ceil_mode = true})) ==
        std::vector<float>{3});
  CHECK(numbers(slice(x, 0, 0, 9, most)) == std::vector<float>{1});
  CHECK(unfold_dimension(x, 0, 2, most).shape() == Shape{1, 2});
}

TEST_CASE("images shifted out of sight are black, however far", "[limits]") {
  const Tensor image = ones({1, 1, 2, 2});
  for (const int64_t far : {int64_t{2}, most, most - 1, least, least + 1, -(int64_t{1} << 62)}) {
    CHECK(numbers(ops::shift_images(image, std::vector<ops::ImageShift>{{.down = far}})) ==
          std::vector<float>(4, 0));
    CHECK(numbers(ops::shift_images(image, std::vector<ops::ImageShift>{{.right = far}})) ==
          std::vector<float>(4, 0));
    CHECK_THROWS_AS(ops::shift_images(image, std::vector<ops::ImageShift>{{.down = far}}, true), ShapeError);
    CHECK_THROWS_AS(ops::shift_images(image, std::vector<ops::ImageShift>{{.right = far}}, true), ShapeError);
  }
  CHECK(numbers(ops::erase_boxes(image, std::vector<ops::ImageBox>{{least, least, most, most}})) ==
        std::vector<float>(4, 0));
}

TEST_CASE("rolling by the least integer is rolling by the rest", "[limits]") {
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0, 5.0}).set_requires_grad();
  for (const int64_t shift : {least, least + 1, most, int64_t{-3}}) {
    const Tensor usual = roll(x.detach(), shift % 5, 0);
    const Tensor y = roll(x, shift, 0);
    CHECK(numbers(y) == numbers(usual));
    x.set_grad({});
    sum(y * tensor({1.0, 10.0, 100.0, 1000.0, 10000.0})).backward();
    CHECK(numbers(x.grad()) == numbers(roll(tensor({1.0, 10.0, 100.0, 1000.0, 10000.0}), -(shift % 5), 0)));
  }
  for (const int64_t by : {least, most})
    CHECK(numbers(shifted(x.detach(), 0, by, 7)) == std::vector<float>(5, 7));
}

TEST_CASE("widths at the ends of int64 are refused, and empty tensors padded at once", "[limits]") {
  const Tensor x = ones({5});
  for (const PadMode mode : {PadMode::constant, PadMode::replicate}) {
    for (const int64_t width : {most, least, int64_t{1} << 62})
      CHECK_THROWS_AS(pad(x, {width, 1}, {.mode = mode}), Error);
    CHECK_THROWS_AS(pad(x, {least, most}, {.mode = mode}), ShapeError);
    CHECK_THROWS_AS(pad(x, {int64_t{1} << 50, 0}, {.mode = mode}), Error);
  }
  CHECK(pad(zeros({0, 2}), {int64_t{1} << 50, 0}, {.mode = PadMode::replicate}).numel() == 0);
}

TEST_CASE("an expanded tensor with more elements than years is not reduced", "[limits]") {
  const Tensor x = expand(scalar(1.0), {int64_t{1} << 62});
  const std::vector<std::function<void()>> calls = {
      [&] { (void)sum(x); },  [&] { (void)mean(x); }, [&] { (void)max(x); },  [&] { (void)argmax(x); },
      [&] { (void)norm(x); }, [&] { (void)var(x); },  [&] { (void)prod(x); }, [&] { (void)any(x); }};
  for (const auto& call : calls) CHECK_THROWS_WITH(call(), Contains("reduce it before it is expanded"));
  CHECK(sum(expand(scalar(1.0), {1 << 20})).item() == 1 << 20);
  CHECK_THROWS_AS(x + 1, ShapeError);  // bytes that int64 does not count
}

TEST_CASE("sums and products of integers wrap around", "[limits]") {
  const Tensor x = tensor({most, int64_t{1}, int64_t{1}});
  const Tensor y = tensor({most, int64_t{3}});
  const auto all = [](const Tensor& t) { return t.to_vector<int64_t>(); };
  CHECK(sum(x).item<int64_t>() == least + 1);
  CHECK(prod(y).item<int64_t>() == most - 2);
  CHECK(all(cumsum(x, 0)) == std::vector<int64_t>{most, least, least + 1});
  CHECK(all(cumprod(y, 0)) == std::vector<int64_t>{most, most - 2});
  const Tensor none = zeros({1}, {.dtype = int64});
  CHECK(all(index_add(none, 0, zeros({3}, {.dtype = int64}), x)) == std::vector<int64_t>{least + 1});
  CHECK(all(scatter_add(none, 0, zeros({3}, {.dtype = int64}), x)) == std::vector<int64_t>{least + 1});
}

TEST_CASE("a stride or dilation that nothing is moved by may be any number", "[limits]") {
  // One window, and a kernel of one element: what there is no second of has no distance.
  const Tensor x = rand({1, 2, 5, 5}).set_requires_grad();
  const Tensor w = rand({2, 2, 5, 5});
  const Tensor one = conv2d(x, w);
  const Tensor far = conv2d(x, w, {.stride = most});
  CHECK(numbers(far) == numbers(one));
  CHECK(numbers(grad({sum(far)}, {x})[0]) == numbers(grad({sum(one)}, {x})[0]));
  const Tensor point = rand({2, 2, 1, 1});
  CHECK(numbers(conv2d(x, point, {.dilation = most})) == numbers(conv2d(x, point)));
  CHECK(numbers(max_pool2d(x, {.kernel_size = 1, .stride = 2, .dilation = most})) ==
        numbers(max_pool2d(x, {.kernel_size = 1, .stride = 2})));
  CHECK(numbers(unfold(x, {.kernel_size = 5, .stride = most})) == numbers(unfold(x, {.kernel_size = 5})));
}

TEST_CASE("tables that the caller makes too large are refused before they are made", "[limits]") {
  const Tensor x = ones({1, 1, 1 << 16});
  const HostMemoryScope machine(64 << 20);
  CHECK_THROWS_AS(avg_pool(x, {.kernel_size = 1 << 15, .stride = 1}), OutOfMemoryError);
  CHECK_THROWS_AS(interpolate(x, {.size = 1 << 24}), OutOfMemoryError);
  CHECK_THROWS_AS(split(expand(scalar(1.0), {int64_t{1} << 40}), 1), OutOfMemoryError);
  CHECK_THROWS_AS(chunk(expand(scalar(1.0), {int64_t{1} << 40}), int64_t{1} << 39), OutOfMemoryError);
}

TEST_CASE("class labels outside are refused, negative ones too", "[limits]") {
  const Tensor logits = zeros({1, 3});
  for (const int64_t label : {int64_t{3}, int64_t{-1}, int64_t{-101}, most, least}) {
    CHECK_THROWS_AS(cross_entropy(logits, tensor({label})), IndexError);
    CHECK_THROWS_AS(nll_loss(logits, tensor({label})), IndexError);
    CHECK_THROWS_AS(one_hot(tensor({label}), 3), IndexError);
    CHECK_THROWS_AS(embedding(tensor({label}), ones({3, 2})), IndexError);
  }
  CHECK_NOTHROW(cross_entropy(logits, tensor({-100})));
  CHECK_NOTHROW(nll_loss(logits, tensor({most}), {.ignore_index = most}));
  CHECK_THROWS_AS(one_hot(tensor({most})), Error);
  CHECK_THROWS_WITH(one_hot(tensor({0}), -2), Contains("at least 0, or -1"));
  CHECK(one_hot(tensor({0, 2})).shape() == Shape{2, 3});
}

TEST_CASE("transforms take no option that is no number", "[limits]") {
  for (const double alpha : {0.0, -1.0, not_a_number, infinity}) {
    CHECK_THROWS_AS(data::mixup(alpha, 3), ValueError);
    CHECK_THROWS_AS(data::cutmix(alpha, 3), ValueError);
  }
  for (const double p : {-0.1, 1.1, not_a_number, infinity}) {
    CHECK_THROWS_AS(data::random_horizontal_flip(p), ValueError);
    CHECK_THROWS_AS(data::random_vertical_flip(p), ValueError);
    CHECK_THROWS_AS(data::color_jitter({.brightness = p}), ValueError);
    CHECK_THROWS_AS(data::color_jitter({.contrast = p}), ValueError);
    CHECK_THROWS_AS(data::color_jitter({.saturation = p}), ValueError);
  }
  const auto bad = static_cast<float>(not_a_number);
  CHECK_THROWS_AS(data::normalize({bad}, {1}), ValueError);
  CHECK_THROWS_AS(data::normalize({0}, {bad}), ValueError);
  CHECK_THROWS_AS(data::normalize({0}, {0}), ValueError);
  for (const int64_t size : {int64_t{-1}, most, least}) {
    CHECK_THROWS_AS(data::random_crop({.padding = size}), ValueError);
    CHECK_THROWS_AS(data::cutout(size), ValueError);
  }
  for (const int64_t classes : {int64_t{0}, int64_t{-1}, least})
    CHECK_THROWS_AS(data::mixup(1, classes), ValueError);
  const Tensor image = ones({1, 3, 2, 2});
  CHECK_THROWS_AS(ops::mix_images(image, std::vector<ops::ImageMix>{{.share = bad}}), ValueError);
  CHECK_THROWS_AS(ops::adjust_colors(image, std::vector<ops::ImageColors>{{.contrast = bad}}), ValueError);
  data::Batch batch{image, {}};
  const std::vector<data::Transform> list = {data::to_float(), nullptr};
  CHECK_THROWS_WITH(data::apply(list, batch, 0, 0, std::vector<int64_t>{0}), "transforms: number 1 is empty");
}

TEST_CASE("mixes of any alpha are of shares in [0, 1]", "[limits]") {
  for (const double alpha : {1e-308, 1e-5, 0.01, 1.0, 1e5, 1e308}) {
    data::Batch batch{rand({8, 1, 4, 4}), tensor({0, 1, 2, 0, 1, 2, 0, 1})};
    const std::vector<data::Transform> list = {data::mixup(alpha, 3), data::cutmix(alpha, 3)};
    const std::vector<int64_t> indices = {0, 1, 2, 3, 4, 5, 6, 7};
    data::apply(list, batch, 3, 0, indices);
    for (const float value : numbers(batch.inputs)) CHECK((value >= 0 && value <= 1));
    for (const float total : numbers(sum(batch.targets, 1))) CHECK(total == Approx(1));
  }
}

TEST_CASE("empty functions are refused where they are given", "[limits]") {
  const Tensor x = ones({1}, {.dtype = float64}).set_requires_grad();
  CHECK_THROWS_AS(checkpoint(std::function<Tensor(const Tensor&)>(), x), ValueError);
  CHECK_THROWS_AS(gradcheck(TensorFunction(), {x}), ValueError);
  CHECK_THROWS_AS(gradgradcheck(TensorFunction(), {x}), ValueError);
}
