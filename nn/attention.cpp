#include "pleat/nn/attention.h"

#include <algorithm>
#include <limits>

#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/init.h"
#include "pleat/nn/option_checks.h"
#include "pleat/nn/options_text.h"
#include "pleat/nn/record_forward.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::nn {
namespace {

constexpr const char* name = "MultiheadAttention";

/// The options with all checks made.
MultiheadAttentionOptions checked(MultiheadAttentionOptions o) {
  check_at_least(name, "embed_dim", o.embed_dim, 1);
  check_at_least(name, "num_heads", o.num_heads, 1);
  check<ValueError>(o.embed_dim % o.num_heads == 0, "{}: num_heads must divide embed_dim, got {} and {}",
                    name, static_cast<int64_t>(o.num_heads), static_cast<int64_t>(o.embed_dim));
  check_at_least(name, "kdim", o.kdim, 0);
  check_at_least(name, "vdim", o.vdim, 0);
  check_share(name, "dropout", o.dropout);
  if (o.kdim == 0) o.kdim = o.embed_dim;
  if (o.vdim == 0) o.vdim = o.embed_dim;
  return o;
}

Tensor matrix(int64_t rows, int64_t columns) {
  const Tensor weight = parameter(empty({rows, columns}));
  init::xavier_uniform_(weight);
  return weight;
}

bool is_same(const Tensor& a, const Tensor& b) { return &a.impl() == &b.impl(); }

/// What scaled_dot_product_attention is to do for q [N, heads, L, E] and k [N, heads, S, E].
AttentionOptions attention_options(const MultiheadAttentionMasks& masks, const Tensor& q, const Tensor& k,
                                   double dropped) {
  if (!masks.attn_mask.defined() && !masks.key_padding_mask.defined())
    return {.is_causal = masks.is_causal, .dropout = dropped};
  const int64_t batch = q.size(0), heads = q.size(1), queries = q.size(2), keys = k.size(2);
  Tensor added, left_out;
  const auto leave_out = [&](const Tensor& mask) { left_out = left_out.defined() ? left_out || mask : mask; };
  if (masks.attn_mask.defined()) {
    const Tensor& mask = masks.attn_mask;
    check<ShapeError>(
        mask.shape() == Shape{queries, keys} || mask.shape() == Shape{batch * heads, queries, keys},
        "{}: attn_mask must be [{}, {}] or [{}, {}, {}], got {}", name, queries, keys, batch * heads, queries,
        keys, mask);
    check<DTypeError>(
        mask.dtype() == boolean || is_floating(mask.dtype()),
        "{}: attn_mask must be bool (true where a query takes no key) or floating (added to the "
        "scores), got {}",
        name, mask);
    const Tensor each = mask.rank() == 3 ? unflatten(mask, 0, {batch, heads}) : mask;
    mask.dtype() == boolean ? leave_out(each) : void(added = each);
  }
  if (masks.key_padding_mask.defined()) {
    const Tensor& mask = masks.key_padding_mask;
    check<ShapeError>(mask.shape() == Shape{batch, keys} || (batch == 1 && mask.shape() == Shape{keys}),
                      "{}: key_padding_mask must be [{}, {}], got {}", name, batch, keys, mask);
    check<DTypeError>(mask.dtype() == boolean, "{}: key_padding_mask must be bool, true for padding, got {}",
                      name, mask);
    leave_out(reshape(mask, {batch, 1, 1, keys}));
  }
  if (masks.is_causal) {
    const auto places = [&](int64_t n) { return arange(n, {.device = q.device()}); };
    leave_out(unsqueeze(places(keys), 0) > unsqueeze(places(queries), 1));
  }
  if (!added.defined()) return {.mask = !left_out, .dropout = dropped};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {.mask = left_out.defined() ? where(left_out, -infinity, added) : added, .dropout = dropped};
}

}  // namespace

MultiheadAttention::MultiheadAttention(const MultiheadAttentionOptions& o)
    : Layer(checked(o)), out_proj{{.in_features = o.embed_dim, .out_features = o.embed_dim, .bias = o.bias}} {
  const int64_t width = options.embed_dim;
  const int64_t all = checked_multiply(3, width, name);
  if (options.kdim == width && options.vdim == width) {
    in_proj_weight = matrix(all, width);
  } else {
    q_proj_weight = matrix(width, width);
    k_proj_weight = matrix(width, options.kdim);
    v_proj_weight = matrix(width, options.vdim);
  }
  if (!options.bias) return;
  in_proj_bias = parameter(zeros({all}));
  init::zeros_(out_proj.bias);
}

