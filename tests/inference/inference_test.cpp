#include "pleat/inference/inference.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "pleat/models/char_transformer.h"
#include "pleat/models/convnext.h"
#include "pleat/models/dcgan.h"
#include "pleat/models/make_classifier.h"
#include "pleat/models/mobilenet.h"
#include "pleat/models/unet.h"
#include "pleat/models/voxel_net.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/inference/trained.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using Catch::Contains;
using test::trained;

namespace {

/// The engine gives what the network gives, for several batches, and all of it is planned.
template <class Net>
void check_network(Net net, const Shape& sample, double tolerance = 2e-5) {
  Shape shape = sample;
  shape.insert(shape.begin(), 1);
  net.eval();
  const Inference engine(net, randn(shape), {.measure = false});
  for (const int64_t batch : {1, 2, 5}) {
    shape[0] = batch;
    const Tensor x = randn(shape);
    CHECK(engine.difference({x}) < tolerance);
    const Tensor y = engine(x);
    CHECK(y.size(0) == batch);
    CHECK_FALSE(y.requires_grad());
  }
  CHECK_THAT(engine.summary(), !Contains("as it is"));
}

/// Norms, activations and additions in all the places where a plan looks for them.
struct Mixed : nn::Module {
  nn::Conv2d a{{.in_channels = 3, .out_channels = 20, .kernel_size = 3, .padding = 1}};
  nn::BatchNorm2d norm_a{{.num_features = 20}};
  nn::Conv2d b{{.in_channels = 20, .out_channels = 20, .kernel_size = 3, .padding = 1, .groups = 20}};
  nn::Conv2d c{{.in_channels = 20, .out_channels = 20, .kernel_size = 1}};
  nn::BatchNorm2d norm_c{{.num_features = 20, .affine = false}};
  nn::ConvTranspose2d up{{.in_channels = 20, .out_channels = 6, .kernel_size = 2, .stride = 2}};
  nn::BatchNorm2d norm_up{{.num_features = 6}};
  nn::BatchNorm2d alone{{.num_features = 6}};
  nn::Linear head{{.in_features = 6, .out_features = 11}};
  nn::BatchNorm1d norm_head{{.num_features = 11}};
  Tensor table = randn({11, 7});

  void members(nn::Members& m) override {
    m("a", a);
    m("norm_a", norm_a);
    m("b", b);
    m("c", c);
    m("norm_c", norm_c);
    m("up", up);
    m("norm_up", norm_up);
    m("alone", alone);
    m("head", head);
    m("norm_head", norm_head);
    m("table", table);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor y = hardswish(norm_a(a(x)));            // two readers
    const Tensor gate = sigmoid(mean(y, {2, 3}, true));  // added to nothing
    const Tensor z = silu(norm_c(c(leaky_relu(b(y), 0.2))) + y * gate);
    const Tensor w = mish(alone(elu(norm_up(up(z)))));
    const Tensor h = tanh(norm_head(head(mean(w, {2, 3}))));
    return softmax(matmul(h + h * 2, table) + 1, -1);
  }
};

}  // namespace

TEST_CASE("Inference gives what networks give in evaluation mode", "[inference][cpu]") {
  for (const std::string& name : models::classifier_names())
    check_network(trained(models::make_classifier(name, {.num_classes = 10})), {3, 32, 32});
  check_network(trained(models::unet({.num_classes = 2})), {3, 32, 32});
  check_network(trained(models::voxel_net({.num_classes = 2})), {1, 32, 32, 32});
  check_network(trained(models::dcgan_generator(16)), {100, 1, 1});
  check_network(trained(models::dcgan_discriminator(16)), {3, 64, 64});
  check_network(trained(Mixed{}), {3, 9, 7});
}

TEST_CASE("Inference: a norm that adds and limits is a step of its own", "[inference][cpu]") {
  struct Fused : nn::Module {
    nn::Conv2d conv{{.in_channels = 8, .out_channels = 8, .kernel_size = 3, .padding = 1}};
    nn::BatchNorm2d norm{{.num_features = 8}};
    void members(nn::Members& m) override {
      m("conv", conv);
      m("norm", norm);
    }
    Tensor forward(const Tensor& x) override {
      return conv_norm_act(x, conv.weight, conv.bias, norm.operands(x, {.min = 0}), {.padding = 1});
    }
  };
  check_network(trained(Fused{}), {8, 6, 6});
}

