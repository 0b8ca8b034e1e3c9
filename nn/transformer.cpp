#include "pleat/nn/transformer.h"

#include "pleat/core/base/format.h"
#include "pleat/nn/init.h"
#include "pleat/nn/option_checks.h"
#include "pleat/nn/options_text.h"
#include "pleat/nn/record_forward.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/dropout.h"

namespace pleat::nn {
namespace {

using Options = TransformerEncoderLayerOptions;

MultiheadAttention attention_of(const Options& o) {
  return MultiheadAttention{
      {.embed_dim = o.d_model, .num_heads = o.nhead, .dropout = o.dropout, .batch_first = o.batch_first}};
}
LayerNorm norm_of(const Options& o) {
  return LayerNorm{{.normalized_shape = Dims(o.d_model), .eps = o.layer_norm_eps}};
}
Linear linear_of(int64_t in, int64_t out) { return Linear{{.in_features = in, .out_features = out}}; }

/// The parts of a layer: what each adds to x, with the layer norms in their places.
struct Parts {
  const Options& options;
  bool training;

  Tensor dropped(const Tensor& x) const {
    return options.dropout > 0 && training ? dropout(x, options.dropout) : x;
  }
  Tensor fed_forward(const Tensor& x, Linear& linear1, Linear& linear2) const {
    const Tensor hidden = linear1(x);
    const Tensor active = options.activation == TransformerActivation::relu ? relu(hidden) : gelu(hidden);
    return linear2(dropped(active));
  }
  template <class F>
  Tensor added(const Tensor& x, LayerNorm& norm, const F& part) const {
    return options.norm_first ? x + dropped(part(norm(x))) : norm(x + dropped(part(x)));
  }
};

MultiheadAttentionMasks without_weights(MultiheadAttentionMasks masks) {
  masks.need_weights = false;
  return masks;
}

/// Checks two sequences before the first of them is run through layers.
void check_sequences(const char* what, const Tensor& a, const Tensor& b, int64_t width, bool batch_first) {
  const auto one = [&](const Tensor& x) {
    return (x.rank() == 2 || x.rank() == 3) && x.rank() == a.rank() && x.size(-1) == width &&
           (x.rank() == 2 || x.size(batch_first ? 0 : 1) == a.size(batch_first ? 0 : 1));
  };
  check<ShapeError>(
      one(a) && one(b),
      "{} must be [{}, {}] with one batch for both or, of one sequence, [length, {}], got {} and {}", what,
      batch_first ? "batch, length" : "length, batch", width, width, a, b);
}

template <class Layer>
std::vector<Layer> layers_of(const char* name, const Options& options, int64_t count) {
  check_at_least(name, "num_layers", count, 1);
  std::vector<Layer> layers{Layer(options)};
  check_layers(name, count, std::ssize(layers[0].parameters()), layers[0].num_parameters());
  while (std::ssize(layers) < count) layers.emplace_back(options);
  return layers;
}

std::optional<LayerNorm> last_norm(const Options& options, bool norm) {
  return norm ? std::optional(norm_of(options)) : std::nullopt;
}

Options layer_of(const TransformerOptions& o) {
  return {.d_model = o.d_model,
          .nhead = o.nhead,
          .dim_feedforward = o.dim_feedforward,
          .dropout = o.dropout,
          .activation = o.activation,
          .layer_norm_eps = o.layer_norm_eps,
          .batch_first = o.batch_first,
          .norm_first = o.norm_first};
}

}  // namespace

std::string detail::text_of_options(LayerName, const Options& o) {
  const bool gelu = o.activation == TransformerActivation::gelu;
  return OptionsText()("dropout", o.dropout)("activation", gelu ? "gelu" : "relu", "relu")(
      "norm_first", o.norm_first, false);
}

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerEncoderLayerOptions& o)
    : Layer(o),
      self_attn(attention_of(o)),
      linear1(linear_of(o.d_model, o.dim_feedforward)),
      linear2(linear_of(o.dim_feedforward, o.d_model)),
      norm1(norm_of(o)),
      norm2(norm_of(o)) {}

Tensor TransformerEncoderLayer::forward(const Tensor& x) { return run(x, {}); }

Tensor TransformerEncoderLayer::forward(const Tensor& x, const MultiheadAttentionMasks& masks) {
  const RecordForward range(*this, x, masks.attn_mask, masks.key_padding_mask);
  return range.run([&] { return run(x, without_weights(masks)); });
}