Tensor MultiheadAttention::forward(const Tensor& x) { return run(x, x, x, {}).output; }

MultiheadAttentionResult MultiheadAttention::forward(const Tensor& query, const Tensor& key,
                                                     const Tensor& value,
                                                     const MultiheadAttentionMasks& masks) {
  const RecordForward range(*this, query, key, value, masks.attn_mask, masks.key_padding_mask);
  return range.run([&] { return run(query, key, value, masks); });
}

std::array<Tensor, 3> MultiheadAttention::heads_of(const Tensor& query, const Tensor& key,
                                                   const Tensor& value) const {
  const int64_t width = options.embed_dim;
  std::vector<Tensor> projected;
  if (in_proj_weight.defined() && is_same(query, key) && is_same(query, value)) {
    projected = chunk(linear(query, in_proj_weight, in_proj_bias), 3, -1);
  } else {
    const std::array weights =
        in_proj_weight.defined()
            ? std::array{narrow(in_proj_weight, 0, 0, width), narrow(in_proj_weight, 0, width, width),
                         narrow(in_proj_weight, 0, 2 * width, width)}
            : std::array{q_proj_weight, k_proj_weight, v_proj_weight};
    const std::array inputs{query, key, value};
    for (std::size_t i = 0; i < 3; ++i) {
      const Tensor bias =
          in_proj_bias.defined() ? narrow(in_proj_bias, 0, static_cast<int64_t>(i) * width, width) : Tensor();
      projected.push_back(linear(inputs[i], weights[i], bias));
    }
  }
  std::array<Tensor, 3> heads;
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor parts = unflatten(projected[i], -1, {options.num_heads, width / options.num_heads});
    heads[i] = options.batch_first ? permute(parts, {0, 2, 1, 3}) : permute(parts, {1, 2, 0, 3});
  }
  return heads;
}

MultiheadAttentionResult MultiheadAttention::run(const Tensor& query, const Tensor& key, const Tensor& value,
                                                 const MultiheadAttentionMasks& masks) {
  const bool has_batch = query.rank() == 3;
  const int64_t widths[] = {options.embed_dim, options.kdim, options.vdim};
  const Tensor* given[] = {&query, &key, &value};
  const char* names[] = {"query", "key", "value"};
  for (std::size_t i = 0; i < 3; ++i)
    check<ShapeError>(
        (given[i]->rank() == 2 || given[i]->rank() == 3) && given[i]->rank() == query.rank() &&
            given[i]->size(-1) == widths[i],
        "{}: the {} must be [{}, {}] or, of one sequence, [length, {}], all three alike, got {}", name,
        names[i], options.batch_first ? "batch, length" : "length, batch", widths[i], widths[i], *given[i]);
  const int64_t length_dim = has_batch && !options.batch_first ? -3 : -2, batch_dim = -5 - length_dim;
  check<ShapeError>(
      key.size(length_dim) == value.size(length_dim) &&
          (!has_batch ||
           (query.size(batch_dim) == key.size(batch_dim) && key.size(batch_dim) == value.size(batch_dim))),
      "{}: query, key and value must be of one batch, key and value of one length, got {}, {} and {}", name,
      query, key, value);
  if (!has_batch) {
    const int64_t dim = options.batch_first ? 0 : 1;
    const Tensor q = unsqueeze(query, dim);
    const Tensor k = is_same(key, query) ? q : unsqueeze(key, dim);
    const Tensor v = is_same(value, query) ? q : unsqueeze(value, dim);
    const MultiheadAttentionResult y = run(q, k, v, masks);
    return {squeeze(y.output, {dim}), y.weights.defined() ? squeeze(y.weights, {0}) : Tensor()};
  }
  const auto [q, k, v] = heads_of(query, key, value);
  const double dropped = options.dropout > 0 && training() ? options.dropout : 0;
  const AttentionOptions o = attention_options(masks, q, k, dropped);
  Tensor weights, y;
  if (masks.is_causal && KeyValueCache::current() != nullptr) {
    check<ValueError>(is_same(query, key) && is_same(query, value) && dropped == 0 && !masks.need_weights &&
                          !masks.attn_mask.defined() && !masks.key_padding_mask.defined(),
                      "{}: with a KeyValueCache causal attention is of x to itself, without other masks, "
                      "weights and, in training, dropout; leave them out",
                      name);
    y = KeyValueCache::attend(q, k, v);
  } else if (masks.need_weights) {
    // The shares are what attention makes of the unit vectors.
    const Tensor unit = eye(k.size(2), {.dtype = k.dtype(), .device = k.device()});
    weights = scaled_dot_product_attention(q, k, unit, o);
    y = matmul(weights, v);
  } else {
    y = scaled_dot_product_attention(q, k, v, o);
  }
  y = flatten(options.batch_first ? permute(y, {0, 2, 1, 3}) : permute(y, {2, 0, 1, 3}), 2, 3);
  return {out_proj(y), weights.defined() ? mean(weights, {1}) : Tensor()};
}

