#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/inference/inference.h"
#include "pleat/models/char_transformer.h"
#include "pleat/models/next_token.h"
#include "pleat/nn/attention.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/transformer.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using pleat::test::relative_error;

namespace {

/// A text in parts of these lengths, each put through `forward`, joined along `dim`.
template <class F>
Tensor in_parts(const Tensor& text, int64_t dim, const std::vector<int64_t>& lengths, const F& forward) {
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (const int64_t length : lengths) {
    parts.push_back(forward(narrow(text, dim, at, length)));
    at += length;
  }
  return cat(parts, dim);
}

const std::vector<std::vector<int64_t>> ways{
    {9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {4, 1, 1, 3}, {1, 8}, {2, 2, 5}};

}  // namespace

TEST_CASE("attention with a cache gives, part by part, what it gives of the whole", "[kv_cache]") {
  manual_seed(2);
  const bool batch_first = GENERATE(true, false);
  const int64_t dim = batch_first ? 1 : 0;
  nn::MultiheadAttention attention{{.embed_dim = 8, .num_heads = 2, .batch_first = batch_first}};
  nn::TransformerEncoder encoder{{.layer = {.d_model = 8,
                                            .nhead = 2,
                                            .dim_feedforward = 16,
                                            .batch_first = batch_first,
                                            .norm_first = GENERATE(true, false)},
                                  .num_layers = 2,
                                  .norm = true}};
  nn::TransformerDecoder decoder{
      {.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 16, .batch_first = batch_first},
       .num_layers = 2}};
  for (nn::Module* module : std::initializer_list<nn::Module*>{&attention, &encoder, &decoder}) {
    module->to(float64);
    module->eval();
  }
  const NoGrad off_the_tape;
  const Tensor x = randn(batch_first ? Shape{3, 9, 8} : Shape{9, 3, 8}, float64);
  const Tensor whole = attention.forward(x, x, x, {.is_causal = true}).output;
  const Tensor memory = randn(x.shape(), float64);
  const Tensor decoded = decoder.forward(x, memory, {.tgt = {.is_causal = true}});
  const Tensor encoded = encoder.forward(x, {.is_causal = true});
  for (const std::vector<int64_t>& way : ways) {
    const auto check = [&](const auto& forward, const Tensor& wanted) {
      nn::KeyValueCache cache;
      const auto run = [&](const Tensor& part) { return cache.run([&] { return forward(part); }); };
      CHECK(relative_error(in_parts(x, dim, way, run), wanted) < 1e-13);
      CHECK(cache.length() == 9);
    };
    check([&](const Tensor& t) { return attention.forward(t, t, t, {.is_causal = true}).output; }, whole);
    check([&](const Tensor& t) { return encoder.forward(t, {.is_causal = true}); }, encoded);
    check([&](const Tensor& t) { return decoder.forward(t, memory, {.tgt = {.is_causal = true}}); }, decoded);
  }
}

TEST_CASE("a copied cache goes on by itself, and one survives an error", "[kv_cache]") {
  nn::MultiheadAttention attention{{.embed_dim = 4, .num_heads = 2, .batch_first = true}};
  attention.to(float64);
  const NoGrad off_the_tape;
  const Tensor start = randn({1, 3, 4}, float64), a = randn({1, 2, 4}, float64),
               b = randn({1, 2, 4}, float64);
  const auto causal = [&](const Tensor& x) { return attention.forward(x, x, x, {.is_causal = true}).output; };
  const auto run = [&](nn::KeyValueCache& cache, const Tensor& x) {
    return cache.run([&] { return causal(x); });
  };
  nn::KeyValueCache one;
  run(one, narrow(start, 1, 0, 2));
  run(one, narrow(start, 1, 2, 1));  // with room behind it
  nn::KeyValueCache other = one;
  const auto first = [](const Tensor& x) { return narrow(x, 1, 0, 1); };
  const auto second = [](const Tensor& x) { return narrow(x, 1, 1, 1); };
  const auto whole = [&](const Tensor& end) { return narrow(causal(cat({start, end}, 1)), 1, 3, 2); };
  const auto failing = [&] {
    causal(second(b));
    throw ValueError("in between");
    return start;
  };
  const Tensor a1 = run(one, first(a)), b1 = run(other, first(b));
  CHECK_THROWS_WITH(one.run(failing), "in between");
  CHECK(relative_error(cat({a1, run(one, second(a))}, 1), whole(a)) < 1e-14);
  CHECK(relative_error(cat({b1, run(other, second(b))}, 1), whole(b)) < 1e-14);
}

