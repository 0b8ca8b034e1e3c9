#pragma once

#include <array>
#include <concepts>
#include <vector>

#include "pleat/core/base/policy.h"
#include "pleat/core/base/required.h"
#include "pleat/nn/layer.h"
#include "pleat/nn/linear.h"
#include "pleat/ops/attention/attention.h"

/// Attention with parameters. Names and layouts are PyTorch's, so that state dictionaries fit.

namespace pleat::nn {

struct MultiheadAttentionOptions {
  Required<int64_t> embed_dim;  ///< E: of queries and results
  Required<int64_t> num_heads;  ///< divides it
  double dropout = 0;           ///< of the shares, in training
  bool bias = true;
  int64_t kdim = 0;          ///< features of keys; 0: embed_dim
  int64_t vdim = 0;          ///< of values; 0: embed_dim
  bool batch_first = false;  ///< sequences are [N, L, E], else [L, N, E]
};

/// Masks as PyTorch's modules have them: what they say true of is left out. (That of
/// scaled_dot_product_attention says what takes part.)
struct MultiheadAttentionMasks {
  /// [L, S] or [N * num_heads, L, S]: bool, true where a query takes no key, or floating, added to the
  /// scores.
  Tensor attn_mask = {};
  Tensor key_padding_mask = {};  ///< [N, S], of one sequence [S]: bool, true for keys that no query takes
  bool is_causal = false;        ///< query i takes the keys 0 ... i only; see KeyValueCache
  bool need_weights = false;     ///< returns the shares, too; slower
};

struct MultiheadAttentionResult {
  Tensor output;   ///< like the query
  Tensor weights;  ///< [N, L, S], or [L, S]: the mean of all heads' shares. Undefined unless asked for
};

/// The keys and values of the tokens so far, in all layers of a network, so that a text is written on without
/// computing those of its beginning again:
///
///   const NoGrad off_the_tape;
///   nn::KeyValueCache cache;
///   Tensor y = cache.run([&] { return net(prompt); });
///   y = cache.run([&] { return net(next_token); });
///
/// A copy goes on by itself.
class KeyValueCache {
 public:
  /// How many tokens are in it.
  int64_t length() const { return length_; }
  void clear() { *this = {}; }
  /// Calls `forward`, one pass of a network over the tokens that come next. Each causal self-attention in it
  /// (MultiheadAttention, the layers of a transformer, models::CharTransformer) gives for these what it would
  /// give among all. Throws ValueError where gradients are recorded, for another batch, type, device or
  /// network, and what forward throws; the cache is then as it was.
  template <std::invocable F>
  auto run(F&& forward) {
    const Policy<InUse> scope{{this}};
    begin();
    auto y = forward();
    end();
    return y;
  }

  /// The one whose run() is on in this thread, or null.
  static const KeyValueCache* current() { return Policy<InUse>::current().cache; }
  /// Causal attention of queries, keys and values [N, heads, L, E], by the current cache if there is one:
  /// what a layer of one's own calls.
  static Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value);

 private:
  struct InUse {
    KeyValueCache* cache = nullptr;
  };
  struct Layer {
    Tensor keys, values;  ///< with room for more
  };
  void begin();
  void end();
  Tensor next(const Tensor& query, const Tensor& key, const Tensor& value);

  std::vector<Layer> layers_;
  int64_t length_ = 0;
  int64_t more_ = 0;      ///< tokens of this pass
  std::size_t next_ = 0;  ///< the layer that comes next
};

/// Several attentions side by side, each over a part of projected features: Vaswani et al., "Attention is all
/// you need" (2017). Queries [L, N, E], keys [S, N, kdim] and values [S, N, vdim], or without N; batch_first
/// puts N in front. N and S are one number each: nothing broadcasts.
///
///   nn::MultiheadAttention attention{{.embed_dim = 64, .num_heads = 8, .batch_first = true}};
///   Tensor y = attention(x);                                                    // of x to itself
///   Tensor z = attention.forward(q, k, v, {.key_padding_mask = is_padding}).output;
///
/// A query to which masks leave no key gives what a value of 0 does; PyTorch gives NaN. Parameters:
/// in_proj_weight [3 E, E] (q_proj_weight, k_proj_weight, v_proj_weight where kdim or vdim differ),
/// in_proj_bias, out_proj. Throws ValueError unless num_heads divides embed_dim and 0 <= dropout <= 1;
/// forward throws ShapeError, DTypeError.
class MultiheadAttention : public Layer<"MultiheadAttention", MultiheadAttentionOptions> {
 public:
  explicit MultiheadAttention(const MultiheadAttentionOptions& o);
  Tensor forward(const Tensor& x) override;
  MultiheadAttentionResult forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const MultiheadAttentionMasks& masks = {});
  void members(Members& m) override;
  std::string options_text() const override;

  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Linear out_proj;

 private:
  MultiheadAttentionResult run(const Tensor& query, const Tensor& key, const Tensor& value,
                               const MultiheadAttentionMasks& masks);
  /// Query, key and value as the heads take them, [N, heads, L, E / heads].
  std::array<Tensor, 3> heads_of(const Tensor& query, const Tensor& key, const Tensor& value) const;
};

}  // namespace pleat::nn
