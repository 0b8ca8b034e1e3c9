// What torchvision gives for boxes, regions of images and moved taps.

#include <cmath>
#include <limits>
#include <vector>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/backward.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/sample/boxes.h"
#include "pleat/ops/sample/deform_conv.h"
#include "pleat/ops/sample/roi_align.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using test::Json;

namespace {

void check_gradients(const Json& c, const Tensor& y, const std::map<std::string, Tensor>& inputs) {
  CHECK(test::relative_error(y, test::tensor_from(c.at("outputs").at("y"))) < 1e-13);
  std::vector<Tensor> leaves, wanted;
  for (const auto& [name, gradient] : c.at("grads").items()) {
    leaves.push_back(inputs.at(name));
    wanted.push_back(test::tensor_from(gradient));
  }
  const Grads got = grad({y}, leaves, {test::tensor_from(c.at("grad_output"))});
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(test::relative_error(got[i], wanted[i]) < 1e-12);
}

std::vector<int64_t> integers_of(const Json& json) { return json.get<std::vector<int64_t>>(); }

}  // namespace

TEST_CASE("roi_align gives torchvision's values and gradients", "[roi_align]") {
  for (const Json& c : test::fixture_cases("regions", "roi_align")) {
    CAPTURE(c.at("name").get<std::string>());
    const Json& o = c.at("options");
    auto in = test::tensors_from(c.at("inputs"));
    for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
      in.at("x") = in.at("x").detach().to(format).set_requires_grad();
      const Tensor y = roi_align(in.at("x"), in.at("boxes"),
                                 {.output_size = PerDim(integers_of(o.at("output_size"))),
                                  .spatial_scale = o.at("spatial_scale").get<double>(),
                                  .sampling_ratio = o.at("sampling_ratio").get<int64_t>(),
                                  .aligned = o.at("aligned").get<bool>()});
      CHECK(y.is_contiguous(format));
      check_gradients(c, y, in);
    }
  }
}

TEST_CASE("deform_conv2d gives torchvision's values and gradients", "[deform_conv]") {
  for (const Json& c : test::fixture_cases("regions", "deform_conv2d")) {
    CAPTURE(c.at("name").get<std::string>());
    const Json& o = c.at("options");
    auto in = test::tensors_from(c.at("inputs"));
    for (auto& [name, input] : in) input = input.set_requires_grad();
    const auto mask = in.find("mask");
    const Tensor y = deform_conv2d(in.at("x"), in.at("offset"), in.at("weight"), in.at("bias"),
                                   {.stride = PerDim(integers_of(o.at("stride"))),
                                    .padding = PerDim(integers_of(o.at("padding"))),
                                    .dilation = PerDim(integers_of(o.at("dilation"))),
                                    .mask = mask == in.end() ? Tensor() : mask->second});
    check_gradients(c, y, in);
  }
}

TEST_CASE("roi_align: no boxes, far boxes, boxes of another type", "[roi_align]") {
  const Tensor x = ones({2, 3, 5, 6});
  CHECK(roi_align(x, zeros({0, 5}), {.output_size = {2, 4}}).shape() == Shape{0, 3, 2, 4});
  // 2^29 samples a bin, of which those around the image count.
  const Tensor huge = tensor({{0.0, -536870912.0, 0.0, 536870912.0, 5.0}}).to(float32);
  const Tensor y = roi_align(x, huge, {.output_size = 1});
  CHECK(y.shape() == Shape{1, 3, 1, 1});
  CHECK(y.to_vector()[0] > 0);
  CHECK(y.to_vector()[0] < 1e-7);
  const Tensor box = tensor({{1.0, 1.0, 1.0, 3.0, 3.0}});
  CHECK(roi_align(x.to(bfloat16), box, {.output_size = 2}).dtype() == bfloat16);
  CHECK(roi_align(x, box.to(float16), {.output_size = 2}).to_vector() == std::vector<float>(12, 1));
}

TEST_CASE("deform_conv2d without offsets is a convolution, under autocast in a half type", "[deform_conv]") {
  const Tensor x = ones({1, 2, 4, 4}), weight = ones({3, 2, 3, 3});
  const Tensor offset = zeros({1, 18, 4, 4});
  CHECK(deform_conv2d(x, offset, weight, {}, {.padding = 1}).to_vector()[5] == 18);
  const Autocast half(bfloat16);
  CHECK(deform_conv2d(x.to(bfloat16), offset, weight, {}, {.padding = 1}).dtype() == bfloat16);
}

TEST_CASE("nms and batched_nms keep the boxes that torchvision keeps, in its order", "[nms]") {
  const Tensor boxes = tensor({{0.0, 0.0, 10.0, 10.0},
                               {1.0, 1.0, 11.0, 11.0},
                               {0.0, 0.0, 10.0, 9.5},
                               {20.0, 20.0, 30.0, 30.0},
                               {21.0, 20.0, 31.0, 29.0},
                               {5.0, 5.0, 5.0, 5.0},
                               {0.0, 0.0, 10.0, 10.0},
                               {19.0, 21.0, 29.0, 31.0}});
  const Tensor scores = tensor({0.9, 0.8, 0.95, 0.3, 0.7, 0.1, 0.9, 0.7});
  const Tensor classes = tensor({0, 1, 0, 2, 2, 0, 1, 2});
  struct Case {
    double threshold;
    std::vector<int64_t> all, by_class;
  };
  const std::vector<Case> cases = {{0, {2, 4, 5}, {2, 6, 4, 5}},
                                   {0.5, {2, 4, 5}, {2, 6, 4, 5}},
                                   {0.7, {2, 1, 4, 7, 5}, {2, 6, 1, 4, 7, 5}},
                                   {0.9, {2, 1, 4, 7, 3, 5}, {2, 6, 1, 4, 7, 3, 5}},
                                   {1, {2, 0, 6, 1, 4, 7, 3, 5}, {2, 0, 6, 1, 4, 7, 3, 5}}};
  for (const Case& c : cases) {
    CHECK(nms(boxes, scores, c.threshold).to_vector<int64_t>() == c.all);
    CHECK(batched_nms(boxes, scores, classes, c.threshold).to_vector<int64_t>() == c.by_class);
  }
  CHECK(nms(zeros({0, 4}), zeros({0}), 0.5).shape() == Shape{0});
  CHECK(batched_nms(zeros({0, 4}), zeros({0}), tensor(std::vector<int64_t>()), 0.5).shape() == Shape{0});
  CHECK(nms(boxes, scores, 0.5).dtype() == int64);
}

TEST_CASE("boxes that do not fit, and scores that are no numbers, are errors", "[nms]") {
  const Tensor boxes = ones({2, 4}), scores = ones({2});
  CHECK_THROWS_AS(nms(ones({2, 5}), scores, 0.5), ShapeError);
  CHECK_THROWS_AS(nms(boxes.to(int64), scores, 0.5), DTypeError);
  CHECK_THROWS_AS(nms(boxes, scores.to(int64), 0.5), DTypeError);
  CHECK_THROWS_AS(nms(boxes, scores, std::nan("")), ValueError);
  CHECK_THROWS_AS(nms(boxes, scores / 0 - scores / 0, 0.5), ValueError);
  CHECK_THROWS_AS(batched_nms(boxes, scores, scores, 0.5), DTypeError);
  CHECK_THROWS_AS(batched_nms(boxes, scores, tensor({1}), 0.5), ShapeError);
  CHECK_THROWS_AS(batched_nms(boxes, scores, {}, 0.5), Error);
  CHECK_THROWS_AS(box_iou(boxes, boxes.to(float64)), DTypeError);
}
