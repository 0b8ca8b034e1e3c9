#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

// Tensors of rank 0 and tensors without elements, and their gradients, as PyTorch 1.13 has them.

using namespace pleat;

namespace {

Tensor indices(std::vector<int64_t> values) { return from_vector(std::move(values)); }
Tensor index_zero() { return full({}, 0, {.dtype = int64}); }
Tensor number(double value) { return full({}, value); }

struct Case {
  std::string name;
  std::function<Tensor(const Tensor&)> function;
  Shape shape;                   ///< of the result
  std::vector<double> elements;  ///< of the result
  double gradient;               ///< of the sum of the result
};

/// Of a tensor of rank 0 that holds 2.5.
std::vector<Case> of_one() {
  const Tensor i0 = index_zero(), i1 = indices({0}), i3 = indices({0, 0, 0}), none = indices({});
  const Tensor three = from_vector<float>({9, 1, 1}), one = from_vector<float>({9});
  using X = const Tensor&;
  return {
      {"topk", [](X x) { return topk(x, 1).values; }, {}, {2.5}, 1},
      {"topk 0", [](X x) { return topk(x, 0).values; }, {}, {2.5}, 1},
      {"topk indices", [](X x) { return topk(x, 1, {.dim = 0}).indices.to(float32) + x * 0; }, {}, {0}, 0},
      {"sort", [](X x) { return sort(x).values; }, {}, {2.5}, 1},
      {"sort along 0", [](X x) { return sort(x, {.dim = 0}).values; }, {}, {2.5}, 1},
      {"cumsum", [](X x) { return cumsum(x, 0); }, {}, {2.5}, 1},
      {"cumprod", [](X x) { return cumprod(x, -1); }, {}, {2.5}, 1},
      {"softmax", [](X x) { return softmax(x, 0); }, {}, {1}, 0},
      {"log_softmax", [](X x) { return log_softmax(x, -1); }, {}, {0}, 0},
      {"gather", [=](X x) { return gather(x, 0, i0); }, {}, {2.5}, 1},
      {"gather 1", [=](X x) { return gather(x, 0, i1); }, {1}, {2.5}, 1},
      {"gather 3", [=](X x) { return gather(x, -1, i3); }, {3}, {2.5, 2.5, 2.5}, 3},
      {"gather none", [=](X x) { return gather(x, 0, none); }, {0}, {}, 0},
      {"scatter", [=](X x) { return scatter(x, 0, i0, number(9)); }, {}, {9}, 0},
      {"scatter 3", [=](X x) { return scatter(x, 0, i3, three); }, {}, {1}, 0},
      {"scatter a number", [=](X x) { return scatter(x, 0, i3, 9); }, {}, {9}, 0},
      {"scatter_add", [=](X x) { return scatter_add(x, 0, i0, number(9)); }, {}, {11.5}, 1},
      {"scatter_add 3", [=](X x) { return scatter_add(x, 0, i3, three); }, {}, {13.5}, 1},
      {"index_select", [=](X x) { return index_select(x, 0, i0); }, {}, {2.5}, 1},
      {"index_select 1", [=](X x) { return index_select(x, 0, i1); }, {}, {2.5}, 1},
      {"index_add", [=](X x) { return index_add(x, 0, i0, number(9)); }, {}, {11.5}, 1},
      {"index_add 3", [=](X x) { return index_add(x, 0, i3, three); }, {}, {13.5}, 1},
      {"index_copy", [=](X x) { return index_copy(x, 0, i0, number(9)); }, {}, {9}, 0},
      {"index_copy 1", [=](X x) { return index_copy(x, 0, i1, one); }, {}, {9}, 0},
      {"index_fill", [=](X x) { return index_fill(x, 0, i1, 9); }, {}, {9}, 0},
      {"flip of none", [](X x) { return flip(x, std::vector<int64_t>{}); }, {}, {2.5}, 1},
      {"flip", [](X x) { return flip(x, 0); }, {}, {2.5}, 1},
      {"roll", [](X x) { return roll(x, 1); }, {}, {2.5}, 1},
      {"masked_select", [](X x) { return masked_select(x, x > 0); }, {1}, {2.5}, 1},
      {"max", [](X x) { return max(x, 0); }, {}, {2.5}, 1},
      {"max with indices", [](X x) { return max_with_indices(x, 0).values; }, {}, {2.5}, 1},
      {"logsumexp", [](X x) { return logsumexp(x, 0); }, {}, {2.5}, 1},
      {"norm", [](X x) { return norm(x, 0); }, {}, {2.5}, 1},
      {"sum", [](X x) { return sum(x, -1); }, {}, {2.5}, 1},
      {"prod", [](X x) { return prod(x, 0); }, {}, {2.5}, 1},
      {"var", [](X x) { return var(x, 0, {.correction = 0}); }, {}, {0}, 0},
      {"transpose", [](X x) { return transpose(x, 0, -1); }, {}, {2.5}, 1},
      {"squeeze", [](X x) { return squeeze(x, 0); }, {}, {2.5}, 1},
      {"flatten", [](X x) { return flatten(x); }, {1}, {2.5}, 1},
      {"unsqueeze", [](X x) { return unsqueeze(x, 0); }, {1}, {2.5}, 1},
      {"expand", [](X x) { return expand(x, {3}); }, {3}, {2.5, 2.5, 2.5}, 3},
      {"tile", [](X x) { return tile(x, {3}); }, {3}, {2.5, 2.5, 2.5}, 3},
      {"repeat", [](X x) { return repeat(x, {}); }, {}, {2.5}, 1},
      {"pad", [](X x) { return pad(x, {}); }, {}, {2.5}, 1},
      {"stack",
       [](X x) {
         return stack({x, x});
       },
       {2},
       {2.5, 2.5},
       2},
      {"masked_fill", [](X x) { return masked_fill(x, x > 0, 1); }, {}, {1}, 0},
      {"index_put of a mask", [](X x) { return index_put(x, {x > 0}, 7); }, {}, {7}, 0},
      {"unfold_dimension", [](X x) { return unfold_dimension(x, 0, 1, 1); }, {1}, {2.5}, 1},
      {"unfold_dimension of none", [](X x) { return unfold_dimension(x, -1, 0, 2); }, {0}, {}, 0},
      {"pairwise_distance", [](X x) { return pairwise_distance(x, number(1), {.eps = 0}); }, {}, {1.5}, 1},
      {"multi_margin_loss", [=](X x) { return multi_margin_loss(x, i0) + x * 0; }, {}, {0}, 0},
      {"multi_margin_loss of [1]",
       [=](X x) { return multi_margin_loss(x, i1, {.reduction = Reduction::none}) + x * 0; },
       {1},
       {0},
       0},
      {"triplet_margin_loss",
       [](X x) { return triplet_margin_loss(x, number(1), number(2), {.eps = 0}); },
       {},
       {2},
       0},
      {"gaussian_nll_loss",
       [](X x) { return gaussian_nll_loss(x, full({3}, 1), number(1)); },
       {},
       {1.125},
       1.5},
      {"gaussian_nll_loss of [1]",
       [](X x) { return gaussian_nll_loss(x, number(1), ones({1}), {.reduction = Reduction::none}); },
       {1},
       {1.125},
       1.5},
  };
}

/// Of a tensor [0, 3].
std::vector<Case> of_none() {
  const Tensor none = indices({}), i3 = indices({2, 0, 0});
  const auto empty_index = [](Shape shape) { return zeros(std::move(shape), {.dtype = int64}); };
  using X = const Tensor&;
  const double inf = std::numeric_limits<double>::infinity();
  return {
      {"topk along 0", [](X x) { return topk(x, 0, {.dim = 0}).values; }, {0, 3}, {}, 0},
      {"topk", [](X x) { return topk(x, 2).values; }, {0, 2}, {}, 0},
      {"sort along 0", [](X x) { return sort(x, {.dim = 0}).values; }, {0, 3}, {}, 0},
      {"sort", [](X x) { return sort(x).values; }, {0, 3}, {}, 0},
      {"cumsum along 0", [](X x) { return cumsum(x, 0); }, {0, 3}, {}, 0},
      {"cumsum", [](X x) { return cumsum(x, 1); }, {0, 3}, {}, 0},
      {"cumprod along 0", [](X x) { return cumprod(x, 0); }, {0, 3}, {}, 0},
      {"cumprod", [](X x) { return cumprod(x, 1); }, {0, 3}, {}, 0},
      {"softmax along 0", [](X x) { return softmax(x, 0); }, {0, 3}, {}, 0},
      {"softmax", [](X x) { return softmax(x, 1); }, {0, 3}, {}, 0},
      {"log_softmax", [](X x) { return log_softmax(x, 1); }, {0, 3}, {}, 0},
      {"gather",
       [=](X x) {
         return gather(x, 0, empty_index({0, 3}));
       },
       {0, 3},
       {},
       0},
      {"gather along 1",
       [=](X x) {
         return gather(x, 1, empty_index({0, 2}));
       },
       {0, 2},
       {},
       0},
      {"gather [2, 0]",
       [=](X x) {
         return gather(x, 0, empty_index({2, 0}));
       },
       {2, 0},
       {},
       0},
      {"scatter",
       [=](X x) {
         return scatter(x, 0, empty_index({0, 3}), zeros({0, 3}));
       },
       {0, 3},
       {},
       0},
      {"scatter a number",
       [=](X x) {
         return scatter(x, 1, empty_index({0, 3}), 9);
       },
       {0, 3},
       {},
       0},
      {"scatter_add",
       [=](X x) {
         return scatter_add(x, 0, empty_index({0, 3}), zeros({0, 3}));
       },
       {0, 3},
       {},
       0},
      {"index_select", [=](X x) { return index_select(x, 0, none); }, {0, 3}, {}, 0},
      {"index_select along 1", [=](X x) { return index_select(x, 1, i3); }, {0, 3}, {}, 0},
      {"index_add",
       [=](X x) {
         return index_add(x, 0, none, zeros({0, 3}));
       },
       {0, 3},
       {},
       0},
      {"index_add along 1",
       [=](X x) {
         return index_add(x, 1, i3, zeros({0, 3}));
       },
       {0, 3},
       {},
       0},
      {"index_copy",
       [=](X x) {
         return index_copy(x, 0, none, zeros({0, 3}));
       },
       {0, 3},
       {},
       0},
      {"index_copy along 1",
       [=](X x) {
         return index_copy(x, 1, i3, zeros({0, 3}));
       },
       {0, 3},
       {},
       0},
      {"index_fill", [=](X x) { return index_fill(x, 0, none, 1); }, {0, 3}, {}, 0},
      {"index_put",
       [=](X x) {
         return index_put(x, {none}, zeros({0, 3}));
       },
       {0, 3},
       {},
       0},
      {"index_put, added",
       [=](X x) {
         return index_put(x, {none}, zeros({0, 3}), true);
       },
       {0, 3},
       {},
       0},
      {"index_put of a mask", [=](X x) { return index_put(x, {x > 0}, 1); }, {0, 3}, {}, 0},
      {"flip along 0", [](X x) { return flip(x, 0); }, {0, 3}, {}, 0},
      {"flip along 1", [](X x) { return flip(x, 1); }, {0, 3}, {}, 0},
      {"flip",
       [](X x) {
         return flip(x, {1, 0});
       },
       {0, 3},
       {},
       0},
      {"roll", [](X x) { return roll(x, 2); }, {0, 3}, {}, 0},
      {"roll along 0", [](X x) { return roll(x, 2, 0); }, {0, 3}, {}, 0},
      {"roll along 1", [](X x) { return roll(x, 2, 1); }, {0, 3}, {}, 0},
      {"masked_select", [](X x) { return masked_select(x, x > 0); }, {0}, {}, 0},
      {"max", [](X x) { return max(x, 1); }, {0}, {}, 0},
      {"max with indices", [](X x) { return max_with_indices(x, 1).values; }, {0}, {}, 0},
      {"logsumexp", [](X x) { return logsumexp(x, 1); }, {0}, {}, 0},
      {"logsumexp along 0", [=](X x) { return logsumexp(x, 0); }, {3}, {-inf, -inf, -inf}, 0},
      {"norm along 0", [](X x) { return norm(x, 0); }, {3}, {0, 0, 0}, 0},
      {"stddev", [](X x) { return stddev(x, 1); }, {0}, {}, 0},
      {"prod", [](X x) { return prod(x); }, {}, {1}, 0},
      {"prod along 0", [](X x) { return prod(x, 0); }, {3}, {1, 1, 1}, 0},
      {"repeat",
       [](X x) {
         return repeat(x, {2, 2});
       },
       {0, 6},
       {},
       0},
      {"repeat_interleave", [](X x) { return repeat_interleave(x, 2, 1); }, {0, 6}, {}, 0},
      {"split", [](X x) { return split(x, 1, 0).at(0); }, {0, 3}, {}, 0},
      {"cat",
       [](X x) {
         return cat({x, x});
       },
       {0, 3},
       {},
       0},
      {"cat of [0] and others",
       [=](X x) {
         return cat({none, x, zeros({2, 3}), none}, -2);
       },
       {2, 3},
       std::vector<double>(6, 0),
       0},
      {"pad",
       [](X x) {
         return pad(x, {1, 1});
       },
       {0, 5},
       {},
       0},
      {"pad rows",
       [](X x) {
         return pad(x, {0, 0, 1, 1});
       },
       {2, 3},
       {0, 0, 0, 0, 0, 0},
       0},
      {"pad, reflected",
       [](X x) {
         return pad(x, {1, 2}, {.mode = PadMode::reflect});
       },
       {0, 6},
       {},
       0},
      {"pad by more than could be listed",
       [](X x) {
         return pad(x, {int64_t{1} << 60, 0}, {.mode = PadMode::replicate});
       },
       {0, 3 + (int64_t{1} << 60)},
       {},
       0},
      {"unfold_dimension", [](X x) { return unfold_dimension(x, 1, 2, 1); }, {0, 2, 2}, {}, 0},
      {"unfold_dimension along 0", [](X x) { return unfold_dimension(x, 0, 0, 1); }, {1, 3, 0}, {}, 0},
      {"diagonal", [](X x) { return diagonal(x); }, {0}, {}, 0},
  };
}

void check_cases(const std::vector<Case>& cases, const Tensor& value) {
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Tensor x = value.clone().set_requires_grad();
    const Tensor y = c.function(x);
    CHECK(y.shape() == c.shape);
    if (y.shape() != c.shape) continue;
    CHECK(y.to_vector<double>() == c.elements);
    REQUIRE(y.requires_grad());
    // Twice, the second time through a graph of gradients.
    const Tensor dx = grad({sum(y)}, {x}, {}, {.create_graph = true})[0];
    CHECK(dx.shape() == x.shape());
    if (x.rank() == 0) CHECK(dx.item() == c.gradient);
    if (dx.requires_grad()) CHECK_NOTHROW(sum(dx).backward());
  }
}

}  // namespace

