#pragma once

#include <pleat/pleat.h>

/// Networks of other kinds than those of cifar_models.h, small enough to train on a CPU.

/// LeNet-5 (LeCun et al., 1998) with ReLU and max-pooling, for digits [N, 1, 28, 28].
pleat::nn::Sequential lenet(int64_t classes);

/// MobileNetV2 (Sandler et al., arXiv:1801.04381) with the strides that are usual for images [N, 3, 32, 32].
pleat::nn::Sequential mobilenet_v2(int64_t classes);

/// U-Net (Ronneberger et al., arXiv:1505.04597) with padding and batch norm: images [N, 3, H, W] to
/// [N, classes, H, W]. `widths` are the channels of its levels, each of half the size of the one before.
pleat::nn::Sequential unet(const std::vector<int64_t>& widths, int64_t classes);

/// DCGAN (Radford et al., arXiv:1511.06434): noise [N, 100, 1, 1] to images [N, 3, 64, 64] ...
pleat::nn::Sequential dcgan_generator(int64_t width);
/// ... and images to one number each [N, 1, 1, 1], above 0 for real ones.
pleat::nn::Sequential dcgan_discriminator(int64_t width);

/// Volumes [N, 1, D, H, W]: three times conv 3x3x3 (16, 32, 64 channels), batch norm, ReLU, 2x2x2 max-pool;
/// then a linear layer on the mean.
pleat::nn::Sequential voxel_net(int64_t classes);

struct CharTransformerOptions {
  int64_t characters = 65, length = 64, width = 128, heads = 4, layers = 4;
};

/// The next character after each of a text [N, length]: [N, length, characters]. Each layer is causal
/// self-attention and two linear layers with GELU, norms first (GPT-2; Radford et al., 2019).
struct CharTransformer : pleat::nn::Module {
  explicit CharTransformer(CharTransformerOptions options = {});
  pleat::Tensor forward(const pleat::Tensor& text) override;
  void members(pleat::nn::Members& m) override;

  pleat::nn::Embedding characters, places;
  pleat::nn::Sequential body;
};
