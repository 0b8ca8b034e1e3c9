#include "pleat/ops/matmul/matmul_kernels.h"

#include <limits>
#include <map>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/matmul/matmul_sum_to.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/view.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::relative_error;

namespace {

Tensor random(const Shape& shape, DType dtype) {
  if (is_floating(dtype)) return ops::cast(randn(shape, {.dtype = float64}), dtype);
  return ops::cast(randint(-9, 10, shape), dtype);
}

/// [..., m, k] x [..., k, n] in float64 by a plain loop over broadcast batches.
std::vector<double> plain_product(const Tensor& a, const Tensor& b) {
  Shape batch = broadcast(Shape(a.shape().begin(), a.shape().end() - 2),
                          Shape(b.shape().begin(), b.shape().end() - 2), "test");
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  Shape shape_a = batch, shape_b = batch;
  shape_a.insert(shape_a.end(), {m, k});
  shape_b.insert(shape_b.end(), {k, n});
  const auto left = ops::expand(a, shape_a).to_vector<double>();
  const auto right = ops::expand(b, shape_b).to_vector<double>();
  std::vector<double> result;
  for (int64_t i = 0; i < count(batch); ++i)
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += left[static_cast<std::size_t>((i * m + r) * k + l)] *
                 right[static_cast<std::size_t>((i * k + l) * n + c)];
        result.push_back(sum);
      }
  return result;
}

/// Relative error allowed: sums in the type, or in float32 with one rounding of operands and result for half
/// types.
double tolerance(DType dtype) {
  switch (dtype) {
    case float64:
      return 1e-13;
    case float32:
      return 1e-6;
    case float16:
      return 1e-3;
    case bfloat16:
      return 8e-3;
    default:
      return 0;
  }
}

/// A matrix or batch of the shape in other layouts: transposed, with gaps, neither stride 1, overlapping
/// rows.
std::vector<Tensor> layouts(const Shape& shape, DType dtype) {
  Shape swapped = shape;
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  Shape wide = shape;
  wide.back() *= 2;
  Shape gaps = shape;
  gaps.back() += 3;
  Shape single = shape;
  single[single.size() - 2] = 1;
  return {random(shape, dtype), ops::transpose(random(swapped, dtype), -1, -2),
          ops::slice(random(wide, dtype), -1, 0, wide.back(), 2),
          ops::narrow(random(gaps, dtype), -1, 1, shape.back()), ops::expand(random(single, dtype), shape)};
}

}  // namespace

TEST_CASE("matmul reads operands in any layout", "[matmul]") {
  for (const DType dtype : {float64, float32, float16, bfloat16, int64, int32})
    for (const Tensor& a : layouts({2, 7, 5}, dtype))
      for (const Tensor& b : layouts({5, 6}, dtype)) {
        CAPTURE(a.describe(), b.describe());
        const Tensor y = ops::matmul(a, b);
        CHECK(y.dtype() == dtype);
        CHECK(y.shape() == Shape{2, 7, 6});
        CHECK(y.is_contiguous());
        CHECK(relative_error(y, plain_product(a, b)) <= tolerance(dtype));
        const Tensor one = ops::select(a, 0, 1);
        CHECK(relative_error(ops::matmul(one, b), plain_product(one, b)) <= tolerance(dtype));
      }
}

TEST_CASE("matmul broadcasts batches", "[matmul]") {
  const auto check = [](const Shape& a, const Shape& b, const Shape& expected) {
    CAPTURE(to_string(a), to_string(b));
    const Tensor x = random(a, float64);
    const Tensor y = random(b, float64);
    const Tensor product = ops::matmul(x, y);
    CHECK(product.shape() == expected);
    CHECK(relative_error(product, plain_product(x, y)) <= 1e-13);
  };
  check({3, 2, 4}, {3, 4, 5}, {3, 2, 5});
  check({3, 1, 2, 4}, {6, 4, 5}, {3, 6, 2, 5});
  check({2, 4}, {3, 4, 5}, {3, 2, 5});
  check({1, 2, 4}, {1, 1, 4, 5}, {1, 1, 2, 5});
  check({3, 2, 2, 4}, {1, 4, 5}, {3, 2, 2, 5});
  check({0, 2, 4}, {4, 5}, {0, 2, 5});
  check({3, 0, 4}, {3, 4, 5}, {3, 0, 5});
  check({3, 2, 0}, {3, 0, 5}, {3, 2, 5});
  // Nothing may have any strides, those of an expanded tensor, too.
  const Tensor nothing = ops::expand(zeros({1, 1}), {2, 0});
  CHECK(ops::matmul(nothing, ops::transpose(nothing, 0, 1)).to_vector() == std::vector<float>(4));
  const Tensor permuted = ops::permute(random({2, 4, 3}, float64), {1, 2, 0});
  const Tensor y = random({2, 5}, float64);
  CHECK(relative_error(ops::matmul(permuted, y), plain_product(permuted, y)) <= 1e-13);
}

