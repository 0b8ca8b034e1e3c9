#include "pleat/onnx/import/operators.h"

/// Attention and rotary positions.

namespace pleat::onnx::imported {
namespace {

/// [N, L, heads * E] as [N, heads, L, E].
Tensor by_heads(NodeCall& n, const Tensor& x, int64_t heads) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3 || heads < 1 || x.size(2) % heads != 0)
    n.fail(fmt::format("cannot take {} heads of {}", heads, x));
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}

/// Which keys each query may take, [N or 1, 1, L, S]; undefined: all. Query i stands at place i + past, or
/// where the keys are filled up, so that the last query is the last key.
Tensor allowed_keys(NodeCall& n, const Tensor& query, int64_t keys, int64_t past) {
  const bool causal = n.flag("is_causal");
  const int64_t left = n.integer("left_window_size", -1), right = n.integer("right_window_size", -1);
  if (!causal && left < 0 && right < 0 && !n.has(6)) return {};
  const int64_t queries = query.size(-2);
  const auto numbers = [&](int64_t count) { return arange(0, count).to(query.device()); };
  Tensor place = view(numbers(queries), {queries, 1});
  const Tensor key = view(numbers(keys), {1, keys});
  Tensor allowed = key >= 0;
  if (n.has(6)) {
    const Tensor filled = view(n.x(6).to(int64), {n.x(6).numel(), 1, 1, 1});
    place = place + filled - queries;
    allowed = key < filled;
  } else {
    place = place + past;
  }
  if (causal) allowed = logical_and(allowed, key <= place);
  if (left >= 0) allowed = logical_and(allowed, key >= place - left);
  if (right >= 0) allowed = logical_and(allowed, key <= place + right);
  return allowed;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Query, key, value, mask, past key and value; outputs beside the result: present key and value, and scores.
NodeResults attention(NodeCall& n) {
  const Tensor& given = n.x(0);
  const Tensor query = by_heads(n, given, n.integer("q_num_heads", 1));
  Tensor key = by_heads(n, n.x(1), n.integer("kv_num_heads", 1)),
         value = by_heads(n, n.x(2), n.integer("kv_num_heads", 1));
  int64_t past = 0;
  if (n.has(4) && n.has(5)) {
    past = n.x(4).size(2);
    key = cat({n.x(4), key}, 2);
    value = cat({n.x(5), value}, 2);
  }
  const Tensor present_key = key, present_value = value;
  if (query.size(1) != key.size(1)) {
    if (query.size(1) % key.size(1) != 0) n.fail(fmt::format("heads of {} and {} do not fit", query, key));
    const int64_t times = query.size(1) / key.size(1);
    key = repeat_interleave(key, times, 1);
    value = repeat_interleave(value, times, 1);
  }
  AttentionOptions options;
  if (n.has("scale")) options.scale = n.number("scale", 1);
  const double softcap = n.number("softcap", 0);
  Tensor mask = n.x_or_none(3);
  const bool is_bool = mask.defined() && mask.dtype() == boolean;
  // What a mask does not reach is not taken.
  if (mask.defined() && mask.rank() > 0 && mask.size(-1) != 1 && mask.size(-1) < key.size(2))
    mask =
        pad(mask, {0, key.size(2) - mask.size(-1)}, {.value = is_bool ? Scalar(false) : Scalar(-infinity)});
  const Tensor allowed = allowed_keys(n, query, key.size(2), past);
  if (allowed.defined())
    mask = !mask.defined() ? allowed : is_bool ? logical_and(mask, allowed) : where(allowed, mask, -infinity);
  Tensor y, scores;
  if (softcap == 0 && !n.wants(3)) {
    options.mask = mask;
    y = scaled_dot_product_attention(query, key, value, options);
  } else {
    const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
    const Tensor plain_scores = matmul(query * scale, transpose(key, -1, -2));
    Tensor capped = softcap == 0 ? plain_scores : softcap * tanh(plain_scores / softcap);
    Tensor masked = !mask.defined()           ? capped
                    : mask.dtype() == boolean ? where(mask, capped, -infinity)
                                              : capped + mask;
    // A query that takes no key gives 0.
    const Tensor weights = where(max(masked, {-1}, true) == -infinity, 0, softmax(masked, -1));
    const int64_t mode = n.integer("qk_matmul_output_mode", 0);
    scores = mode == 0 ? plain_scores : mode == 1 ? capped : mode == 2 ? masked : weights;
    y = matmul(weights, value);
  }
  if (given.rank() == 3) y = flatten(transpose(y, 1, 2), 2);
  return GraphValues{y, present_key, present_value, scores};
}

/// x [N, heads, L, E] turned by angles whose cosines and sines are [N, L, R / 2], R the first R of E.
Tensor rotated(const Tensor& x, Tensor cosine, Tensor sine, bool interleaved, int64_t width) {
  const Tensor part = narrow(x, -1, 0, width), rest = narrow(x, -1, width, x.size(-1) - width);
  cosine = unsqueeze(cosine, 1);
  sine = unsqueeze(sine, 1);
  const int64_t half = width / 2;
  Tensor turned;
  if (interleaved) {
    const Tensor pairs = unflatten(part, -1, {half, 2});
    const Tensor a = squeeze(narrow(pairs, -1, 0, 1), {-1}), b = squeeze(narrow(pairs, -1, 1, 1), {-1});
    turned = flatten(stack({a * cosine - b * sine, a * sine + b * cosine}, -1), -2);
  } else {
    const Tensor a = narrow(part, -1, 0, half), b = narrow(part, -1, half, half);
    turned = cat({a * cosine - b * sine, a * sine + b * cosine}, -1);
  }
  return width == x.size(-1) ? turned : cat({turned, rest}, -1);
}

Tensor rotary(NodeCall& n, const Tensor& given, Tensor cosine, Tensor sine, const Tensor& positions,
              int64_t heads) {
  const bool flat = given.rank() == 3;
  const Tensor x = flat ? by_heads(n, given, heads) : given;
  if (positions.defined()) {
    const Tensor row = reshape(positions, {positions.numel()}).to(int64);
    const auto take = [&](const Tensor& table) {
      return reshape(index_select(table, 0, row), {positions.size(0), -1, table.size(-1)});
    };
    cosine = take(cosine);
    sine = take(sine);
  }
  int64_t width = n.integer("rotary_embedding_dim", 0);
  if (width == 0) width = x.size(-1);
  if (2 * cosine.size(-1) < width) n.fail("the tables of cosines and sines are too narrow");
  const Tensor y = rotated(x, narrow(cosine, -1, 0, width / 2), narrow(sine, -1, 0, width / 2),
                           n.flag("interleaved"), width);
  return flat ? flatten(transpose(y, 1, 2), 2) : y;
}

Tensor rotary_embedding(NodeCall& n) {
  return rotary(n, n.x(0), n.x(1), n.x(2), n.x_or_none(3), n.integer("num_heads", 0));
}

/// Positions come second, and one number counts from there on.
Tensor rotary_embedding_of_microsoft(NodeCall& n) {
  const Tensor& x = n.x(0);
  Tensor positions = n.x(1);
  if (positions.numel() == 1)
    positions =
        expand(view(arange(0, x.size(-2)).to(x.device()), {1, x.size(-2)}) + reshape(positions, {1, 1}),
               {x.size(0), x.size(-2)});
  const int64_t heads = n.integer("num_heads", 0);
  return rotary(n, x, n.x(2), n.x(3), positions, heads == 0 ? x.size(-1) / (2 * n.x(2).size(-1)) : heads);
}

}  // namespace

Operators attention_operators() {
  return {
      {"Attention/7(is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode "
       "right_window_size scale softcap "
       "softmax_precision)",
       {attention}},
      {"Einsum(equation)",
       {[](NodeCall& n) -> NodeResults { return einsum(n.text("equation", ""), n.all()); }}},
      {"RotaryEmbedding/4(interleaved num_heads rotary_embedding_dim)",
       {rotary_embedding, {Slot::operand, Slot::buffer}}},
      {"com.microsoft.RotaryEmbedding/4(interleaved num_heads rotary_embedding_dim)",
       {rotary_embedding_of_microsoft, {Slot::operand, Slot::buffer}}},
  };
}

}  // namespace pleat::onnx::imported
