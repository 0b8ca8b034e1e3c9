// Modules with parameters and pooling: what they hold, how they begin, what they refuse. Their functions are
// tested where they are.

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/embedding.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/pool.h"
#include "pleat/nn/upsample.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module.state_dict()) names.push_back(name);
  return names;
}

double largest(const Tensor& x) {
  double result = 0;
  for (const double v : x.to_vector<double>()) result = std::max(result, std::abs(v));
  return result;
}

}  // namespace

TEST_CASE("modules hold PyTorch's names and shapes", "[nn]") {
  nn::Conv2d conv{{.in_channels = 4, .out_channels = 6, .kernel_size = {3, 5}, .groups = 2}};
  CHECK(conv.weight.shape() == Shape{6, 2, 3, 5});
  CHECK(conv.weight.is_contiguous(MemoryFormat::channels_last));
  CHECK(names_of(conv) == std::vector<std::string>{"bias", "weight"});
  nn::ConvTranspose3d transposed{
      {.in_channels = 4, .out_channels = 6, .kernel_size = 2, .groups = 2, .bias = false}};
  CHECK(transposed.weight.shape() == Shape{4, 3, 2, 2, 2});
  CHECK(names_of(transposed) == std::vector<std::string>{"weight"});
  nn::BatchNorm2d norm{{.num_features = 3}};
  CHECK(names_of(norm) ==
        std::vector<std::string>{"bias", "num_batches_tracked", "running_mean", "running_var", "weight"});
  CHECK(norm.parameters().size() == 2);
  nn::BatchNorm1d bare{{.num_features = 3, .affine = false, .track_running_stats = false}};
  CHECK(names_of(bare).empty());
}

TEST_CASE("weights and biases start in PyTorch's ranges", "[nn]") {
  manual_seed(1);
  nn::Conv2d conv{{.in_channels = 16, .out_channels = 32, .kernel_size = 3}};
  const double bound = 1 / std::sqrt(16.0 * 9);
  CHECK(largest(conv.weight) <= bound);
  CHECK(largest(conv.weight) > 0.99 * bound);
  CHECK(largest(conv.bias) <= bound);
  nn::Linear linear{{.in_features = 100, .out_features = 50}};
  CHECK(largest(linear.weight) <= 0.1);
  CHECK(largest(linear.weight) > 0.099);
  CHECK(largest(linear.bias) <= 0.1);
}

TEST_CASE("cuda: a linear layer computes in the precision that it was given", "[nn][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  nn::Linear layer{{.in_features = 256, .out_features = 128, .precision = Precision::medium}};
  layer.to("cuda");
  const Tensor x = randn({64, 256}, {.device = "cuda"});
  const auto of = [&](Precision precision) {
    return linear(x, layer.weight, layer.bias, {.precision = precision}).to_vector();
  };
  CHECK(layer(x).to_vector() == of(Precision::medium));
  CHECK(of(Precision::medium) != of(Precision::highest));
}

TEST_CASE("modules compute their functions", "[nn]") {
  manual_seed(2);
  nn::Conv2d conv{{.in_channels = 3, .out_channels = 4, .kernel_size = 3, .stride = 2, .padding = 1}};
  const Tensor x = randn({2, 3, 7, 7});
  CHECK(conv(x).to_vector() == conv2d(x, conv.weight, conv.bias, {.stride = 2, .padding = 1}).to_vector());
  nn::ConvTranspose2d up{{.in_channels = 3, .out_channels = 2, .kernel_size = 2, .stride = 2}};
  CHECK(up(x).shape() == Shape{2, 2, 14, 14});
  nn::Sequential net{nn::Conv1d{{.in_channels = 3, .out_channels = 8, .kernel_size = 3, .padding = "same"}},
                     nn::BatchNorm1d{{.num_features = 8}},
                     nn::ReLU{},
                     nn::MaxPool1d{{.kernel_size = 2}},
                     nn::AdaptiveAvgPool1d{{.output_size = 2}},
                     nn::Flatten{},
                     nn::Linear{{.in_features = 16, .out_features = 5, .precision = Precision::high}},
                     nn::Softmax{}};
  const Tensor y = net(randn({4, 3, 10}));
  CHECK(y.shape() == Shape{4, 5});
  CHECK(sum(y).item() == Approx(4));
}

