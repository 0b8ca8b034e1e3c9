// Attention in blocks against products and a softmax of their own, over sizes around those of the blocks.

#include "pleat/ops/attention/attention.h"

#include <cmath>
#include <functional>
#include <limits>

#include "pleat/autograd/backward.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/softmax.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Tensor leaf(const Tensor& x) { return x.detach().set_requires_grad(); }

Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  Tensor scores =
      matmul(q, transpose(k, -2, -1)) * o.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
  if (o.is_causal)
    scores =
        masked_fill(scores, unsqueeze(arange(k.size(-2)), 0) > unsqueeze(arange(q.size(-2)), 1), -infinity);
  if (o.mask.defined() && o.mask.dtype() == boolean) scores = masked_fill(scores, !o.mask, -infinity);
  if (o.mask.defined() && o.mask.dtype() != boolean) scores = scores + o.mask;
  return matmul(softmax(scores, -1), v);
}

/// The output and the gradients of q, k and v.
std::vector<Tensor> all_of(const std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>& f,
                           const std::vector<Tensor>& operands) {
  const Tensor q = leaf(operands[0]), k = leaf(operands[1]), v = leaf(operands[2]);
  const Tensor y = f(q, k, v);
  manual_seed(3);
  std::vector<Tensor> all = grad({y}, {q, k, v}, {randn(y.shape(), {.dtype = y.dtype()})});
  all.push_back(y.detach());
  return all;
}

struct Size {
  int64_t queries, keys, width, value_width;
};

}  // namespace

TEST_CASE("scaled_dot_product_attention: blocks give what the scores as a whole give", "[attention]") {
  manual_seed(1);
  for (const Size& size : std::vector<Size>{{64, 64, 32, 32},
                                            {5, 7, 3, 2},
                                            {1, 130, 8, 24},
                                            {130, 1, 8, 24},
                                            {63, 65, 16, 16},
                                            {65, 63, 40, 17},
                                            {129, 200, 64, 48},
                                            {200, 129, 33, 64}})
    for (const int kind : {0, 1, 2, 3}) {
      CAPTURE(size.queries, size.keys, size.width, size.value_width, kind);
      const auto random = [](Shape shape) { return randn(std::move(shape), {.dtype = float64}); };
      const std::vector<Tensor> operands = {random({2, 2, size.queries, size.width}),
                                            random({2, size.keys, size.width}),
                                            random({2, 1, size.keys, size.value_width})};
      AttentionOptions options;
      options.is_causal = kind == 1;
      if (kind == 2) options.mask = random({size.queries, size.keys}) > -1;
      if (kind == 2) options.mask = options.mask || arange(size.keys) < 1;  // no query without a key
      if (kind == 3) options.mask = random({2, 1, size.keys});
      const auto blocks = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
        return scaled_dot_product_attention(q, k, v, options);
      };
      const auto whole = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
        return composed(q, k, v, options);
      };
      const std::vector<Tensor> wanted = all_of(whole, operands);
      const std::vector<Tensor> got = all_of(blocks, operands);
      std::vector<Tensor> narrow;
      for (const Tensor& x : operands) narrow.push_back(x.to(float32));
      std::vector<Tensor> wide;
      for (const Tensor& x : narrow) wide.push_back(x.to(float64));
      if (kind == 3) options.mask = options.mask.to(float32).to(float64);
      const std::vector<Tensor> wanted_narrow = all_of(whole, wide);
      const std::vector<Tensor> got_narrow = all_of(blocks, narrow);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CAPTURE(i);
        // Of the gradients of a single score nothing is left but rounding.
        if (i < 2 && (size.keys == 1 || (size.queries == 1 && kind == 1))) continue;
        CHECK(relative_error(got[i], wanted[i]) < 1e-14);
        if (kind != 3) CHECK(relative_error(got_narrow[i], wanted_narrow[i]) < 2e-6);
      }
    }
}