void KeyValueCache::begin() {
  check<ValueError>(!grad_enabled(), "KeyValueCache: is for calls off the tape; open a scope with NoGrad");
  if (length_ == 0) layers_.clear();
  next_ = 0;
}

void KeyValueCache::end() {
  check<ValueError>(
      next_ > 0 && next_ == layers_.size(),
      "KeyValueCache: run() needs one pass of one network, with causal self-attention; clear() it "
      "for another network");
  length_ += more_;
}

Tensor KeyValueCache::attend(const Tensor& query, const Tensor& key, const Tensor& value) {
  KeyValueCache* cache = Policy<InUse>::current().cache;
  if (cache != nullptr) return cache->next(query, key, value);
  return scaled_dot_product_attention(query, key, value, {.is_causal = true});
}

Tensor KeyValueCache::next(const Tensor& query, const Tensor& key, const Tensor& value) {
  constexpr const char* op = "KeyValueCache";
  check<ShapeError>(query.rank() == 4 && key.shape() == query.shape() && value.shape() == query.shape(),
                    "{}: query, key and value must be [N, heads, L, E], got {}, {} and {}", op, query, key,
                    value);
  if (length_ == 0 && next_ == layers_.size()) layers_.emplace_back();
  if (next_ == 0) more_ = key.size(2);
  const int64_t total = checked_add(length_, more_, op);
  const auto with_length = [](const Tensor& x, int64_t length) {
    Shape shape = x.shape();
    shape[2] = length;
    return shape;
  };
  check<ValueError>(next_ < layers_.size() && key.size(2) == more_, "{}: clear() it for another network", op);
  auto& [keys, values] = layers_[next_++];
  check<ValueError>(length_ == 0 || (with_length(keys, 0) == with_length(key, 0) &&
                                     keys.dtype() == key.dtype() && keys.device() == key.device()),
                    "{}: its keys are {}, got {}; clear() it for another batch, type or device", op, keys,
                    key);
  // A copy of this cache would see what is written behind its end.
  if (length_ == 0 || total > keys.size(2) || !keys.is_sole_owner() || !values.is_sole_owner())
    for (Tensor* x : {&keys, &values}) {
      const Tensor room = empty(with_length(key, std::max(checked_multiply(2, length_, op), total)),
                                {.dtype = key.dtype(), .device = key.device()});
      if (length_ > 0) copy_(narrow(room, 2, 0, length_), narrow(*x, 2, 0, length_));
      *x = room;
    }
  copy_(narrow(keys, 2, length_, more_), key);
  copy_(narrow(values, 2, length_, more_), value);
  const auto places = [&](int64_t first) { return arange(first, total, {.device = key.device()}); };
  AttentionOptions o{.is_causal = length_ == 0};
  if (length_ > 0 && more_ > 1) o.mask = unsqueeze(places(0), 0) <= unsqueeze(places(length_), 1);
  return scaled_dot_product_attention(query, narrow(keys, 2, 0, total), narrow(values, 2, 0, total), o);
}

void MultiheadAttention::members(Members& m) {
  m("in_proj_weight", in_proj_weight);
  m("q_proj_weight", q_proj_weight);
  m("k_proj_weight", k_proj_weight);
  m("v_proj_weight", v_proj_weight);
  m("in_proj_bias", in_proj_bias);
  m("out_proj", out_proj);
}

std::string MultiheadAttention::options_text() const {
  OptionsText text;
  text(options.embed_dim)(options.num_heads)("dropout", options.dropout, 0)("bias", options.bias, true);
  if (!in_proj_weight.defined()) text("kdim", options.kdim)("vdim", options.vdim);
  return text("batch_first", options.batch_first, false);
}

}  // namespace pleat::nn