TEST_CASE("max unpooling puts back what max pooling has left", "[nn]") {
  manual_seed(3);
  const auto check = [](auto unpool, auto function, const Shape& shape) {
    const Tensor x = randn(shape);
    const MaxPoolWithIndices most = max_pool_with_indices(x, {.kernel_size = 2});
    const Tensor y = unpool.forward(most.values, most.indices);
    CHECK(y.to_vector() ==
          function(most.values, most.indices, MaxUnpoolOptions{.kernel_size = 2}).to_vector());
    CHECK(max_pool_with_indices(y, {.kernel_size = 2}).values.to_vector() == relu(most.values).to_vector());
    CHECK(unpool.options_text() == "kernel_size=2");
  };
  check(nn::MaxUnpool1d{{.kernel_size = 2}}, max_unpool1d, {2, 3, 6});
  check(nn::MaxUnpool2d{{.kernel_size = 2}}, max_unpool2d, {2, 3, 6, 4});
  check(nn::MaxUnpool3d{{.kernel_size = 2}}, max_unpool3d, {2, 3, 4, 6, 2});
}

TEST_CASE("batch norm counts batches in training only", "[nn]") {
  nn::BatchNorm2d norm{{.num_features = 2}};
  const Tensor x = randn({4, 2, 3, 3});
  norm(x);
  norm(x);
  CHECK(norm.num_batches_tracked.item<int64_t>() == 2);
  const auto mean = norm.running_mean.to_vector();
  norm.eval();
  norm(x);
  CHECK(norm.num_batches_tracked.item<int64_t>() == 2);
  CHECK(norm.running_mean.to_vector() == mean);
  nn::BatchNorm2d fused{{.num_features = 2, .bounds = {.min = 0}}};
  nn::BatchNorm2d plain{{.num_features = 2}};
  const Tensor image = randn({3, 2, 4, 4});
  for (const bool training : {true, false}) {
    fused.train(training);
    plain.train(training);
    CHECK(fused(image).to_vector() == relu(plain(image)).to_vector());
  }
  nn::BatchNorm2d cumulative{{.num_features = 2, .momentum = std::nullopt}};
  cumulative(x);
  const auto first = cumulative.running_mean.to_vector();
  cumulative(x);
  for (std::size_t c = 0; c < 2; ++c) CHECK(cumulative.running_mean.to_vector()[c] == Approx(first[c]));
}

TEST_CASE("modules refuse options that make no sense", "[nn]") {
  CHECK_THROWS_WITH((nn::Conv2d{{.in_channels = 0, .out_channels = 4, .kernel_size = 3}}),
                    Contains("Conv2d: in_channels and out_channels must be at least 1"));
  CHECK_THROWS_AS((nn::Conv2d{{.in_channels = 3, .out_channels = 4, .kernel_size = {3, 3, 3}}}), ShapeError);
  CHECK_THROWS_AS((nn::Conv2d{{.in_channels = 3, .out_channels = 4, .kernel_size = 3, .padding = "full"}}),
                  ValueError);
  nn::BatchNorm2d norm{{.num_features = 3}};
  CHECK_THROWS_WITH(norm(zeros({2, 3})), Contains("BatchNorm2d: needs [N, C, spatial...]"));
  CHECK_THROWS_WITH(norm(zeros({3, 4, 4})), Contains("unsqueeze(x, 0) makes a batch of one sample"));
}

// An option that has no sensible default cannot be left out: that does not compile.
static_assert(!std::is_default_constructible_v<nn::ConvModuleOptions>);
static_assert(!std::is_default_constructible_v<MaxPoolOptions>);
static_assert(!std::is_default_constructible_v<AvgPoolOptions>);
static_assert(!std::is_default_constructible_v<nn::UnflattenOptions>);
static_assert(!std::is_default_constructible_v<nn::LinearOptions>);

TEST_CASE("Unflatten undoes Flatten", "[nn]") {
  nn::Sequential net{nn::Flatten{}, nn::Unflatten{{.sizes = {2, -1, 4}}}};
  const Tensor x = randn({5, 2, 3, 4});
  CHECK(net(x).shape() == x.shape());
  CHECK(net(x).to_vector() == x.to_vector());
  CHECK(nn::Unflatten{{.dim = -1, .sizes = Shape{2, 2}}}(x).shape() == Shape{5, 2, 3, 2, 2});
}

TEST_CASE("modules print their options", "[nn]") {
  CHECK(nn::Conv2d{{.in_channels = 3, .out_channels = 16, .kernel_size = 3, .padding = 1, .bias = false}}
            .options_text() == "3, 16, kernel_size=(3, 3), padding=1, bias=false");
  CHECK(nn::Linear{{.in_features = 3, .out_features = 2}}.options_text() == "3, 2");
  CHECK(nn::MaxPool2d{{.kernel_size = 2}}.options_text() == "kernel_size=2");
  CHECK(nn::BatchNorm3d{{.num_features = 8}}.options_text() == "8");
  CHECK(nn::BatchNorm3d{{.num_features = 8}}.type_name() == "BatchNorm3d");
  CHECK(nn::BatchNorm2d{{.num_features = 8, .bounds = {.min = 0}}}.options_text() == "8, bounds=[0, inf]");
}