namespace {

/// matmul(a, b) summed to `shape`, in float64.
std::vector<double> plain_sum(const Tensor& a, const Tensor& b, const Shape& shape) {
  const Tensor product = ops::matmul(a.to(float64), b.to(float64));
  const auto added = product.shape().size() - shape.size();
  Dims dims;
  for (std::size_t d = 0; d < product.shape().size(); ++d)
    if (d < added || shape[d - added] != product.shape()[d]) dims.push_back(static_cast<int64_t>(d));
  return (dims.empty() ? product : sum(product, dims, true)).to_vector<double>();
}

}  // namespace

TEST_CASE("matmul_sum_to adds up the products of a batch", "[matmul]") {
  manual_seed(1);  // of numbers that cancel out the error may be any
  const auto check = [](const Shape& a, const Shape& b, const Shape& to) {
    CAPTURE(to_string(a), to_string(b), to_string(to));
    for (const DType dtype : {float64, float32, float16, bfloat16, int64, int32})
      for (const Tensor& x : layouts(a, dtype))
        for (const Tensor& y : layouts(b, dtype)) {
          CAPTURE(x.describe(), y.describe());
          const Tensor sum = ops::matmul_sum_to(x, y, to);
          CHECK(sum.dtype() == dtype);
          CHECK(sum.shape() == to);
          CHECK(relative_error(sum, plain_sum(x, y, to)) <= 2 * tolerance(dtype));
        }
  };
  check({3, 2, 4}, {3, 4, 5}, {2, 5});
  check({3, 2, 4}, {3, 4, 5}, {1, 2, 5});
  check({3, 2, 4}, {3, 4, 5}, {3, 2, 5});
  check({6, 2, 2, 4}, {6, 2, 4, 3}, {2, 2, 3});
  check({2, 6, 2, 4}, {2, 6, 4, 3}, {2, 1, 2, 3});
  check({2, 3, 2, 2, 4}, {2, 3, 2, 4, 3}, {3, 1, 2, 3});
  check({2, 3, 2, 4}, {2, 3, 4, 3}, {2, 3});
  check({4, 3, 1}, {4, 1, 5}, {3, 5});  // columns and rows of one element
  check({4, 1, 1}, {4, 1, 1}, {1, 1});
  check({5, 1, 3}, {5, 3, 1}, {1, 1});
  check({3, 2, 4}, {4, 5}, {2, 5});  // what one operand alone has
  check({1, 2, 4}, {3, 4, 5}, {2, 5});
  check({2, 1, 2, 4}, {3, 4, 5}, {2, 1, 2, 5});
}

TEST_CASE("matmul_sum_to of batches whose matrices lie unevenly", "[matmul]") {
  for (const DType dtype : {float32, int64}) {
    const Tensor a = ops::permute(random({3, 2, 4, 3, 5}, dtype), {1, 0, 2, 3, 4});
    const Tensor b = ops::narrow(random({2, 3, 6, 5, 4}, dtype), 2, 1, 4);
    for (const Shape& to : {Shape{3, 4}, Shape{4, 3, 4}, Shape{3, 1, 3, 4}, Shape{2, 3, 1, 3, 4}})
      CHECK(relative_error(ops::matmul_sum_to(a, b, to), plain_sum(a, b, to)) <= 2 * tolerance(dtype));
  }
}

