#include "pleat/models/vision_transformer.h"

#include <string>

#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/init.h"
#include "pleat/nn/option_checks.h"
#include "pleat/nn/transformer.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::models {
namespace {

/// An encoder layer by the names of published weights.
struct EncoderBlock : nn::TransformerEncoderLayer {
  explicit EncoderBlock(const VisionTransformerOptions& o)
      : TransformerEncoderLayer{{.d_model = o.width,
                                 .nhead = o.heads,
                                 .dim_feedforward = o.feedforward,
                                 .dropout = 0,
                                 .activation = nn::TransformerActivation::gelu,
                                 .layer_norm_eps = 1e-6,
                                 .batch_first = true,
                                 .norm_first = true}} {
    for (const nn::Linear& linear : {linear1, linear2}) {
      nn::init::xavier_uniform_(linear.weight);
      nn::init::normal_(linear.bias, 0, 1e-6);
    }
  }
  void members(nn::Members& m) override {
    m("ln_1", norm1);
    m("self_attention", self_attn);
    m("ln_2", norm2);
    m("mlp.0", linear1);
    m("mlp.3", linear2);
  }
};

/// The number of tokens: that of patches, and one.
int64_t tokens_of(const VisionTransformerOptions& o) {
  for (const int64_t size :
       {o.num_classes, o.image_size, o.patch_size, o.layers, o.heads, o.width, o.feedforward})
    check<ValueError>(size >= 1, "VisionTransformer: options must be at least 1, got {}", size);
  check<ValueError>(o.image_size % o.patch_size == 0,
                    "VisionTransformer: patch_size = {} must divide image_size = {}", o.patch_size,
                    o.image_size);
  const int64_t side = o.image_size / o.patch_size;
  return checked_multiply(side, side, "VisionTransformer") + 1;
}

}  // namespace

VisionTransformer::VisionTransformer(const VisionTransformerOptions& o)
    : options(o),
      pos_embedding(nn::parameter(randn({1, tokens_of(o), o.width}) * 0.02)),
      class_token(nn::parameter(zeros({1, 1, o.width}))),
      conv_proj{
          {.in_channels = 3, .out_channels = o.width, .kernel_size = o.patch_size, .stride = o.patch_size}},
      ln{{.normalized_shape = o.width, .eps = 1e-6}},
      head{{.in_features = o.width, .out_features = o.num_classes}} {
  for (int64_t i = 0; i < o.layers; ++i) {
    layers.add("encoder_layer_" + std::to_string(i), EncoderBlock(o));
    if (i == 0) check_layers("VisionTransformer", o.layers, 12, layers.num_parameters());
  }
  nn::init::kaiming_normal_(conv_proj.weight, {.nonlinearity = "linear"});
  for (const Tensor& zero : {conv_proj.bias, head.weight, head.bias}) nn::init::zeros_(zero);
}

Tensor VisionTransformer::forward(const Tensor& x) {
  check<ShapeError>(
      x.rank() == 4 && x.size(2) == options.image_size && x.size(3) == options.image_size,
      "VisionTransformer: pictures must be [N, 3, {}, {}], got {}; resize them, or set image_size",
      options.image_size, options.image_size, x);
  const Tensor patches = transpose(flatten(conv_proj(x), 2), 1, 2);
  const Tensor tokens = cat({expand(class_token, {x.size(0), 1, options.width}), patches}, 1);
  return head(ln(select(layers(tokens + pos_embedding), 1, 0)));
}

void VisionTransformer::members(nn::Members& m) {
  m("class_token", class_token);
  m("conv_proj", conv_proj);
  m("encoder.pos_embedding", pos_embedding);
  m("encoder.layers", layers);
  m("encoder.ln", ln);
  m("heads.head", head);
}

VisionTransformer imagenet::vit_b_16(Options options) {
  return VisionTransformer({.num_classes = options.num_classes});
}

}  // namespace pleat::models
