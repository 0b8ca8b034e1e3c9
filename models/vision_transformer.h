#pragma once

#include <cstdint>

#include "pleat/models/imagenet.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/module.h"
#include "pleat/nn/norm.h"

namespace pleat::models {

struct VisionTransformerOptions {
  int64_t num_classes = 1000, image_size = 224, patch_size = 16;
  int64_t layers = 12, heads = 12, width = 768, feedforward = 3072;
};

/// Vision transformer (Dosovitskiy et al., arXiv:2010.11929): pictures [N, 3, image_size, image_size] to
/// [N, num_classes]. Patches and a token of the class go through encoder layers, norms first; the class is
/// read from its token.
struct VisionTransformer : nn::Module {
  /// Throws ValueError unless all are at least 1, patch_size divides image_size and heads width.
  explicit VisionTransformer(const VisionTransformerOptions& o = {});
  /// Throws ShapeError for pictures of another size.
  Tensor forward(const Tensor& x) override;
  void members(nn::Members& m) override;

  VisionTransformerOptions options;
  Tensor pos_embedding;  ///< [1, patches + 1, width]
  Tensor class_token;    ///< [1, 1, width]
  nn::Conv2d conv_proj;
  nn::Sequential layers;
  nn::LayerNorm ln;
  nn::Linear head;
};

namespace imagenet {

/// ViT-B/16: 86.6 million parameters.
VisionTransformer vit_b_16(Options options = {});

}  // namespace imagenet
}  // namespace pleat::models