TEST_CASE("matmul_sum_to of nothing is zero", "[matmul]") {
  CHECK(ops::matmul_sum_to(zeros({0, 2, 3}), zeros({0, 3, 2}), {2, 2}).to_vector() == std::vector<float>(4));
  CHECK(ops::matmul_sum_to(zeros({4, 2, 0}), zeros({4, 0, 2}), {2, 2}).to_vector() == std::vector<float>(4));
  CHECK(ops::matmul_sum_to(zeros({4, 0, 3}), zeros({4, 3, 2}), {0, 2}).shape() == Shape{0, 2});
  CHECK_THROWS_WITH(ops::matmul_sum_to(ones({3, 2, 2}), ones({2, 2}), {2, 2, 2}),
                    Contains("matmul_sum_to: shapes [2, 2, 2] and [3, 2, 2] do not broadcast"));
  CHECK_THROWS_WITH(ops::matmul_sum_to(ones({2, 2}), ones({2, 2}), {3, 2, 2}),
                    "matmul_sum_to: [2, 2] cannot come from [3, 2, 2] by broadcasting");
  CHECK_THROWS_WITH(ops::matmul_sum_to(ones({2}), ones({2, 2}), {2, 2}), Contains("got [2] and [2, 2]"));
}

TEST_CASE("matmul_sum_to gives the same bits for any number of threads", "[matmul]") {
  const int threads = num_threads();
  // Many small terms, few large ones, a large and a small result, several sums.
  const std::vector<std::pair<Shape, Shape>> factors = {{{700, 33, 16}, {700, 16, 50}},
                                                        {{3, 20, 9000}, {3, 9000, 30}},
                                                        {{40, 300, 20}, {40, 20, 200}},
                                                        {{90, 9, 30, 20}, {90, 9, 20, 30}},
                                                        {{9, 90, 30, 20}, {9, 90, 20, 30}}};
  for (const auto& [left, right] : factors) {
    const Tensor a = random(left, float32);
    const Tensor b = random(right, float32);
    Shape to(a.shape().begin() + 1, a.shape().end() - 1);
    to.push_back(b.size(-1));
    CAPTURE(to_string(left));
    std::vector<std::vector<float>> results;
    for (const int number : {1, 2, 3, 7}) {
      set_num_threads(number);
      results.push_back(ops::matmul_sum_to(a, b, to).to_vector());
    }
    set_num_threads(threads);
    for (const auto& result : results) CHECK((result == results[0]));
    CHECK(relative_error(ops::matmul_sum_to(a, b, to), plain_sum(a, b, to)) <= 3e-6);
  }
}

TEST_CASE("matmul takes vectors as rows and columns", "[matmul]") {
  const Tensor v = tensor({1, 2, 3});
  const Tensor m = tensor({{1, 0, 2}, {0, 1, 1}, {5, 5, 5}});
  const Tensor dot = ops::matmul(v, v);
  CHECK(dot.shape().empty());
  CHECK(dot.item<int>() == 14);
  CHECK(ops::matmul(m, v).to_vector<int>() == std::vector<int>{7, 5, 30});
  CHECK(ops::matmul(v, m).to_vector<int>() == std::vector<int>{16, 17, 19});
  CHECK(ops::matmul(ops::expand(m, {4, 2, 3, 3}), v).shape() == Shape{4, 2, 3});
  CHECK(ops::matmul(v, ops::expand(m, {4, 2, 3, 3})).shape() == Shape{4, 2, 3});
  CHECK(ops::matmul(zeros({0}), zeros({0})).item() == 0);
}

TEST_CASE("matmul keeps its operands' type and wraps integers", "[matmul]") {
  const Tensor bytes = full({1, 2}, 200, {.dtype = uint8});
  CHECK(ops::matmul(bytes, ops::transpose(bytes, 0, 1)).item<int>() == (2 * 200 * 200) % 256);
  CHECK_THROWS_AS(ops::matmul(ones({2, 2}, {.dtype = boolean}), ones({2, 2}, {.dtype = boolean})),
                  DTypeError);
}

TEST_CASE("matmul gives the same bits for any number of threads", "[matmul]") {
  const int threads = num_threads();
  const Tensor a = random({5, 150, 300}, float32);
  const Tensor b = random({5, 300, 200}, float32);
  const Tensor one = random({300, 200}, float32);
  std::vector<std::vector<float>> results;
  for (const int number : {1, 2, 3, 7}) {
    set_num_threads(number);
    auto result = ops::matmul(a, b).to_vector();
    const auto folded = ops::matmul(a, one).to_vector();
    result.insert(result.end(), folded.begin(), folded.end());
    results.push_back(std::move(result));
  }
  set_num_threads(threads);
  for (const auto& result : results) CHECK((result == results[0]));
}