Tensor TransformerEncoderLayer::run(const Tensor& x, const MultiheadAttentionMasks& masks) {
  const Parts parts{options, training()};
  const Tensor y =
      parts.added(x, norm1, [&](const Tensor& t) { return self_attn.forward(t, t, t, masks).output; });
  return parts.added(y, norm2, [&](const Tensor& t) { return parts.fed_forward(t, linear1, linear2); });
}

void TransformerEncoderLayer::members(Members& m) {
  m("self_attn", self_attn);
  m("linear1", linear1);
  m("linear2", linear2);
  m("norm1", norm1);
  m("norm2", norm2);
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderOptions& o)
    : layers(layers_of<TransformerEncoderLayer>("TransformerEncoder", o.layer, o.num_layers)),
      norm(last_norm(o.layer, o.norm)) {}

Tensor TransformerEncoder::forward(const Tensor& x) {
  Tensor y = x;
  for (TransformerEncoderLayer& layer : layers) y = layer(y);
  return norm ? (*norm)(y) : y;
}

Tensor TransformerEncoder::forward(const Tensor& x, const MultiheadAttentionMasks& masks) {
  const RecordForward range(*this, x, masks.attn_mask, masks.key_padding_mask);
  return range.run([&] {
    Tensor y = x;
    for (TransformerEncoderLayer& layer : layers) y = layer.forward(y, masks);
    return norm ? (*norm)(y) : y;
  });
}

void TransformerEncoder::members(Members& m) {
  m("layers", layers);
  m("norm", norm);
}

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerDecoderLayerOptions& o)
    : Layer(o),
      self_attn(attention_of(o)),
      multihead_attn(attention_of(o)),
      linear1(linear_of(o.d_model, o.dim_feedforward)),
      linear2(linear_of(o.dim_feedforward, o.d_model)),
      norm1(norm_of(o)),
      norm2(norm_of(o)),
      norm3(norm_of(o)) {}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const TransformerDecoderMasks& masks) {
  const RecordForward range(*this, tgt, memory, masks.tgt.attn_mask, masks.tgt.key_padding_mask,
                            masks.memory.attn_mask, masks.memory.key_padding_mask);
  return range.run([&] {
    check_sequences("TransformerDecoderLayer: tgt and memory", tgt, memory, options.d_model,
                    options.batch_first);
    const Parts parts{options, training()};
    Tensor y = parts.added(tgt, norm1, [&](const Tensor& t) {
      return self_attn.forward(t, t, t, without_weights(masks.tgt)).output;
    });
    y = parts.added(y, norm2, [&](const Tensor& t) {
      return multihead_attn.forward(t, memory, memory, without_weights(masks.memory)).output;
    });
    return parts.added(y, norm3, [&](const Tensor& t) { return parts.fed_forward(t, linear1, linear2); });
  });
}

void TransformerDecoderLayer::members(Members& m) {
  m("self_attn", self_attn);
  m("multihead_attn", multihead_attn);
  m("linear1", linear1);
  m("linear2", linear2);
  m("norm1", norm1);
  m("norm2", norm2);
  m("norm3", norm3);
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderOptions& o)
    : layers(layers_of<TransformerDecoderLayer>("TransformerDecoder", o.layer, o.num_layers)),
      norm(last_norm(o.layer, o.norm)) {}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory,
                                   const TransformerDecoderMasks& masks) {
  const RecordForward range(*this, tgt, memory);
  return range.run([&] {
    Tensor y = tgt;
    for (TransformerDecoderLayer& layer : layers) y = layer.forward(y, memory, masks);
    return norm ? (*norm)(y) : y;
  });
}

void TransformerDecoder::members(Members& m) {
  m("layers", layers);
  m("norm", norm);
}

Transformer::Transformer(const TransformerOptions& o)
    : encoder{{.layer = layer_of(o), .num_layers = o.num_encoder_layers, .norm = true}},
      decoder{{.layer = layer_of(o), .num_layers = o.num_decoder_layers, .norm = true}},
      d_model_(o.d_model),
      batch_first_(o.batch_first) {
  for (const Tensor& p : parameters())
    if (p.rank() > 1) init::xavier_uniform_(p);
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const TransformerMasks& masks) {
  const RecordForward range(*this, src, tgt);
  return range.run([&] {
    check_sequences("Transformer: src and tgt", src, tgt, d_model_, batch_first_);
    return decoder.forward(tgt, encoder.forward(src, masks.src), {.tgt = masks.tgt, .memory = masks.memory});
  });
}

void Transformer::members(Members& m) {
  m("encoder", encoder);
  m("decoder", decoder);
}

}  // namespace pleat::nn