TEST_CASE("Inference measures implementations, and computes the same with each", "[inference][cpu]") {
  auto net = trained(models::mobilenet_v2({.num_classes = 10}));
  const Tensor x = randn({2, 3, 32, 32});
  const Inference engine(net, x);
  CHECK(engine.difference({x}) < 2e-5);
  auto mixed = trained(Mixed{});
  const Tensor image = randn({1, 3, 9, 7});
  const Inference small(mixed, image);
  CHECK(small.difference({image}) < 2e-5);
}

TEST_CASE("Inference: recurrent and attention layers, several inputs and outputs", "[inference][cpu]") {
  manual_seed(4);
  nn::LSTM lstm{{.input_size = 5, .hidden_size = 8, .num_layers = 2, .bidirectional = true}};
  const Tensor x = randn({6, 1, 5}), h = randn({4, 1, 8}), c = randn({4, 1, 8});
  const auto forward = [&](const std::vector<Tensor>& in) {
    const RecurrentResult y = lstm.forward(in[0], {.h = in[1], .c = in[2]});
    return std::vector{y.output, y.h, y.c};
  };
  const Inference engine(lstm, {x, h, c}, forward, {.batch_dims = 1});
  const std::vector<Tensor> more{randn({6, 3, 5}), randn({4, 3, 8}), randn({4, 3, 8})};
  CHECK(engine.difference(more) < 1e-5);
  CHECK(engine(more)[1].shape() == Shape{4, 3, 8});
  CHECK_THROWS_WITH(engine(x), Contains("needs 3 inputs, like the examples, got 1"));

  models::CharTransformer text;
  const Inference writer(text, randint(0, 65, {1, 64}));
  CHECK(writer.difference({randint(0, 65, {3, 64})}) < 2e-5);
  CHECK_THAT(writer.summary(), Contains("linear + gelu"));
}

TEST_CASE("device: an Inference gives what the network gives there", "[device][inference]") {
  if (pleat_test::lacks_gpus()) return;
  auto net = trained(Mixed{});
  net.to(Device("cuda"));
  net.eval();
  const Inference engine(net, ops::to_device(randn({1, 3, 9, 7}), Device("cuda")));
  CHECK(engine.difference({ops::to_device(randn({3, 3, 9, 7}), Device("cuda"))}) < 1e-4);
  CHECK_THAT(engine.summary(), Contains("conv_transpose + batch_norm in up") && Contains("as a CUDA graph"));
  // A replay finds new inputs, and its results are the caller's.
  const Tensor a = ops::to_device(randn({1, 3, 9, 7}), Device("cuda")),
               b = ops::to_device(randn({1, 3, 9, 7}), Device("cuda"));
  const Tensor of_a = engine(a), of_b = engine(b);
  CHECK(array_equal(engine(a), of_a));
  CHECK_FALSE(array_equal(of_a, of_b));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const cuda::Stream own({});
      const cuda::StreamGuard guard(own);
      for (int i = 0; i < 5; ++i) wrong += !array_equal(engine(t % 2 == 0 ? a : b), t % 2 == 0 ? of_a : of_b);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  const Inference plain(net, a, {.cuda_graph = false});
  CHECK_THAT(plain.summary(), !Contains("CUDA graph"));
  CHECK(array_equal(plain(a), of_a));
  // Its indices are checked, for which the host waits.
  nn::Embedding embedding{{.num_embeddings = 5, .embedding_dim = 3}};
  embedding.to(Device("cuda"));
  const Tensor index = ops::to_device(tensor({3, 1}), Device("cuda"));
  const Inference waits(embedding, index);
  CHECK_THAT(waits.summary(), Contains("not as a CUDA graph"));
  CHECK(waits.difference({index}) == 0);
}

TEST_CASE("Inference: the network keeps its modes, and an engine its parameters", "[inference][cpu]") {
  auto net = trained(models::make_classifier("small", {.num_classes = 10}));
  net.train();
  const Tensor x = randn({2, 3, 32, 32});
  const Inference engine(net, x, {.measure = false});
  CHECK(net.training());
  const std::vector<double> before = engine(x).to_vector<double>();
  for (const Tensor& parameter : net.parameters()) copy_(parameter.detach(), parameter.detach() * 2);
  CHECK(engine(x).to_vector<double>() == before);
  CHECK_THROWS_WITH(engine(randn({3, 3, 32, 32})), Contains("have changed since"));
  const Autocast scope(bfloat16);
  CHECK_THROWS_WITH(engine(x), Contains("Autocast"));
}