TEST_CASE("tensors of rank 0 are taken as one element along a dimension", "[rank_zero]") {
  check_cases(of_one(), number(2.5));
  const Tensor x = number(2.5);
  CHECK(argsort(x).shape() == Shape{});
  CHECK(argmax(x, 0).item<int64_t>() == 0);
  const Tensor cosine = cosine_similarity(x, number(-3), {.dim = 0});
  CHECK(cosine.shape() == Shape{});
  CHECK(cosine.item() == -1);
  CHECK_THROWS_AS(topk(x, 2), IndexError);
  CHECK_THROWS_AS(topk(x, 1, {.dim = 1}), IndexError);
  CHECK_THROWS_AS(sort(x, {.dim = 1}), IndexError);
  CHECK_THROWS_AS(softmax(x, 1), IndexError);
  CHECK_THROWS_AS(gather(x, 1, index_zero()), IndexError);
  CHECK_THROWS_AS(gather(x, 0, indices({1})), IndexError);
  CHECK_THROWS_AS(index_select(x, 0, indices({0, 0, 0})), ShapeError);
  CHECK_THROWS_AS(index_select(x, 0, indices({})), ShapeError);
  CHECK_THROWS_AS(flip(x, 1), IndexError);
  CHECK_THROWS_AS(roll(x, 1, 0), ShapeError);
  CHECK_THROWS_AS(squeeze(x, 1), IndexError);
  CHECK_THROWS_AS(flatten(x, 1), IndexError);
  CHECK_THROWS_AS(unfold_dimension(x, 0, 2, 1), ShapeError);
}