TEST_CASE("matmul names sizes that do not fit", "[matmul]") {
  CHECK_THROWS_WITH(
      ops::matmul(ones({2, 3}), ones({4, 5})),
      Contains(
          "matmul: the last size of the left and the last but one of the right must be equal, got [2, 3] "
          "and [4, 5]: 3 and 4"));
  CHECK_THROWS_WITH(ops::matmul(ones({2, 3}), ones({2})),
                    Contains("and the size of the right must be equal"));
  CHECK_THROWS_WITH(ops::matmul(ones({}), ones({2})), Contains("numbers multiply with *"));
  CHECK_THROWS_WITH(ops::matmul(ones({2, 2, 3}), ones({3, 3, 2})),
                    Contains("matmul: shapes [2] and [3] do not broadcast"));
}

TEST_CASE("addmm scales and adds", "[matmul]") {
  const Tensor a = tensor({{1., 2.}, {3., 4.}});
  const Tensor b = tensor({{1., 0.}, {2., 1.}});
  CHECK(ops::addmm(tensor({10., 20.}), a, b).to_vector() == std::vector<float>{15, 22, 21, 24});
  CHECK(ops::addmm(tensor({10., 20.}), a, b, {.beta = 0.5, .alpha = 2}).to_vector() ==
        std::vector<float>{15, 14, 27, 18});
  const Tensor nan = full({1}, std::numeric_limits<double>::quiet_NaN());
  CHECK(ops::addmm(nan, a, b, {.beta = 0}).to_vector() == std::vector<float>{5, 2, 11, 4});
  const Tensor whole = tensor({{1, 2}, {3, 4}});
  CHECK(ops::addmm(whole, whole, whole, {.beta = 2, .alpha = -1}).to_vector<int>() ==
        std::vector<int>{-5, -6, -9, -14});
  CHECK(ops::addmm(a.to(bfloat16), a.to(bfloat16), b.to(bfloat16)).dtype() == bfloat16);
  CHECK_THROWS_WITH(ops::addmm(whole, whole, whole, {.alpha = 0.5}),
                    "addmm: beta and alpha must be integers for tensors of int64");
  CHECK_THROWS_WITH(ops::addmm(ones({3}), a, b), Contains("addmm: shapes [3] and [2, 2] do not broadcast"));
  CHECK_THROWS_WITH(ops::addmm(ones({1, 2, 2}), a, b),
                    "addmm: the input [1, 2, 2] does not broadcast to the product's [2, 2]");
  CHECK_THROWS_AS(ops::addmm(ones({2}), ones({2}), b), ShapeError);
  CHECK_THROWS_AS(ops::addmm(ones({2}), ones({2, 3}), b), ShapeError);
}

TEST_CASE("linear works along the last dimension", "[matmul]") {
  for (const DType dtype : {float64, float32, bfloat16}) {
    const Tensor weight = random({4, 3}, dtype);
    const Tensor bias = random({4}, dtype);
    for (const Tensor& x : layouts({2, 5, 3}, dtype)) {
      const Tensor y = ops::linear(x, weight, bias);
      CHECK(y.shape() == Shape{2, 5, 4});
      CHECK(y.dtype() == dtype);
      auto expected = plain_product(x, ops::transpose(weight, 0, 1));
      const auto added = bias.to_vector<double>();
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += added[i % 4];
      CHECK(relative_error(y, expected) <= tolerance(dtype));
    }
  }
  const Tensor weight = tensor({{1., 2.}});
  CHECK(ops::linear(tensor({3., 4.}), weight).to_vector() == std::vector<float>{11});
  CHECK(ops::linear(tensor({3., 4.}), weight, tensor({1.})).shape() == Shape{1});
  CHECK(ops::linear(zeros({0, 2}), weight).shape() == Shape{0, 1});
  CHECK(ops::linear(zeros({3, 0}), zeros({2, 0}), ones({2})).to_vector() ==
        std::vector<float>{1, 1, 1, 1, 1, 1});
  CHECK_THROWS_WITH(
      ops::linear(ones({2, 3}), weight),
      "linear: the last size of the input must be 2, the second of the weight [1, 2], got an input [2, 3]");
  CHECK_THROWS_WITH(ops::linear(ones({2}), weight, ones({2})), Contains("the bias must be [1]"));
  CHECK_THROWS_AS(ops::linear(ones({2}), ones({2})), ShapeError);
  CHECK_THROWS_AS(ops::linear(ones({}), weight), ShapeError);
}

