#include <thread>

#include "pleat/inference/inference.h"
#include "pleat/models/char_transformer.h"
#include "pleat/models/make_classifier.h"
#include "pleat/models/mobilenet.h"
#include "pleat/models/unet.h"
#include "pleat/models/voxel_net.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/inference/trained.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::trained;

namespace {

using Examples = std::vector<std::vector<Tensor>>;

Shape batch_of(int64_t batch, const Shape& sample) {
  Shape shape = sample;
  shape.insert(shape.begin(), batch);
  return shape;
}

/// How far the engine's outputs are from the network's, as the root of the mean square over that of the
/// outputs.
double error(const Tensor& y, const Tensor& expected) {
  return std::sqrt(mean(square(y - expected)).item<double>() / mean(square(expected)).item<double>());
}

/// The engine in int8 is close to the network, for several batches, but not the same.
template <class Net>
std::string check_int8(Net net, const Shape& sample, double bound, const Tensor& tokens = {},
                       int64_t examples = 4) {
  manual_seed(7);
  const auto input = [&](int64_t batch) {
    return tokens.defined() ? repeat(tokens, {batch, 1}) : randn(batch_of(batch, sample));
  };
  const Inference engine(net, input(1), {.calibration = {{input(examples)}, {input(3)}}});
  const NoGrad off_the_tape;
  for (const int64_t batch : {1, 2, 5}) {
    const Tensor x = input(batch);
    const double apart = error(engine(x), net(x));
    CHECK(apart < bound);
    CHECK(apart > 1e-5);
  }
  CHECK_THAT(engine.summary(), Contains(": int8"));
  CHECK_THAT(engine.summary(), !Contains("in float32: "));
  return engine.summary();
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++n;
  return n;
}

nn::Sequential mlp() {
  return nn::Sequential{nn::Linear{{.in_features = 12, .out_features = 64}}, nn::GELU{},
                        nn::Linear{{.in_features = 64, .out_features = 30}}, nn::ReLU{},
                        nn::Linear{{.in_features = 30, .out_features = 5}}};
}

/// Values that stay uint8 through what moves them, and one that cannot.
struct Moved : nn::Module {
  nn::Conv2d a{{.in_channels = 3, .out_channels = 16, .kernel_size = 3, .padding = 1}};
  nn::Conv2d b{{.in_channels = 3, .out_channels = 8, .kernel_size = 1}};
  nn::Conv2d c{{.in_channels = 24, .out_channels = 24, .kernel_size = 3, .padding = 1, .groups = 24}};
  nn::Conv2d d{{.in_channels = 24, .out_channels = 24, .kernel_size = 1}};
  nn::Linear head{{.in_features = 24 * 9, .out_features = 7}};
  void members(nn::Members& m) override {
    m("a", a);
    m("b", b);
    m("c", c);
    m("d", d);
    m("head", head);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor y = channel_shuffle(cat({relu(a(x)), b(x) * 0.1}, 1), 4);  // b(x) is float32 here
    const Tensor z = cat({relu(a(x)), relu(b(x))}, 1);
    const Tensor w = relu(d(relu(c(channel_shuffle(z, 2)))) + y);
    return head(flatten(max_pool2d(w, {.kernel_size = 3, .stride = 3, .padding = 1}), 1));
  }
};

}  // namespace

TEST_CASE("int8: networks stay close to float32", "[int8][inference][cpu]") {
  const std::string resnet =
      check_int8(trained(models::make_classifier("resnet20", {.num_classes = 10})), {3, 32, 32}, 0.03);
  CHECK(times(resnet, ": int8") == 3 * 22);  // plans for 1, 2 and 5 images
  check_int8(trained(models::mobilenet_v2({.num_classes = 10})), {3, 32, 32}, 0.06);
  check_int8(trained(models::make_classifier("vgg11", {.num_classes = 10})), {3, 32, 32}, 0.04);
  check_int8(trained(models::voxel_net({.num_classes = 2})), {1, 32, 32, 32}, 0.06);
  CHECK_THAT(check_int8(trained(models::unet({.num_classes = 2})), {3, 32, 32}, 0.06), Contains("max_pool"));
  check_int8(trained(mlp()), {12}, 0.04, {}, 500);
  check_int8(trained(models::CharTransformer{}), {}, 0.06, randint(0, 65, {1, 20}));
  check_int8(trained(Moved{}), {3, 9, 9}, 0.06);
}