TEST_CASE("Inference: what a plan cannot follow runs as it is", "[inference][cpu]") {
  struct Reads : nn::Module {
    nn::Linear linear{{.in_features = 4, .out_features = 4}};
    void members(nn::Members& m) override { m("linear", linear); }
    Tensor forward(const Tensor& x) override { return sum(x).item<double>() > 0 ? linear(x) : linear(x) * 2; }
  };
  Reads net;
  const Tensor positive = ones({2, 4}), negative = -positive;
  for (const bool first : {true, false}) {
    const Inference engine(net, first ? positive : negative);
    CHECK(engine.difference({positive}) == 0);
    CHECK(engine.difference({negative}) == 0);
  }
  // By the batch.
  struct ByBatch : nn::Module {
    Tensor forward(const Tensor& x) override { return x.size(0) > 2 ? x * 2 : x + 1; }
  };
  ByBatch by_batch;
  const Inference engine(by_batch, randn({2, 3}));
  for (const int64_t batch : {1, 2, 3, 4, 9}) CHECK(engine.difference({randn({batch, 3})}) == 0);
}

TEST_CASE("Inference: plans for other batches share weights", "[inference][cpu]") {
  nn::Sequential net;
  for (int layer = 0; layer < 4; ++layer)
    net.add(nn::Conv2d{{.in_channels = 256, .out_channels = 256, .kernel_size = 1}});
  const Inference engine(net, randn({1, 256, 4, 4}), {.measure = false});
  (void)engine(randn({3, 256, 4, 4}));
  const int64_t before = allocator_statistics().allocated;
  (void)engine(randn({2, 256, 4, 4}));
  const int64_t weights = 4 * 256 * 256 * 4;
  CHECK(allocator_statistics().allocated - before < weights / 4);
}

TEST_CASE("Inference: threads call one engine at once, and one from a file", "[inference][cpu]") {
  auto net = trained(models::mobilenet_v2({.num_classes = 10}));
  const Inference engine(net, randn({1, 3, 32, 32}), {.measure = false});
  const pleat_test::TemporaryDirectory folder;
  engine.save(folder / "x.engine");
  const Inference loaded = Inference::load(folder / "x.engine");
  std::vector<Tensor> images, expected;
  for (int i = 0; i < 4; ++i) {
    images.push_back(randn({1 + i % 2, 3, 32, 32}));
    expected.push_back(engine(images.back()));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 8; ++i) {
        const Inference& one = i % 2 == 0 ? engine : loaded;
        if (one(images[(t + i) % 4]).to_vector<float>() != expected[(t + i) % 4].to_vector<float>()) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("Inference: a profile shows each step, its ops and the implementation", "[inference][cpu]") {
  auto net = trained(models::make_classifier("resnet20", {.num_classes = 10}));
  const Tensor x = randn({1, 3, 32, 32});
  const Inference engine(net, x, {.measure = false});
  profile::Profiler profiler{{.activities = profile::Activities::cpu}};
  (void)engine(x);
  profiler.stop();
  const auto has = [&](const std::string& name, const std::string& implementation) {
    const auto& events = profiler.profile().events;
    return std::any_of(events.begin(), events.end(), [&](const profile::Event& event) {
      return event.name == name && event.implementation == implementation;
    });
  };
  CHECK(has("conv + batch_norm + relu in 0: direct", ""));
  CHECK(has("conv2d", "direct"));
}

TEST_CASE("Inference: plans beyond the limit go, and options are checked", "[inference][cpu]") {
  nn::Linear net{{.in_features = 4, .out_features = 2}};
  const Inference engine(net, randn({1, 4}), {.most_plans = 2});
  for (const int64_t batch : {2, 3, 1, 4}) CHECK(engine(randn({batch, 4})).shape() == Shape{batch, 2});
  const std::string text = engine.summary();
  CHECK_THAT(text, Contains("[4, 4]") && Contains("[1, 4]") && !Contains("[3, 4]"));
  CHECK_THROWS_WITH(Inference(net, randn({1, 4}), {.most_plans = 0}), Contains("most_plans"));
  CHECK_THROWS_WITH(Inference(net, randn({1, 4}), {.batch_dims = 2}), Contains("must be a dimension"));
  CHECK_THROWS_WITH(Inference(net, randn({1, 5})), Contains("linear"));
  CHECK_THROWS_WITH(engine(randn({7, 5})), Contains("got an input [7, 5]"));
  CHECK_THROWS_WITH(engine(Tensor()), Contains("undefined"));
}
