#include "pleat/nn/attention.h"

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/transformer.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/nn/module_fixture.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using nn::MultiheadAttention;
using test::Json;

namespace {

/// Rows of 0 and 1, of two or three dimensions, as truth.
Tensor truth(const Json& rows) {
  Shape shape;
  for (const Json* level = &rows; level->is_array(); level = &level->at(0))
    shape.push_back(static_cast<int64_t>(level->size()));
  std::vector<int64_t> values;
  for (const Json& value : rows.flatten()) values.push_back(value.get<int64_t>());
  // flatten() orders its keys as text: fewer than ten a level keep their order.
  return from_vector(values, shape) != 0;
}

}  // namespace

TEST_CASE("MultiheadAttention gives PyTorch's values, shares and gradients", "[attention]") {
  for (const Json& c : test::fixture_cases("recurrent", "MultiheadAttention")) {
    CAPTURE(c.at("name").get<std::string>());
    const Json& o = c.at("options");
    const auto size = [&](const char* key) { return o.at(key).is_null() ? 0 : o.at(key).get<int64_t>(); };
    MultiheadAttention module{{.embed_dim = 4,
                               .num_heads = 2,
                               .bias = o.at("bias").get<bool>(),
                               .kdim = size("kdim"),
                               .vdim = size("vdim"),
                               .batch_first = o.at("batch_first").get<bool>()}};
    test::check_module(c, module, [&](const test::Named& in) {
      nn::MultiheadAttentionMasks masks{.attn_mask = test::find(in, "attn_mask"), .need_weights = true};
      if (o.at("masks").contains("attn_mask")) masks.attn_mask = truth(o.at("masks").at("attn_mask"));
      if (o.at("masks").contains("key_padding_mask"))
        masks.key_padding_mask = truth(o.at("masks").at("key_padding_mask"));
      const Tensor& x = in.at("x");
      const bool is_self = !in.contains("key");
      const auto y = module.forward(x, is_self ? x : in.at("key"), is_self ? x : in.at("value"), masks);
      masks.need_weights = false;
      const auto without = module.forward(x, is_self ? x : in.at("key"), is_self ? x : in.at("value"), masks);
      CHECK(test::relative_error(without.output, y.output) < 1e-14);
      CHECK_FALSE(without.weights.defined());
      return test::joined({y.output, y.weights});
    });
  }
}

TEST_CASE("TransformerEncoderLayer gives PyTorch's values and gradients", "[attention]") {
  for (const Json& c : test::fixture_cases("recurrent", "TransformerEncoderLayer")) {
    CAPTURE(c.at("name").get<std::string>());
    const Json& o = c.at("options");
    const bool gelu = o.at("activation") == "gelu";
    nn::TransformerEncoderLayer layer{
        {.d_model = 4,
         .nhead = 2,
         .dim_feedforward = 5,
         .dropout = 0,
         .activation = gelu ? nn::TransformerActivation::gelu : nn::TransformerActivation::relu,
         .batch_first = o.at("batch_first").get<bool>(),
         .norm_first = o.at("norm_first").get<bool>()}};
    test::check_module(c, layer, [&](const test::Named& in) {
      if (o.at("padding").is_null()) return flatten(layer(in.at("x")));
      return flatten(layer.forward(in.at("x"), {.key_padding_mask = truth(o.at("padding"))}));
    });
  }
}

TEST_CASE("MultiheadAttention: is_causal is the mask of later keys, beside padding, too", "[attention]") {
  MultiheadAttention module{{.embed_dim = 4, .num_heads = 2, .batch_first = true}};
  const Tensor x = randn({2, 5, 4});
  const Tensor later = unsqueeze(arange(5), 0) > unsqueeze(arange(5), 1);
  const Tensor padding = from_vector(std::vector<int64_t>{0, 0, 0, 0, 1, 0, 0, 1, 1, 0}, {2, 5}) != 0;
  CHECK(test::relative_error(module.forward(x, x, x, {.is_causal = true}).output,
                             module.forward(x, x, x, {.attn_mask = later}).output) < 1e-6);
  CHECK(array_equal(module.forward(x, x, x, {.key_padding_mask = padding, .is_causal = true}).output,
                    module.forward(x, x, x, {.attn_mask = later, .key_padding_mask = padding}).output));
}

TEST_CASE("attention drops shares in training and keeps their mean", "[attention]") {
  const Tensor q = zeros({4, 200, 3}), v = ones({4, 50, 2});
  manual_seed(3);
  const Tensor k = zeros({4, 50, 3});
  const Tensor y = scaled_dot_product_attention(q, k, v, {.dropout = 0.5});
  CHECK(std::abs(mean(y).item() - 1) < 0.02);
  CHECK(array_equal(scaled_dot_product_attention(q, k, v, {.dropout = 1}), zeros({4, 200, 2})));
  MultiheadAttention module{{.embed_dim = 4, .num_heads = 2, .dropout = 0.5}};
  const Tensor x = randn({6, 2, 4});
  CHECK_FALSE(array_equal(module(x), module(x)));
  module.eval();
  CHECK(array_equal(module(x), module(x)));
}

TEST_CASE("attention modules refuse bad options and inputs", "[attention]") {
  CHECK_THROWS_WITH((MultiheadAttention{{.embed_dim = 5, .num_heads = 2}}),
                    "MultiheadAttention: num_heads must divide embed_dim, got 2 and 5");
  CHECK_THROWS_WITH((MultiheadAttention{{.embed_dim = 0, .num_heads = 1}}),
                    "MultiheadAttention: embed_dim must be at least 1, got 0");
  CHECK_THROWS_WITH((MultiheadAttention{{.embed_dim = 4, .num_heads = 2, .dropout = 2}}),
                    Contains("dropout must be in [0, 1]"));
  MultiheadAttention module{{.embed_dim = 4, .num_heads = 2}};
  const Tensor x = ones({3, 2, 4});
  CHECK_THROWS_WITH(module(ones({3, 2, 5})), Contains("the query must be [length, batch, 4]"));
  CHECK_THROWS_WITH(module.forward(x, ones({3, 4}), x), Contains("the key must be"));
  CHECK_THROWS_WITH(module.forward(x, x, x, {.attn_mask = ones({3, 4})}),
                    Contains("attn_mask must be [3, 3] or [4, 3, 3], got [3, 4]"));
  CHECK_THROWS_WITH(module.forward(x, x, x, {.attn_mask = ones({3, 3}, int64)}),
                    Contains("attn_mask must be bool"));
  CHECK_THROWS_WITH(module.forward(x, x, x, {.key_padding_mask = ones({3, 2}, boolean)}),
                    Contains("key_padding_mask must be [2, 3]"));
  CHECK_THROWS_WITH(module.forward(x, x, x, {.key_padding_mask = ones({2, 3})}),
                    Contains("key_padding_mask must be bool"));
}