TEST_CASE("int8: a norm between convolutions computes in int8, too", "[int8][inference][cpu]") {
  struct Dense : nn::Module {
    nn::Conv2d a{{.in_channels = 3, .out_channels = 12, .kernel_size = 3, .padding = 1}};
    nn::BatchNorm2d norm{{.num_features = 15}};
    nn::Conv2d b{{.in_channels = 15, .out_channels = 8, .kernel_size = 3, .padding = 1}};
    nn::BatchNorm2d alone{{.num_features = 3}};
    void members(nn::Members& m) override {
      m("a", a);
      m("norm", norm);
      m("b", b);
      m("alone", alone);
    }
    Tensor forward(const Tensor& x) override { return b(relu(norm(cat({a(x), alone(x)}, 1)))); }
  };
  const std::string text = check_int8(trained(Dense{}), {3, 8, 8}, 0.07);
  CHECK_THAT(text, Contains("batch_norm + relu in norm: int8"));
  CHECK_THAT(text, Contains("batch_norm in alone\n"));  // is read by cat, not by a convolution
}

TEST_CASE("int8: recurrent layers stay float32", "[int8][inference][cpu]") {
  struct LastOutput : nn::Module {
    nn::LSTM lstm{{.input_size = 8, .hidden_size = 20, .batch_first = true}};
    nn::Linear head{{.in_features = 20, .out_features = 4}};
    void members(nn::Members& m) override {
      m("lstm", lstm);
      m("head", head);
    }
    Tensor forward(const Tensor& x) override { return head(select(lstm(x), 1, -1)); }
  };
  CHECK(times(check_int8(trained(LastOutput{}), {9, 8}, 0.03), ": int8") == 3);
  nn::LSTM lstm{{.input_size = 8, .hidden_size = 20, .batch_first = true}};
  const Tensor x = randn({2, 9, 8});
  const Inference engine(lstm, {x}, [&](const std::vector<Tensor>& in) { return std::vector{lstm(in[0])}; },
                         {.calibration = {{x}}});
  CHECK(engine.difference({x}) < 2e-5);
}

TEST_CASE("int8: threads give the same bits, and call an engine at once", "[int8][inference][cpu]") {
  auto net = trained(models::make_classifier("resnet20", {.num_classes = 10}));
  const Tensor x = randn({3, 3, 32, 32});
  const Inference engine(net, x, {.calibration = {{x}}});
  const int before = num_threads();
  const auto expected = engine(x).to_vector<float>();
  for (const int64_t threads : {1, 4}) {
    set_num_threads(threads);
    CHECK(engine(x).to_vector<float>() == expected);
  }
  set_num_threads(before);
  std::vector<std::vector<float>> results(3);
  std::vector<std::thread> callers;
  for (auto& result : results)
    callers.emplace_back([&] {
      const SerialScope alone;
      result = engine(x).to_vector<float>();
    });
  for (std::thread& caller : callers) caller.join();
  for (const auto& result : results) CHECK(result == expected);
}

