#include <map>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::relative_error;

namespace {

Tensor random(const Shape& shape) { return randn(shape, {.dtype = float64}); }

}  // namespace

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
      operands.push_back(random(shape));
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
  const Tensor a = random({3, 1, 2, 4});
  const Tensor b = random({5, 4, 6});
  CHECK(relative_error(einsum("...ij,...jk->...ik", {a, b}), matmul(a, b).to_vector<double>()) < 1e-13);
  CHECK(einsum("...ij,...jk->i...k", {a, b}).shape() == Shape{2, 3, 5, 6});
  CHECK(einsum("...ij,...jk", {a, b}).shape() == Shape{3, 5, 2, 6});
  CHECK(einsum("i...->...", {a}).shape() == Shape{1, 2, 4});
  CHECK(einsum("...,...", {random({3, 1}), random({4})}).shape() == Shape{3, 4});
  CHECK(einsum("...i->...i", {zeros({0, 2})}).shape() == Shape{0, 2});
  CHECK(einsum("ij,jk->ik", {zeros({2, 0}), zeros({0, 3})}).to_vector() == std::vector<float>(6));
}

// The shapes are PyTorch's.
TEST_CASE("einsum sums what the ellipsis stands for when the result leaves it out", "[einsum]") {
  const Tensor a = random({2, 3, 4});
  const Tensor b = random({4, 1, 4});
  const auto same = [](const Tensor& found, const Tensor& expected) {
    return found.shape() == expected.shape() && relative_error(found, expected.to_vector<double>()) < 1e-13;
  };
  CHECK(same(einsum("...i->i", {a}), sum(a, {0, 1})));
  CHECK(same(einsum("i...->", {a}), sum(a)));
  CHECK(same(einsum("...->", {a}), sum(a)));
  CHECK(same(einsum("ijk->...ijk", {a}), a));
  CHECK(
      same(einsum("i...,...->i", {a, select(a, 0, 0)}), sum(multiply(a, select(a, 0, 0)), {1, 2})));
  CHECK(einsum("...i,...i->i", {select(a, 0, 0), b}).shape() == Shape{4});
  CHECK(einsum("a...a->...", {random({2, 3, 2})}).shape() == Shape{3});
  CHECK(einsum("i...,j...->ij...", {random({2, 3}), random({4, 3})}).shape() == Shape{2, 4, 3});
  CHECK(einsum("...j->j...", {select(a, 0, 0)}).shape() == Shape{4, 3});
  CHECK(einsum("->", {full({}, 2)}).item() == 2);
}

TEST_CASE("einsum stretches letters of size 1", "[einsum]") {
  const Tensor a = random({2, 3});
  const Tensor row = random({1, 3});
  CHECK(relative_error(einsum("ij,ij->ij", {a, row}), multiply(a, row).to_vector<double>()) < 1e-13);
  CHECK(relative_error(einsum("ij,ij->j", {row, a}), sum(multiply(a, row), 0).to_vector<double>()) < 1e-13);
  CHECK_THROWS_AS(einsum("ij,ij->ij", {a, random({3, 3})}), ShapeError);
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
