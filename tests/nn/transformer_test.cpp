#include "pleat/nn/transformer.h"

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/nn/module_fixture.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::Json;

namespace {

nn::TransformerEncoderLayerOptions layer_options(const Json& o) {
  const bool gelu = o.at("activation") == "gelu";
  return {.d_model = 4,
          .nhead = 2,
          .dim_feedforward = 5,
          .dropout = 0,
          .activation = gelu ? nn::TransformerActivation::gelu : nn::TransformerActivation::relu,
          .batch_first = o.at("batch_first").get<bool>(),
          .norm_first = o.at("norm_first").get<bool>()};
}

/// Of keys, [N, S].
Tensor padding_of(const Json& o) {
  if (o.at("padding").is_null()) return {};
  std::vector<int64_t> values;
  for (const auto& row : o.at("padding"))
    for (const auto& value : row) values.push_back(value.get<int64_t>());
  return from_vector(values, {2, static_cast<int64_t>(values.size()) / 2}) != 0;
}

nn::TransformerDecoderMasks decoder_masks(const Json& o) {
  return {.tgt = {.is_causal = o.at("causal").get<bool>()}, .memory = {.key_padding_mask = padding_of(o)}};
}

}  // namespace

TEST_CASE("transformer modules give PyTorch's values and gradients", "[attention]") {
  for (const Json& c : test::fixture("transformers").at("cases")) {
    CAPTURE(c.at("name").get<std::string>());
    const Json& o = c.at("options");
    const int64_t layers = o.at("num_layers").get<int64_t>();
    const bool norm = o.at("norm").get<bool>();
    const std::string kind = c.at("op");
    if (kind == "TransformerEncoder") {
      nn::TransformerEncoder module{{.layer = layer_options(o), .num_layers = layers, .norm = norm}};
      test::check_module(c, module, [&](const test::Named& in) {
        const Tensor padding = padding_of(o);
        return flatten(padding.defined() ? module.forward(in.at("x"), {.key_padding_mask = padding})
                                         : module(in.at("x")));
      });
    } else if (kind == "TransformerDecoderLayer") {
      nn::TransformerDecoderLayer module{layer_options(o)};
      test::check_module(c, module, [&](const test::Named& in) {
        return flatten(module.forward(in.at("y"), in.at("x"), decoder_masks(o)));
      });
    } else if (kind == "TransformerDecoder") {
      nn::TransformerDecoder module{{.layer = layer_options(o), .num_layers = layers, .norm = norm}};
      test::check_module(c, module, [&](const test::Named& in) {
        return flatten(module.forward(in.at("y"), in.at("x"), decoder_masks(o)));
      });
    } else {
      REQUIRE(kind == "Transformer");
      const nn::TransformerEncoderLayerOptions layer = layer_options(o);
      nn::Transformer module{{.d_model = layer.d_model,
                              .nhead = layer.nhead,
                              .num_encoder_layers = layers,
                              .num_decoder_layers = 1,
                              .dim_feedforward = layer.dim_feedforward,
                              .dropout = 0,
                              .activation = layer.activation,
                              .batch_first = layer.batch_first,
                              .norm_first = layer.norm_first}};
      test::check_module(c, module, [&](const test::Named& in) {
        const auto [tgt, memory] = decoder_masks(o);
        return flatten(module.forward(in.at("x"), in.at("y"), {.src = memory, .tgt = tgt, .memory = memory}));
      });
    }
  }
}

TEST_CASE("layers of a transformer start with values of their own", "[attention]") {
  nn::TransformerEncoder encoder{{.layer = {.d_model = 4, .nhead = 2}, .num_layers = 2}};
  CHECK_FALSE(array_equal(encoder.layers[0].linear1.weight, encoder.layers[1].linear1.weight));
  CHECK_FALSE(encoder.norm);
  const auto state = nn::Transformer{{.d_model = 4, .nhead = 2, .dim_feedforward = 3}}.state_dict();
  CHECK(state.count("encoder.layers.5.self_attn.in_proj_weight") == 1);
  CHECK(state.count("decoder.layers.5.multihead_attn.out_proj.bias") == 1);
  CHECK(state.count("encoder.norm.weight") == 1);
}

TEST_CASE("transformers refuse bad options and inputs", "[attention]") {
  CHECK_THROWS_WITH((nn::TransformerEncoder{{.layer = {.d_model = 4, .nhead = 2}, .num_layers = 0}}),
                    "TransformerEncoder: num_layers must be at least 1, got 0");
  CHECK_THROWS_WITH((nn::TransformerDecoder{{.layer = {.d_model = 4, .nhead = 2}, .num_layers = -1}}),
                    "TransformerDecoder: num_layers must be at least 1, got -1");
  CHECK_THROWS_WITH((nn::Transformer{{.d_model = 5, .nhead = 2}}),
                    Contains("num_heads must divide embed_dim, got 2 and 5"));
  nn::TransformerDecoder decoder{
      {.layer = {.d_model = 4, .nhead = 2, .dim_feedforward = 3}, .num_layers = 1}};
  CHECK_THROWS_WITH(decoder.forward(ones({3, 2, 4}), ones({3, 2, 5})),
                    Contains("tgt and memory must be [length, batch, 4]"));
  CHECK_THROWS_WITH(decoder.forward(ones({3, 2, 4}), ones({3, 2, 4}), {.tgt = {.attn_mask = ones({2, 2})}}),
                    Contains("attn_mask must be"));
}