TEST_CASE("einsum agrees with a plain sum over all indices", "[einsum]") {
  const std::map<char, int64_t> sizes = {{'i', 2}, {'j', 3}, {'k', 4}, {'b', 2}, {'l', 3}, {'A', 2}};
  const auto plain = [&](const std::vector<std::string>& terms, const std::string& output,
                         const std::vector<Tensor>& operands) {
    std::string letters = output;
    for (const auto& term : terms)
      for (const char c : term)
        if (letters.find(c) == std::string::npos) letters += c;
    std::map<char, int64_t> at;
    const auto number = [&](const std::string& term) {
      int64_t n = 0;
      for (const char c : term) n = n * sizes.at(c) + at[c];
      return static_cast<std::size_t>(n);
    };
    int64_t total = 1, outputs = 1;
    for (const char c : letters) total *= sizes.at(c);
    for (const char c : output) outputs *= sizes.at(c);
    std::vector<std::vector<double>> values;
    for (const Tensor& operand : operands) values.push_back(operand.to_vector<double>());
    std::vector<double> result(static_cast<std::size_t>(outputs));
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i;
      for (const char c : letters) {
        at[c] = rest % sizes.at(c);
        rest /= sizes.at(c);
      }
      double product = 1;
      for (std::size_t t = 0; t < terms.size(); ++t) product *= values[t][number(terms[t])];
      result[number(output)] += product;
    }
    return result;
  };
  const auto check = [&](const std::string& equation, const std::vector<std::string>& terms,
                         const std::string& output) {
    CAPTURE(equation);
    std::vector<Tensor> operands;
    for (const auto& term : terms) {
      Shape shape;
      for (const char c : term) shape.push_back(sizes.at(c));
      operands.push_back(random(shape, float64));
    }
    const Tensor y = einsum(equation, operands);
    Shape shape;
    for (const char c : output) shape.push_back(sizes.at(c));
    CHECK(y.shape() == shape);
    CHECK(relative_error(y, plain(terms, output, operands)) < 1e-13);
  };
  check("ij,jk->ik", {"ij", "jk"}, "ik");
  check("ij,jk", {"ij", "jk"}, "ik");
  check("ij,jk->ki", {"ij", "jk"}, "ki");
  check("ij->ji", {"ij"}, "ji");
  check("ji", {"ji"}, "ij");
  check("ij->", {"ij"}, "");
  check("ii->i", {"ii"}, "i");
  check("ii", {"ii"}, "");
  check("iji->j", {"iji"}, "j");
  check("iii->i", {"iii"}, "i");
  check("i,j->ij", {"i", "j"}, "ij");
  check("i,i->i", {"i", "i"}, "i");
  check("i,i", {"i", "i"}, "");
  check("bij,bjk->bik", {"bij", "bjk"}, "bik");
  check("bij,bjk->ikb", {"bij", "bjk"}, "ikb");
  check("bij,kj->bki", {"bij", "kj"}, "bki");
  check("ijk,jl,kl->il", {"ijk", "jl", "kl"}, "il");
  check("ij,jk,kl,lb->ib", {"ij", "jk", "kl", "lb"}, "ib");
  check("ij,k->j", {"ij", "k"}, "j");
  check("ijj,jk->ik", {"ijj", "jk"}, "ik");
  check(" i A , A j -> j i ", {"iA", "Aj"}, "ji");
  check("jA,Ai", {"jA", "Ai"}, "ij");
}

TEST_CASE("einsum broadcasts what the ellipsis stands for", "[einsum]") {
  const Tensor a = random({3, 1, 2, 4}, float64);
  const Tensor b = random({5, 4, 6}, float64);
  CHECK(relative_error(einsum("...ij,...jk->...ik", {a, b}), ops::matmul(a, b).to_vector<double>()) < 1e-13);
  CHECK(einsum("...ij,...jk->i...k", {a, b}).shape() == Shape{2, 3, 5, 6});
  CHECK(einsum("...ij,...jk", {a, b}).shape() == Shape{3, 5, 2, 6});
  CHECK(einsum("i...->...", {a}).shape() == Shape{1, 2, 4});
  CHECK(einsum("...,...", {random({3, 1}, float64), random({4}, float64)}).shape() == Shape{3, 4});
  CHECK(einsum("...i->...i", {zeros({0, 2})}).shape() == Shape{0, 2});
  CHECK(einsum("ij,jk->ik", {zeros({2, 0}), zeros({0, 3})}).to_vector() == std::vector<float>(6));
}

