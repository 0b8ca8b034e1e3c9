#pragma once

#include <cstdint>

#include "pleat/nn/containers.h"
#include "pleat/nn/embedding.h"
#include "pleat/nn/module.h"

namespace pleat::models {

struct CharTransformerOptions {
  int64_t characters = 65, length = 64, width = 128, heads = 4, layers = 4;
};

/// The next character after each of a text of at most `length` characters: int64 [N, length] to
/// [N, length, characters]. Each layer is causal self-attention and two linear layers with GELU,
/// norms first (GPT-2; Radford et al., 2019). In nn::KeyValueCache::run it takes the characters that come
/// next, as long as they are at most `length` with those before.
struct CharTransformer : nn::Module {
  /// Throws ValueError unless `heads` divides `width`.
  explicit CharTransformer(CharTransformerOptions options = {});
  Tensor forward(const Tensor& text) override;
  void members(nn::Members& m) override;

  CharTransformerOptions options;
  nn::Embedding characters, places;
  nn::Sequential body;
};

}  // namespace pleat::models