TEST_CASE("int8: summary tells what stays float32", "[int8][inference][cpu]") {
  nn::Sequential net{nn::Conv2d{{.in_channels = 3, .out_channels = 4, .kernel_size = 3}},
                     nn::ConvTranspose2d{{.in_channels = 4, .out_channels = 4, .kernel_size = 2}},
                     nn::Flatten{}, nn::Linear{{.in_features = 4 * 7 * 7, .out_features = 3}}};
  const Tensor x = randn({1, 3, 8, 8});
  const Inference engine(net, x, {.calibration = {{x}}});
  CHECK_THAT(engine.summary(), Contains("conv in 0: int8"));
  CHECK_THAT(engine.summary(), Contains("conv_transpose in 1, float32 (of this kind)"));
  CHECK_THAT(engine.summary(), Contains("linear in 3: int8"));

  auto long_sums = nn::Sequential{nn::Linear{{.in_features = 40000, .out_features = 2}}};
  const Tensor row = randn({1, 40000});
  const Inference left(long_sums, row, {.calibration = {{row}}});
  CHECK_THAT(left.summary(), Contains("linear in 0, float32 (too many products in a sum)"));
  CHECK(left.difference({row}) < 1e-5);

  struct ByRows : nn::Module {
    nn::Linear linear{{.in_features = 4, .out_features = 4}};
    void members(nn::Members& m) override { m("linear", linear); }
    Tensor forward(const Tensor& x) override { return x.size(0) > 4 ? relu(linear(x)) : linear(x); }
  };
  ByRows by_rows;
  const Tensor four = randn({4, 4}), five = randn({5, 4});
  const Inference other(by_rows, four, {.batch_dims = IntegerList{}, .calibration = {{four}}});
  CHECK(other.difference({four}) > 1e-5);
  CHECK(other.difference({five}) < 1e-5);
  CHECK_THAT(other.summary(), Contains("in float32: the forward takes another way"));
  CHECK_THROWS_WITH(Inference(by_rows, four, {.batch_dims = IntegerList{}, .calibration = {{four}, {five}}}),
                    Contains("different ways"));
}

TEST_CASE("int8: outliers of the examples do not widen ranges", "[int8][inference][cpu]") {
  nn::Sequential net{nn::Linear{{.in_features = 64, .out_features = 64}}};
  net.eval();
  manual_seed(5);
  const Tensor x = randn({40000, 64}), some = ops::copy(x);
  some.data<float>()[17] = 100;
  const Inference engine(net, x, {.calibration = {{some}}});
  const NoGrad off_the_tape;
  CHECK(error(engine(x), net(x)) < 0.05);  // a step of the whole range would be 0.4
}

TEST_CASE("int8: calibration is checked before anything is done", "[int8][inference][cpu]") {
  auto net = mlp();
  const Tensor x = randn({2, 12});
  const auto make = [&](const Examples& calibration) {
    return Inference(net, x, {.calibration = calibration});
  };
  CHECK_THROWS_AS(make({{}}), ValueError);
  CHECK_THROWS_WITH(make({{x}, {x, x}}), Contains("needs 1 inputs") && Contains("got 2 in example 1"));
  CHECK_THROWS_WITH(make({{Tensor()}}), Contains("input 0 of example 0 is undefined or empty"));
  CHECK_THROWS_WITH(make({{zeros({0, 12})}}), Contains("undefined or empty"));
  CHECK_THROWS_WITH(make({{randn({12})}}), Contains("must be as that of the network"));
  CHECK_THROWS_WITH(make({{ops::cast(x, float64)}}), Contains("must be as that of the network"));
  CHECK_THROWS_AS(make({{randn({2, 13})}}), Error);
  for (const DType dtype : {float64, float16, bfloat16}) {
    auto other = mlp();
    other.to(dtype);
    const Tensor y = ops::cast(x, dtype);
    CHECK_THROWS_WITH(Inference(other, y, {.calibration = {{y}}}), Contains("convert with to(float32)"));
  }
  struct Decides : nn::Module {
    nn::Linear linear{{.in_features = 12, .out_features = 3}};
    void members(nn::Members& m) override { m("linear", linear); }
    Tensor forward(const Tensor& x) override { return sum(x).item<float>() > 0 ? linear(x) : -linear(x); }
  };
  Decides decides;
  CHECK_THROWS_WITH(Inference(decides, x, {.calibration = {{x}}}), Contains("int8 needs a plan"));
}

TEST_CASE("device: int8 refuses a GPU", "[device][inference]") {
  if (pleat_test::lacks_gpus()) return;
  auto net = mlp();
  net.to(Device("cuda"));
  const Tensor x = ops::to_device(randn({2, 12}), Device("cuda"));
  CHECK_THROWS_WITH(Inference(net, x, {.calibration = {{x}}}), Contains("int8 is for float32 on the CPU"));
}
