#pragma once

#include <optional>
#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/nn/attention.h"
#include "pleat/nn/layer.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"

/// The transformer: Vaswani et al., "Attention is all you need" (2017). Names of members are PyTorch's, so
/// that state dictionaries fit. Sequences are [length, N, d_model], or [N, length, d_model] with batch_first,
/// or without N, which is one number for all inputs. Modules throw as their members do; `need_weights` in
/// masks is ignored.

namespace pleat::nn {

enum class TransformerActivation : unsigned char { relu, gelu };

struct TransformerEncoderLayerOptions {
  Required<int64_t> d_model;
  Required<int64_t> nhead;
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  ///< normalise what goes into each part, else the sums
};

/// x + attention(x), then x + linear2(activation(linear1(x))), with a layer norm for each: Vaswani et al.
/// (2017); with norm_first Xiong et al., "On layer normalization in the transformer architecture" (2020).
/// Dropout is as PyTorch's: of the shares, behind the activation, and of what both parts add. Members:
/// self_attn, linear1, linear2, norm1, norm2.
class TransformerEncoderLayer : public Layer<"TransformerEncoderLayer", TransformerEncoderLayerOptions> {
 public:
  explicit TransformerEncoderLayer(const TransformerEncoderLayerOptions& options);
  Tensor forward(const Tensor& x) override;
  Tensor forward(const Tensor& x, const MultiheadAttentionMasks& masks);
  void members(Members& m) override;

  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;

 private:
  Tensor run(const Tensor& x, const MultiheadAttentionMasks& masks);
};

struct TransformerEncoderOptions {
  TransformerEncoderLayerOptions layer;  ///< of each
  Required<int64_t> num_layers;
  bool norm = false;  ///< a layer norm behind the last one
};

/// Layers one after the other. Each has initial values of its own (PyTorch copies one layer's). Members:
/// layers, norm. Throws ValueError unless num_layers is at least 1.
class TransformerEncoder : public Layer<"TransformerEncoder"> {
 public:
  explicit TransformerEncoder(const TransformerEncoderOptions& options);
  Tensor forward(const Tensor& x) override;
  Tensor forward(const Tensor& x, const MultiheadAttentionMasks& masks);
  void members(Members& m) override;

  std::vector<TransformerEncoderLayer> layers;
  std::optional<LayerNorm> norm;
};

using TransformerDecoderLayerOptions = TransformerEncoderLayerOptions;

/// What a decoder's two attentions leave out.
struct TransformerDecoderMasks {
  MultiheadAttentionMasks tgt = {};     ///< of the sequence to itself; usually `.is_causal = true`
  MultiheadAttentionMasks memory = {};  ///< of the sequence to the encoder's result
};

/// An encoder's layer with an attention to `memory`, an encoder's result, in between. Members: self_attn,
/// multihead_attn, linear1, linear2, norm1, norm2, norm3.
class TransformerDecoderLayer : public Layer<"TransformerDecoderLayer", TransformerEncoderLayerOptions> {
 public:
  explicit TransformerDecoderLayer(const TransformerDecoderLayerOptions& options);
  using Module::forward;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const TransformerDecoderMasks& masks = {});
  void members(Members& m) override;

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2, norm3;
};

using TransformerDecoderOptions = TransformerEncoderOptions;

/// Layers one after the other. Members: layers, norm. Throws ValueError unless num_layers is at least 1.
class TransformerDecoder : public Layer<"TransformerDecoder"> {
 public:
  explicit TransformerDecoder(const TransformerDecoderOptions& options);
  using Module::forward;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const TransformerDecoderMasks& masks = {});
  void members(Members& m) override;

  std::vector<TransformerDecoderLayer> layers;
  std::optional<LayerNorm> norm;
};

struct TransformerOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
};

struct TransformerMasks {
  MultiheadAttentionMasks src = {};
  MultiheadAttentionMasks tgt = {};
  MultiheadAttentionMasks memory = {};
};

/// decoder(tgt, encoder(src)), each with a layer norm behind its last layer. Matrices start as
/// xavier_uniform_ has them. Members: encoder, decoder.
///
///   nn::Transformer transformer{{.d_model = 64, .nhead = 4, .batch_first = true}};
///   Tensor y = transformer.forward(src, tgt, {.tgt = {.is_causal = true}});
class Transformer : public Layer<"Transformer"> {
 public:
  explicit Transformer(const TransformerOptions& options);
  using Module::forward;
  Tensor forward(const Tensor& src, const Tensor& tgt, const TransformerMasks& masks = {});
  void members(Members& m) override;

  TransformerEncoder encoder;
  TransformerDecoder decoder;

 private:
  int64_t d_model_;
  bool batch_first_;
};

namespace detail {
std::string text_of_options(LayerName, const TransformerEncoderLayerOptions& options);
}  // namespace detail

}  // namespace pleat::nn
