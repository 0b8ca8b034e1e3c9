#include "pleat/models/char_transformer.h"

#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/attention.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/option_checks.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::models {
namespace {

/// Causal self-attention.
struct Attention : nn::Module {
  Attention(int64_t width, int64_t heads_)
      : heads(heads_),
        in{{.in_features = width, .out_features = 3 * width}},
        out{{.in_features = width, .out_features = width}} {}

  Tensor forward(const Tensor& x) override {
    const std::vector<Tensor> parts = chunk(in(x), 3, -1);
    // [N, heads, length, width of a head]
    const auto by_head = [&](const Tensor& part) {
      return transpose(reshape(part, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
    };
    const Tensor y = nn::KeyValueCache::attend(by_head(parts[0]), by_head(parts[1]), by_head(parts[2]));
    return out(reshape(transpose(y, 1, 2), x.shape()));
  }
  void members(nn::Members& m) override {
    m("in", in);
    m("out", out);
  }

  int64_t heads;
  nn::Linear in, out;
};

}  // namespace

CharTransformer::CharTransformer(CharTransformerOptions o)
    : options(o),
      characters{{.num_embeddings = o.characters, .embedding_dim = o.width}},
      places{{.num_embeddings = o.length, .embedding_dim = o.width}} {
  check<ValueError>(o.heads >= 1 && o.width % o.heads == 0,
                    "CharTransformer: heads = {} must divide width = {}", o.heads, o.width);
  check_layers("CharTransformer", o.layers, 12, checked_multiply(12 * o.width, o.width, "CharTransformer"));
  const auto norm = [&] { return nn::LayerNorm{{.normalized_shape = o.width}}; };
  for (int64_t i = 0; i < o.layers; ++i) {
    body.add(nn::Residual{{.body = nn::Sequential{norm(), Attention(o.width, o.heads)}}});
    body.add(
        nn::Residual{{.body = nn::Sequential{
                          norm(), nn::Linear{{.in_features = o.width, .out_features = 4 * o.width}},
                          nn::GELU{}, nn::Linear{{.in_features = 4 * o.width, .out_features = o.width}}}}});
  }
  body.add(norm());
  body.add(nn::Linear{{.in_features = o.width, .out_features = o.characters}});
}

Tensor CharTransformer::forward(const Tensor& text) {
  const nn::KeyValueCache* cache = nn::KeyValueCache::current();
  const int64_t seen = cache == nullptr ? 0 : cache->length();
  check<ShapeError>(text.rank() == 2 && text.size(1) <= options.length - seen,
                    "CharTransformer: the text must be [N, at most {} characters], got {}",
                    options.length - seen, text);
  return body(characters(text) + places(arange(seen, seen + text.size(1), {.device = text.device()})));
}

void CharTransformer::members(nn::Members& m) {
  m("characters", characters);
  m("places", places);
  m("body", body);
}

}  // namespace pleat::models