TEST_CASE("layer, group and instance norm hold and use their parameters", "[nn][cpu]") {
  manual_seed(4);
  const Tensor x = randn({3, 6, 5});
  nn::LayerNorm layer{{.normalized_shape = {6, 5}}};
  CHECK(layer.weight.shape() == Shape{6, 5});
  CHECK(names_of(layer) == std::vector<std::string>{"bias", "weight"});
  CHECK(mean(layer(x), {1, 2}).to_vector()[1] == Approx(0).margin(1e-6));
  nn::LayerNorm bare{{.normalized_shape = 5, .elementwise_affine = false}};
  CHECK(names_of(bare).empty());
  CHECK(var(bare(x), -1, {.correction = 0}).to_vector()[0] == Approx(1).epsilon(1e-3));
  CHECK(names_of(nn::LayerNorm{{.normalized_shape = 5, .bias = false}}) ==
        std::vector<std::string>{"weight"});

  nn::GroupNorm group{{.num_groups = 3, .num_channels = 6}};
  ops::fill(group.bias, 2);
  CHECK(mean(group(x)).item() == Approx(2));
  CHECK(names_of(group) == std::vector<std::string>{"bias", "weight"});

  nn::InstanceNorm1d instance{{.num_features = 6}};
  CHECK(names_of(instance).empty());
  CHECK(mean(instance(x), -1).to_vector()[7] == Approx(0).margin(1e-6));
  nn::InstanceNorm1d tracking{{.num_features = 6, .affine = true, .track_running_stats = true}};
  tracking(x);
  CHECK(tracking.num_batches_tracked.item() == 1);
  CHECK(tracking.running_mean.to_vector()[2] != 0);
  tracking.eval();
  // In evaluation by the running statistics, which are still far from the instances'.
  CHECK(largest(tracking(x) - instance(x)) > 0.01);
  CHECK(tracking.num_batches_tracked.item() == 1);

  CHECK_THROWS_AS((nn::LayerNorm{{.normalized_shape = {4, 0}}}), ValueError);
  CHECK_THROWS_WITH((nn::GroupNorm{{.num_groups = 4, .num_channels = 6}}), Contains("got 4 and 6"));
  CHECK_THROWS_WITH(group(zeros({2, 3})), "GroupNorm: needs [N, 6, ...], got [2, 3] float32 cpu");
  CHECK_THROWS_AS(instance(zeros({2, 6, 4, 4})), ShapeError);
  CHECK(layer.options_text() == "[6, 5]");
  CHECK(group.options_text() == "3, 6");
  CHECK(tracking.options_text() == "6, affine=true, track_running_stats=true");
}

TEST_CASE("embeddings start normal, with a row of zeros for padding", "[nn]") {
  manual_seed(5);
  nn::Embedding embedding{{.num_embeddings = 100, .embedding_dim = 50, .padding_idx = -1}};
  CHECK(stddev(embedding.weight).item() == Approx(0.995).epsilon(0.03));
  const Tensor y = embedding(tensor({{99, 0}, {1, 99}}));
  CHECK(y.shape() == Shape{2, 2, 50});
  CHECK(largest(y.as_strided({50}, {1}, 0)) == 0);
  embedding.parameters();
  sum(embedding(tensor({99, 0}))).backward();
  CHECK(sum(embedding.weight.grad()).item() == 50);
  CHECK_THROWS_AS(embedding(tensor({100})), IndexError);
  CHECK_THROWS_WITH((nn::Embedding{{.num_embeddings = 3, .embedding_dim = 2, .padding_idx = 3}}),
                    "Embedding: padding_idx must be one of 3 rows, got 3");
  CHECK(embedding.options_text() == "100, 50, padding_idx=-1");
}

TEST_CASE("Upsample and Identity", "[nn]") {
  nn::Upsample up{{.scale_factor = 2}};
  CHECK(up(tensor({{{1.0, 2.0}}})).to_vector() == std::vector<float>{1, 1, 2, 2});
  nn::Upsample to{{.size = {3, 4}, .mode = Interpolation::linear, .align_corners = true}};
  CHECK(to(zeros({1, 2, 5, 5})).shape() == Shape{1, 2, 3, 4});
  CHECK(to.options_text() == "size=(3, 4), mode=linear, align_corners=true");
  CHECK(up.options_text() == "scale_factor=(2), mode=nearest");
  CHECK(nn::Upsample{{.scale_factor = {2, 1.5}}}.options_text() == "scale_factor=(2, 1.5), mode=nearest");
  const Tensor x = ones({2});
  CHECK(&nn::Identity()(x).impl() == &x.impl());
}
