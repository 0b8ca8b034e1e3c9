#include "pleat/nn/summary.h"

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/embedding.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

TEST_CASE("a summary tells each module's result, parameters and work", "[nn]") {
  nn::Sequential net{
      nn::Conv2d{{.in_channels = 3, .out_channels = 8, .kernel_size = 3, .padding = 1}},
      nn::Residual{{.body = nn::Sequential{nn::BatchNorm2d{{.num_features = 8}}, nn::ReLU{}}}},
      nn::ConvTranspose2d{
          {.in_channels = 8, .out_channels = 2, .kernel_size = 2, .stride = 2, .bias = false}},
      nn::Flatten{},
      nn::Linear{{.in_features = 2 * 8 * 8, .out_features = 10}},
  };
  net[1].requires_grad_(false);
  net[1].eval();
  const nn::Summary s = nn::summary(net, {2, 3, 4, 4});

  CHECK(s.parameters == 224 + 16 + 64 + 1290);
  CHECK(s.trainable_parameters == s.parameters - 16);
  CHECK(s.parameter_bytes == 4 * s.parameters);
  // Convolution: 2 images of 16 places; transposed: as many places of its input; linear: 2 rows.
  CHECK(s.multiply_adds == 32 * 216 + 32 * 64 + 2 * 1280);
  CHECK(s.activation_bytes == 4 * 2 * (128 + 128 + 128 + 128 + 128 + 10));

  const std::vector<std::string> paths = {"", "0", "1", "1.body", "1.body.0", "1.body.1", "2", "3", "4"};
  REQUIRE(s.rows.size() == paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) CHECK(s.rows[i].path == paths[i]);
  CHECK(s.rows[5].depth == 3);
  CHECK(s.rows[5].type == "ReLU");
  CHECK(s.rows[6].input == Shape{2, 8, 4, 4});
  CHECK(s.rows[6].output == Shape{2, 2, 8, 8});
  CHECK(s.rows[4].parameters == 16);
  CHECK(s.rows[3].parameters == 0);

  // Nothing changed: neither modes nor running statistics nor observers.
  CHECK(net.training());
  CHECK(net[0].training());
  CHECK_FALSE(net[1].training());
  CHECK(net.state_dict().at("1.body.0.num_batches_tracked").item() == 0);

  CHECK(to_string(s) ==
        "-------------------------------------------------------------\n"
        "Layer                 Output        Parameters  Multiply-adds\n"
        "-------------------------------------------------------------\n"
        "Sequential            [2, 10]\n"
        "  0: Conv2d           [2, 8, 4, 4]         224          6,912\n"
        "  1: Residual         [2, 8, 4, 4]\n"
        "    body: Sequential  [2, 8, 4, 4]\n"
        "      0: BatchNorm2d  [2, 8, 4, 4]          16\n"
        "      1: ReLU         [2, 8, 4, 4]\n"
        "  2: ConvTranspose2d  [2, 2, 8, 8]          64          2,048\n"
        "  3: Flatten          [2, 128]\n"
        "  4: Linear           [2, 10]            1,290          2,560\n"
        "-------------------------------------------------------------\n"
        "Parameters: 1,594 (6.2 KiB), 1,578 to train\n"
        "Multiply-adds: 11,520, activations: 5.1 KiB, for the input [2, 3, 4, 4]\n");
}

TEST_CASE("a summary of modules with other inputs, shared weights and errors", "[nn]") {
  nn::Linear shared{{.in_features = 4, .out_features = 4}};
  shared.to(float64);
  nn::Sequential twice{shared, shared};
  const nn::Summary s = nn::summary(twice, {3, 4});
  CHECK(s.parameters == 20);
  CHECK(s.rows[1].parameters == 20);
  CHECK(s.rows[2].parameters == 0);
  CHECK(s.multiply_adds == 96);
  CHECK(s.parameter_bytes == 160);

  nn::Embedding embedding{{.num_embeddings = 5, .embedding_dim = 3}};
  CHECK(nn::summary(embedding, tensor({{1, 2}, {0, 4}})).rows[0].output == Shape{2, 2, 3});

  twice.train();
  CHECK_THROWS_AS(nn::summary(twice, {3, 5}), ShapeError);
  CHECK(twice[0].training());
  twice(zeros({1, 4}, {.dtype = float64}));  // no observer was left behind
}