// The shapes are PyTorch's.
TEST_CASE("einsum sums what the ellipsis stands for when the result leaves it out", "[einsum]") {
  const Tensor a = random({2, 3, 4}, float64);
  const Tensor b = random({4, 1, 4}, float64);
  const auto same = [](const Tensor& found, const Tensor& expected) {
    return found.shape() == expected.shape() && relative_error(found, expected.to_vector<double>()) < 1e-13;
  };
  CHECK(same(einsum("...i->i", {a}), sum(a, {0, 1})));
  CHECK(same(einsum("i...->", {a}), sum(a)));
  CHECK(same(einsum("...->", {a}), sum(a)));
  CHECK(same(einsum("ijk->...ijk", {a}), a));
  CHECK(same(einsum("i...,...->i", {a, ops::select(a, 0, 0)}),
             sum(multiply(a, ops::select(a, 0, 0)), {1, 2})));
  CHECK(einsum("...i,...i->i", {ops::select(a, 0, 0), b}).shape() == Shape{4});
  CHECK(einsum("a...a->...", {random({2, 3, 2}, float64)}).shape() == Shape{3});
  CHECK(einsum("i...,j...->ij...", {random({2, 3}, float64), random({4, 3}, float64)}).shape() ==
        Shape{2, 4, 3});
  CHECK(einsum("...j->j...", {ops::select(a, 0, 0)}).shape() == Shape{4, 3});
  CHECK(einsum("->", {full({}, 2)}).item() == 2);
}

TEST_CASE("einsum stretches letters of size 1", "[einsum]") {
  const Tensor a = random({2, 3}, float64);
  const Tensor row = random({1, 3}, float64);
  CHECK(relative_error(einsum("ij,ij->ij", {a, row}), multiply(a, row).to_vector<double>()) < 1e-13);
  CHECK(relative_error(einsum("ij,ij->j", {row, a}), sum(multiply(a, row), 0).to_vector<double>()) <
        1e-13);
  CHECK_THROWS_AS(einsum("ij,ij->ij", {a, random({3, 3}, float64)}), ShapeError);
}

TEST_CASE("einsum explains equations that do not fit", "[einsum]") {
  const Tensor x = ones({2, 3});
  CHECK_THROWS_WITH(einsum("ij,jk->ik", {x}), "einsum: \"ij,jk->ik\" names 2 operands, got 1");
  CHECK_THROWS_WITH(einsum("ijk->i", {x}),
                    Contains("operand 0 of \"ijk->i\" has 3 letters, which do not fit"));
  CHECK_THROWS_WITH(einsum("i...jk->i", {x}), Contains("has 3 letters"));
  CHECK_THROWS_WITH(einsum("ii->i", {x}),
                    Contains("i of \"ii->i\" has size 2, but an operand of shape [2, 3] has 3"));
  CHECK_THROWS_WITH(einsum("ij->k", {x}), Contains("has k, which no operand has"));
  CHECK_THROWS_WITH(einsum("ij->ii", {x}), Contains("has i twice"));
  CHECK_THROWS_WITH(einsum("ii->i", {ones({1, 3})}), Contains("the diagonal i of \"ii->i\" needs equal"));
  CHECK_THROWS_WITH(einsum("..i->i", {x}), Contains("got '.' at 0"));
  CHECK_THROWS_WITH(einsum("...,...", {ones({2}), ones({3})}), Contains("do not broadcast: sizes 2 and 3"));
  CHECK_THROWS_WITH(einsum("i1->i", {x}), Contains("got '1' at 1"));
  CHECK_THROWS_AS(einsum("ij->i->j", {x}), ValueError);
  CHECK_THROWS_AS(einsum("......", {x}), ValueError);
  CHECK_THROWS_AS(einsum("ij->i,j", {x}), ValueError);
  CHECK_THROWS_AS(einsum("ij-i", {x}), ValueError);
}