TEST_CASE("an error names the function that was called", "[rank_zero]") {
  const Tensor x = number(2.5), rows = ones({2, 3}), two = ones({2});
  using Call = std::function<void()>;
  const std::map<std::string, Call> calls{
      {"cosine_similarity", [&] { cosine_similarity(x, x); }},
      {"cross", [&] { cross(x, x); }},
      {"glu", [&] { glu(x, 0); }},
      {"count_nonzero", [&] { count_nonzero(x, 1); }},
      {"argsort", [&] { argsort(x, {.dim = 1}); }},
      {"softmin", [&] { softmin(x, 1); }},
      {"normalize", [&] { normalize(x); }},
      {"stack",
       [&] {
         stack({x, x}, 2);
       }},
      {"narrow", [&] { narrow(two, 1, 0, 1); }},
      {"var", [&] { var(x, 1); }},
      {"stddev", [&] { stddev(x, 1); }},
      {"addcmul", [&] { addcmul(rows, two, two); }},
      {"addcdiv", [&] { addcdiv(rows, rows, two); }},
      {"multi_margin_loss",
       [&] {
         multi_margin_loss(x, indices({0, 0}));
       }},
      {"triplet_margin_loss", [&] { triplet_margin_loss(rows, rows, two); }},
      {"unfold_dimension", [&] { unfold_dimension(x, 0, 2, 1); }},
  };
  for (const auto& [name, call] : calls) CHECK_THROWS_WITH(call(), Catch::Matchers::StartsWith(name + ": "));
}