TEST_CASE("what does not fit a cache is an error, and leaves it as it was", "[kv_cache]") {
  nn::MultiheadAttention attention{{.embed_dim = 4, .num_heads = 2, .batch_first = true}};
  nn::KeyValueCache cache;
  const auto run = [&](const Tensor& x, const nn::MultiheadAttentionMasks& masks) {
    return cache.run([&] { return attention.forward(x, x, x, masks).output; });
  };
  const nn::MultiheadAttentionMasks causal{.is_causal = true};
  CHECK_THROWS_WITH(run(ones({1, 2, 4}), causal), Contains("open a scope with NoGrad"));
  const NoGrad off_the_tape;
  CHECK_THROWS_WITH(run(ones({1, 2, 4}), {}), Contains("needs one pass of one network, with causal"));
  run(ones({1, 2, 4}), causal);
  CHECK_THROWS_WITH(run(ones({2, 1, 4}), causal), Contains("clear() it for another batch"));
  CHECK_THROWS_AS(run(ones({1, 1, 4}), {.is_causal = true, .need_weights = true}), ValueError);
  CHECK_THROWS_AS(run(ones({1, 1, 4}), {.key_padding_mask = zeros({1, 1}, boolean), .is_causal = true}),
                  ValueError);
  nn::TransformerEncoder encoder{
      {.layer = {.d_model = 4, .nhead = 2, .dim_feedforward = 4, .batch_first = true}, .num_layers = 2}};
  encoder.eval();
  CHECK_THROWS_WITH(cache.run([&] {
    return encoder.forward(ones({1, 1, 4}), causal);
  }),
                    Contains("clear() it for another network"));
  attention.to(float64);
  CHECK_THROWS_WITH(run(ones({1, 1, 4}, float64), causal), Contains("clear() it for another batch, type"));
  CHECK(cache.length() == 2);
  cache.clear();
  CHECK(run(ones({2, 1, 4}, float64), causal).shape() == Shape{2, 1, 4});
  Inference engine(attention, ones({1, 2, 4}, float64));
  CHECK_THROWS_WITH(cache.run([&] {
    return engine(ones({1, 2, 4}, float64));
  }),
                    Contains("a plan knows no KeyValueCache"));
}

TEST_CASE("the char transformer writes with a cache as without, and reads each character once",
          "[kv_cache][models]") {
  manual_seed(3);
  models::CharTransformer net({.characters = 5, .length = 9, .width = 16, .heads = 2, .layers = 2});
  net.to(float64);
  const NoGrad off_the_tape;
  const Tensor text = randint(0, 5, {2, 9});
  const Tensor whole = net(text);
  for (const std::vector<int64_t>& way : ways) {
    nn::KeyValueCache cache;
    const auto run = [&](const Tensor& part) { return cache.run([&] { return net(part); }); };
    CHECK(relative_error(in_parts(text, 1, way, run), whole) < 1e-13);
    CHECK_THROWS_WITH(run(narrow(text, 1, 0, 1)), Contains("at most 0 characters]"));
  }
  // Rows that linear layers multiply for each new character.
  int64_t rows = 0;
  net.apply([&](nn::Module& module) {
    if (module.type_name() == "Linear")
      module.register_forward_hook([&](nn::Module&, const std::vector<Tensor>& in, const Tensor&) {
        rows += in[0].numel() / in[0].size(-1);
        return Tensor();
      });
  });
  nn::KeyValueCache cache;
  std::vector<int64_t> with, without;
  for (int64_t i = 0; i < 9; ++i) {
    rows = 0;
    cache.run([&] { return net(narrow(text, 1, i, 1)); });
    with.push_back(rows);
    rows = 0;
    net(narrow(text, 1, 0, i + 1));
    without.push_back(rows);
  }
  const int64_t linear_layers = 2 * 4 + 1, batch = 2;
  CHECK(with == std::vector<int64_t>(9, linear_layers * batch));
  CHECK(without.back() == 9 * linear_layers * batch);
}

TEST_CASE("next_token is greedy at temperature 0, and draws from the k likeliest and the nucleus",
          "[next_token]") {
  // Probabilities 0.5, 0.3, 0.15, 0.05, not in order.
  const Tensor logits = tile(log(tensor({{0.15, 0.5, 0.05, 0.3}})), {20000, 1});
  const auto shares = [&](const models::NextTokenOptions& options) {
    Generator generator(5);
    const Tensor drawn = models::next_token(logits, options, generator);
    CHECK(drawn.shape() == Shape{20000});
    std::vector<double> all;
    for (int64_t k = 0; k < 4; ++k) all.push_back(mean((drawn == k).to(float64)).item<double>());
    return all;
  };
  const auto check = [&](const models::NextTokenOptions& options, const std::vector<double>& wanted) {
    const std::vector<double> got = shares(options);
    for (std::size_t k = 0; k < 4; ++k) {
      CAPTURE(k, options.top_k, options.top_p, options.temperature);
      CHECK(got[k] == Approx(wanted[k]).margin(wanted[k] == 0 ? 0 : 0.015));
    }
  };
  check({}, {0.15, 0.5, 0.05, 0.3});
  check({.temperature = 0}, {0, 1, 0, 0});
  check({.temperature = 0.5}, {0.0225 / 0.365, 0.25 / 0.365, 0.0025 / 0.365, 0.09 / 0.365});
  check({.top_k = 1}, {0, 1, 0, 0});
  check({.top_k = 2}, {0, 0.625, 0, 0.375});
  check({.top_k = 9}, {0.15, 0.5, 0.05, 0.3});
  check({.top_p = 1e-6}, {0, 1, 0, 0});
  check({.top_p = 0.7}, {0, 0.625, 0, 0.375});
  check({.top_p = 0.9}, {0.15 / 0.95, 0.5 / 0.95, 0, 0.3 / 0.95});
  check({.top_k = 2, .top_p = 0.6}, {0, 1, 0, 0});  // of 0.625 and 0.375
  CHECK_THROWS_AS(models::next_token(ones({3})), ShapeError);
  CHECK_THROWS_AS(models::next_token(tensor({{1, 2}})), DTypeError);
  CHECK_THROWS_AS(models::next_token(logits, {.temperature = -1}), ValueError);
  CHECK_THROWS_AS(models::next_token(logits, {.top_k = -1}), ValueError);
  CHECK_THROWS_AS(models::next_token(logits, {.top_p = 0}), ValueError);
}