TEST_CASE("scaled_dot_product_attention: parts of one tensor are read as they lie", "[attention][cpu]") {
  manual_seed(2);
  const Tensor all = randn({3, 70, 3 * 2 * 16});
  const auto heads = [](const Tensor& x) { return transpose(reshape(x, {3, 70, 2, 16}), 1, 2); };
  const std::vector<Tensor> parts = chunk(all, 3, -1);
  const Tensor y =
      scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), {.is_causal = true});
  CHECK(y.shape() == Shape{3, 2, 70, 16});
  CHECK(transpose(y, 1, 2).is_contiguous());  // as the queries lie
  const auto copied = [&](const Tensor& x) { return heads(x).to(MemoryFormat::contiguous).clone(); };
  const Tensor same =
      scaled_dot_product_attention(copied(parts[0]), copied(parts[1]), copied(parts[2]), {.is_causal = true});
  CHECK(relative_error(y, same) == 0);
}

TEST_CASE("scaled_dot_product_attention: a query without a key gives 0 and takes no gradient",
          "[attention]") {
  manual_seed(4);
  for (const bool adds : {false, true}) {
    CAPTURE(adds);
    const Tensor meets = unsqueeze(arange(70), 1) != 66;
    const Tensor mask = adds ? where(meets, zeros({70, 1}), -infinity) : meets;
    const Tensor q = leaf(randn({70, 8})), k = leaf(randn({90, 8})), v = leaf(randn({90, 8}));
    for (const bool composes : {false, true}) {
      if (composes && !adds) continue;
      const Tensor given = composes ? leaf(mask) : mask;  // whose gradient only the composition has
      const Tensor y = scaled_dot_product_attention(q, k, v, {.mask = given});
      const std::vector<Tensor> gradients = grad({sum(y * y)}, {q, k, v});
      CHECK(relative_error(select(y.detach(), 0, 66), zeros({8})) == 0);
      CHECK(relative_error(select(gradients[0], 0, 66), zeros({8})) == 0);
      for (const Tensor& g : gradients) CHECK(std::isfinite(sum(g).item<double>()));
    }
  }
}

TEST_CASE("scaled_dot_product_attention: large scores, NaN and infinities", "[attention]") {
  manual_seed(5);
  const Tensor k = randn({100, 16}), v = randn({100, 16});
  const Tensor q = randn({3, 16});
  const Tensor large = scaled_dot_product_attention(q * 1e4, k, v);
  CHECK(relative_error(large, composed(q * 1e4, k, v, {})) < 1e-5);
  const Tensor odd = q.clone();
  fill_(select(odd, 0, 1), not_a_number);
  const std::vector<double> y = scaled_dot_product_attention(odd, k, v).to_vector<double>();
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i / 16 == 1));
}

TEST_CASE("scaled_dot_product_attention: nothing to attend to, and nobody to attend", "[attention]") {
  const Tensor q = leaf(ones({2, 3, 4})), k = leaf(ones({2, 0, 4})), v = leaf(ones({2, 0, 5}));
  const Tensor y = scaled_dot_product_attention(q, k, v);
  CHECK(y.shape() == Shape{2, 3, 5});
  CHECK(sum(abs(y)).item<double>() == 0);
  const std::vector<Tensor> gradients = grad({sum(y)}, {q, k, v});
  CHECK(sum(abs(gradients[0])).item<double>() == 0);
  CHECK(gradients[1].shape() == Shape{2, 0, 4});
  const Tensor none = scaled_dot_product_attention(ones({2, 0, 4}), ones({2, 3, 4}), ones({2, 3, 5}));
  CHECK(none.shape() == Shape{2, 0, 5});
  CHECK(scaled_dot_product_attention(ones({0, 3, 4}), ones({0, 2, 4}), ones({0, 2, 5})).shape() ==
        Shape{0, 3, 5});
  // More keys than queries: those that no query takes have a gradient of 0.
  const Tensor q2 = leaf(ones({3, 4})), k2 = leaf(ones({100, 4})), v2 = leaf(ones({100, 4}));
  const Tensor dv = grad({sum(scaled_dot_product_attention(q2, k2, v2, {.is_causal = true}))}, {v2}).front();
  CHECK(sum(abs(narrow(dv, 0, 3, 97))).item<double>() == 0);
  CHECK(sum(dv).item<double>() == Approx(12));
}

TEST_CASE("scaled_dot_product_attention: a mask that was changed is noticed", "[attention][cpu]") {
  const Tensor q = leaf(ones({3, 4})), mask = zeros({3, 3});
  const Tensor y = scaled_dot_product_attention(q, q, q, {.mask = mask});
  fill_(mask, 1);
  CHECK_THROWS_AS(sum(y).backward(), AutogradError);
}