TEST_CASE("an index of rank 0 is one index", "[rank_zero]") {
  const Tensor x = tensor({{1., 2.}, {3., 4.}});
  const Tensor last = full({}, 1, {.dtype = int64});
  CHECK(index_select(x, 0, last).to_vector() == std::vector<float>{3, 4});
  CHECK(index_select(x, 0, last).shape() == Shape{1, 2});
  CHECK(gather(select(x, 0, 1), 0, last).shape() == Shape{});
  CHECK(index_fill(x, 1, last, 0).to_vector() == std::vector<float>{1, 0, 3, 0});
}

TEST_CASE("tensors without elements go through, with gradients", "[rank_zero]") {
  check_cases(of_none(), zeros({0, 3}));
  const Tensor x = zeros({0, 3});
  CHECK_THROWS_AS(topk(x, 1, {.dim = 0}), IndexError);
  CHECK_THROWS_AS(max(x), ShapeError);
  CHECK_THROWS_AS(cat({zeros({1}), x}), ShapeError);
  CHECK_THROWS_AS(cat({indices({}), x}, 2), IndexError);
  const Tensor empty = zeros({0}).set_requires_grad();
  sum(cat({empty, ones({2, 3})}, 1)).backward();
  CHECK(empty.grad().shape() == Shape{0});
  CHECK_THROWS_AS(max_with_indices(x, 0), ShapeError);
  CHECK_THROWS_AS(index_select(x, 0, indices({0})), IndexError);
  CHECK_THROWS_AS(pad(x, {1, 1, 1, 1}, {.mode = PadMode::replicate}), ShapeError);
}
