#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

// Both at once, as programs have it: every public name must mean one thing.
using namespace pleat;
using namespace pleat::nn;

TEST_CASE("pleat and pleat::nn have no name in common", "[nn]") {
  const Tensor x = ones({2, 4, 6, 6});
  const ConvOptions conv{.stride = 2};
  CHECK(conv2d(x, ones({3, 4, 2, 2}), conv).shape() == Shape{2, 3, 3, 3});
  const ConvTransposeOptions transposed{.stride = 2};
  CHECK(conv_transpose2d(x, ones({4, 3, 2, 2}), transposed).shape() == Shape{2, 3, 12, 12});
  const BatchNormOptions batch{.training = true};
  CHECK(batch_norm(x, {}, {}, {}, {}, batch).shape() == x.shape());
  const LayerNormOptions layer{.normalized_shape = {6, 6}};
  CHECK(layer_norm(x, {}, {}, layer).shape() == x.shape());
  const GroupNormOptions group{.num_groups = 2};
  CHECK(group_norm(x, {}, {}, group).shape() == x.shape());
  const InstanceNormOptions instance{};
  CHECK(instance_norm(x, {}, {}, {}, {}, instance).shape() == x.shape());
  const EmbeddingOptions rows{.padding_idx = 0};
  CHECK(embedding(tensor({1, 2}), ones({3, 5}), rows).shape() == Shape{2, 5});

  CHECK(Conv2d{ConvModuleOptions{.in_channels = 4, .out_channels = 3, .kernel_size = 1}}(x).size(1) == 3);
  ConvTranspose2d up{ConvTransposeModuleOptions{.in_channels = 4, .out_channels = 3, .kernel_size = 1}};
  CHECK(up(x).size(1) == 3);
  CHECK(BatchNorm2d{BatchNormModuleOptions{.num_features = 4}}(x).size(1) == 4);
  CHECK(LayerNorm{LayerNormModuleOptions{.normalized_shape = 6}}(x).size(1) == 4);
  CHECK(GroupNorm{GroupNormModuleOptions{.num_groups = 2, .num_channels = 4}}(x).size(1) == 4);
  CHECK(InstanceNorm2d{InstanceNormModuleOptions{.num_features = 4}}(x).size(1) == 4);
  Embedding table{EmbeddingModuleOptions{.num_embeddings = 3, .embedding_dim = 5}};
  CHECK(table(tensor({1, 2})).shape() == Shape{2, 5});
  CHECK(to_string(x.shape()) == "[2, 4, 6, 6]");
}
