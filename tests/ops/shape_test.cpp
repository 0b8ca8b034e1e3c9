#include "pleat/ops/shape/shape.h"


#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

using Index = std::vector<int64_t>;

/// All indices of a shape in row-major order.
std::vector<Index> indices(const Shape& shape) {
  std::vector<Index> all;
  Index index(shape.size());
  for (int64_t i = 0; i < count(shape); ++i) {
    int64_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0;) {
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    all.push_back(index);
  }
  return all;
}

/// 0, 1, 2 ... in row-major order of the shape.
Tensor numbered(const Shape& shape) { return reshape(arange(count(shape)), shape); }

int64_t number_of(const Shape& shape, const Index& index) {
  int64_t number = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) number = number * shape[d] + index[d];
  return number;
}

/// Checks that `y`, made of `numbered(source)`, has the shape and at each index the element at `from(index)`.
void check_elements(const Tensor& y, const Shape& shape, const Shape& source,
                    const std::function<Index(Index)>& from) {
  REQUIRE(y.shape() == shape);
  std::vector<int64_t> expected;
  for (const Index& index : indices(shape)) expected.push_back(number_of(source, from(index)));
  CHECK(y.to_vector<int64_t>() == expected);
}

/// Offsets in the storage of all elements in row-major order.
std::vector<int64_t> offsets(const Tensor& x) {
  std::vector<int64_t> all;
  for (const Index& index : indices(x.shape())) {
    int64_t offset = x.offset();
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * x.strides()[d];
    all.push_back(offset);
  }
  return all;
}

/// Whether any strides make `shape` read x's elements in order: the strides follow from the neighbours of
/// element 0.
bool can_be_viewed(const Tensor& x, const Shape& shape) {
  const auto at = offsets(x);
  if (at.empty()) return true;
  const auto all = indices(shape);
  Strides strides(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    Index unit(shape.size());
    unit[d] = 1;
    strides[d] = at[static_cast<std::size_t>(number_of(shape, unit))] - at[0];
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    int64_t offset = at[0];
    for (std::size_t d = 0; d < shape.size(); ++d) offset += all[i][d] * strides[d];
    if (offset != at[i]) return false;
  }
  return true;
}

class Dice {
 public:
  int64_t roll(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }

  /// A tensor that was sliced, permuted and expanded.
  Tensor tensor() {
    Shape shape;
    for (int64_t rank = roll(0, 4); rank > 0; --rank) shape.push_back(roll(0, 20) == 0 ? 0 : roll(1, 4));
    Tensor x = numbered(shape);
    if (x.rank() == 0) return x;
    for (int64_t dim = 0; dim < x.rank(); ++dim)
      if (roll(0, 3) == 0) x = slice(x, dim, roll(0, 1), roll(2, 5), roll(1, 2));
    for (int64_t times = roll(0, 2); times > 0; --times)
      x = transpose(x, roll(0, x.rank() - 1), roll(0, x.rank() - 1));
    if (roll(0, 4) == 0) {
      Shape wider = x.shape();
      wider.insert(wider.begin(), roll(1, 3));
      x = expand(x, wider);
    }
    return x;
  }

  /// A shape of as many elements.
  Shape reshaped(const Tensor& x) {
    Shape shape = x.shape();
    for (int64_t times = roll(1, 4); times > 0; --times) {
      const auto rank = static_cast<int64_t>(shape.size());
      const int64_t what = roll(0, 2);
      const auto dim = static_cast<std::size_t>(rank == 0 ? 0 : roll(0, rank - 1));
      if (what == 0 || rank == 0) {
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), 1);
      } else if (what == 1 && rank > 1) {
        const std::size_t first = std::min(dim, shape.size() - 2);
        shape[first] *= shape[first + 1];
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(first) + 1);
      } else if (shape[dim] > 1 && shape[dim] % 2 == 0) {
        shape[dim] /= 2;
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim) + roll(0, 1), 2);
      }
    }
    return shape;
  }

 private:
  std::mt19937 engine_{7};
};

}  // namespace

TEST_CASE("view and reshape agree with brute force on any strides", "[view]") {
  Dice dice;
  int viewed = 0;
  int copied = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const Tensor x = dice.tensor();
    const Shape shape = dice.reshaped(x);
    CAPTURE(x.describe(), to_string(shape));
    const Tensor y = reshape(x, shape);
    REQUIRE(y.shape() == shape);
    REQUIRE(y.to_vector<int64_t>() == x.to_vector<int64_t>());
    if (can_be_viewed(x, shape)) {
      ++viewed;
      REQUIRE(view(x, shape).impl().storage == x.impl().storage);
      REQUIRE(y.impl().storage == x.impl().storage);
    } else {
      ++copied;
      REQUIRE_THROWS_AS(view(x, shape), ShapeError);
      REQUIRE(y.impl().storage != x.impl().storage);
    }
  }
  CHECK(viewed > 500);
  CHECK(copied > 200);
}

TEST_CASE("one size of a shape may be left open", "[view]") {
  CHECK(view(arange(12), {3, -1}).shape() == Shape{3, 4});
  CHECK(view(arange(0), {2, -1}).shape() == Shape{2, 0});
  CHECK(view(scalar(1), {}).shape().empty());
  CHECK(view(scalar(1), {1, -1}).shape() == Shape{1, 1});
  CHECK_THROWS_WITH(view(arange(12), {-1, -1}), "view: only one size may be -1, got [-1, -1]");
  CHECK_THROWS_WITH(view(arange(12), {5, -1}), Contains("no size in place of -1 makes 12 elements"));
  CHECK_THROWS_WITH(reshape(arange(0), {0, -1}), Contains("no size in place of -1"));
  CHECK_THROWS_WITH(reshape(arange(12), {5, 2}),
                    Contains("reshape: shape [5, 2] has 10 elements, the tensor 12"));
  CHECK_THROWS_AS(reshape(arange(12), {-3, -4}), ShapeError);
  CHECK_THROWS_WITH(view(transpose(numbered({2, 3}), 0, 1), {6}), Contains("use reshape"));
}

TEST_CASE("permute and transpose", "[view]") {
  const Shape s = {2, 3, 4};
  const Tensor x = numbered(s);
  check_elements(permute(x, {2, 0, -2}), {4, 2, 3}, s, [](Index i) { return Index{i[1], i[2], i[0]}; });
  check_elements(transpose(x, 0, -1), {4, 3, 2}, s, [](Index i) { return Index{i[2], i[1], i[0]}; });
  check_elements(transpose(x, 1, 1), s, s, [](Index i) { return i; });
  CHECK(permute(scalar(3), std::vector<int64_t>{}).item<int>() == 3);
  CHECK(transpose(scalar(3), 0, -1).item<int>() == 3);
  CHECK(permute(zeros({0, 2}), {1, 0}).shape() == Shape{2, 0});
  CHECK_THROWS_WITH(permute(x, {0, 1}), "permute: needs all 3 dimensions in a new order, got [0, 1]");
  CHECK_THROWS_WITH(permute(x, {0, 1, -2}), "permute: dimension 1 is named twice in [0, 1, -2]");
  CHECK_THROWS_AS(permute(x, {0, 1, 3}), IndexError);
  CHECK_THROWS_AS(transpose(x, 0, 3), IndexError);
}

TEST_CASE("expand stretches sizes of 1 and adds dimensions", "[view]") {
  const Shape s = {3, 1};
  const Tensor x = numbered(s);
  check_elements(expand(x, {2, 3, 4}), {2, 3, 4}, s, [](Index i) { return Index{i[1], 0}; });
  check_elements(expand(x, {-1, 2}), {3, 2}, s, [](Index i) { return Index{i[0], 0}; });
  CHECK(expand(x, {3, 0}).shape() == Shape{3, 0});
  CHECK(expand(scalar(5), {2}).to_vector<int>() == std::vector<int>{5, 5});
  CHECK_THROWS_WITH(expand(x, {4, 1}), Contains("size 3 of dimension 0 is not 1"));
  CHECK_THROWS_WITH(expand(x, {3}), "expand: [3, 1] has more dimensions than [3]");
  CHECK_THROWS_WITH(expand(x, {-1, 3, 1}), Contains("-1"));
}

TEST_CASE("slice, narrow and select", "[view]") {
  const Shape s = {5, 7};
  const Tensor x = numbered(s);
  check_elements(slice(x, 1, 1, 6, 2), {5, 3}, s, [](Index i) { return Index{i[0], 1 + 2 * i[1]}; });
  check_elements(slice(x, -2, -3, -1), {2, 7}, s, [](Index i) { return Index{2 + i[0], i[1]}; });
  check_elements(slice(x, 0, -100, 100, 3), {2, 7}, s, [](Index i) { return Index{3 * i[0], i[1]}; });
  CHECK(slice(x, 0, 3, 2).shape() == Shape{0, 7});
  CHECK(slice(x, 0, 5, 9).shape() == Shape{0, 7});
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(slice(x, 0, 0, most, most).shape() == Shape{1, 7});
  CHECK(slice(x, 0, std::numeric_limits<int64_t>::min(), most, 2).shape() == Shape{3, 7});
  check_elements(narrow(x, 1, 2, 3), {5, 3}, s, [](Index i) { return Index{i[0], 2 + i[1]}; });
  CHECK(narrow(x, 1, 7, 0).shape() == Shape{5, 0});
  check_elements(select(x, 0, -1), {7}, s, [](Index i) { return Index{4, i[0]}; });
  check_elements(select(slice(x, 1, 1, 7, 2), 1, 2), {5}, s, [](Index i) { return Index{i[0], 5}; });
  CHECK(select(arange(4), 0, 2).shape().empty());
  CHECK_THROWS_WITH(slice(x, 0, 0, 1, 0), "slice: step must be at least 1, got 0");
  CHECK_THROWS_WITH(slice(scalar(1), 0, 0, 1), "slice: a tensor of rank 0 has nothing to slice");
  CHECK_THROWS_AS(slice(x, 2, 0, 1), IndexError);
  CHECK_THROWS_WITH(narrow(x, 0, 3, 3), "narrow: 3 elements from 3 reach outside dimension 0 of [5, 7]");
  CHECK_THROWS_AS(narrow(x, 0, -1, 2), IndexError);
  CHECK_THROWS_AS(narrow(x, 0, -6, 1), IndexError);
  CHECK_THROWS_AS(narrow(x, 0, 1, most), IndexError);
  CHECK_THROWS_WITH(select(x, 1, 7), "select: index 7 is outside dimension 1 of [5, 7]");
  CHECK_THROWS_AS(select(x, 1, -8), IndexError);
  CHECK_THROWS_AS(select(scalar(1), 0, 0), ShapeError);
  CHECK_THROWS_AS(select(zeros({0}), 0, 0), IndexError);
}

TEST_CASE("squeeze, unsqueeze, flatten and unflatten", "[view]") {
  const Tensor x = zeros({1, 3, 1, 2});
  CHECK(squeeze(x).shape() == Shape{3, 2});
  CHECK(squeeze(x, -2).shape() == Shape{1, 3, 2});
  CHECK(squeeze(x, {0, 1}).shape() == Shape{3, 1, 2});
  CHECK(squeeze(ones({1, 1})).shape().empty());
  CHECK(squeeze(scalar(1), 0).shape().empty());
  CHECK(unsqueeze(x, 4).shape() == Shape{1, 3, 1, 2, 1});
  CHECK(unsqueeze(x, -5).shape() == Shape{1, 1, 3, 1, 2});
  CHECK(unsqueeze(scalar(1), 0).shape() == Shape{1});
  CHECK(unsqueeze(zeros({2, 0}), 1).shape() == Shape{2, 1, 0});
  const Tensor last = zeros({2, 3, 4, 5}, {.format = MemoryFormat::channels_last});
  CHECK(unsqueeze(last, 2).impl().storage == last.impl().storage);
  CHECK_THROWS_AS(unsqueeze(x, 5), IndexError);
  CHECK_THROWS_AS(squeeze(x, 4), IndexError);
  CHECK(flatten(x).shape() == Shape{6});
  CHECK(flatten(x, 1).shape() == Shape{1, 6});
  CHECK(flatten(x, -3, -2).shape() == Shape{1, 3, 2});
  CHECK(flatten(scalar(2)).shape() == Shape{1});
  CHECK(flatten(zeros({2, 0, 3}), 1).shape() == Shape{2, 0});
  CHECK_THROWS_WITH(flatten(x, 2, 1), "flatten: the first dimension 2 comes after the last 1");
  const Shape s = {2, 6};
  check_elements(unflatten(numbered(s), 1, {3, -1}), {2, 3, 2}, s, [](Index i) {
    return Index{i[0], 2 * i[1] + i[2]};
  });
  check_elements(unflatten(transpose(numbered(s), 0, 1), 0, {2, 3}), {2, 3, 2}, s, [](Index i) {
    return Index{i[2], 3 * i[0] + i[1]};
  });
  CHECK_THROWS_WITH(unflatten(numbered(s), 1, {4, 2}), Contains("unflatten: shape [4, 2] has 8 elements"));
  CHECK_THROWS_AS(unflatten(scalar(1), 0, {1}), ShapeError);
}

TEST_CASE("windows and diagonals", "[view]") {
  const Shape s = {3, 8};
  const Tensor x = numbered(s);
  check_elements(unfold_dimension(x, 1, 3, 2), {3, 3, 3}, s, [](Index i) {
    return Index{i[0], 2 * i[1] + i[2]};
  });
  check_elements(unfold_dimension(x, 0, 3, 5), {1, 8, 3}, s, [](Index i) { return Index{i[2], i[1]}; });
  CHECK(unfold_dimension(x, 0, 0, 1).shape() == Shape{4, 8, 0});
  CHECK_THROWS_WITH(unfold_dimension(x, 0, 4, 1),
                    "unfold_dimension: windows of 4 do not fit dimension 0 of [3, 8]");
  CHECK_THROWS_AS(unfold_dimension(x, 0, 1, 0), ValueError);
  CHECK_THROWS_AS(unfold_dimension(scalar(1), 0, 2, 1), ShapeError);

  const Shape c = {2, 3, 4};
  const Tensor y = numbered(c);
  check_elements(diagonal(y, 0, 1, 2), {2, 3}, c, [](Index i) { return Index{i[0], i[1], i[1]}; });
  check_elements(diagonal(y, 1, -2, -1), {2, 3}, c, [](Index i) { return Index{i[0], i[1], i[1] + 1}; });
  check_elements(diagonal(y, -2, 1, 2), {2, 1}, c, [](Index i) { return Index{i[0], i[1] + 2, i[1]}; });
  check_elements(diagonal(y, 1, 2, 0), {3, 1}, c, [](Index i) { return Index{i[1] + 1, i[0], i[1]}; });
  CHECK(diagonal(y, 4, 1, 2).shape() == Shape{2, 0});
  CHECK(diagonal(y, -3, 1, 2).shape() == Shape{2, 0});
  CHECK(diagonal(zeros({0, 3})).shape() == Shape{0});
  CHECK_THROWS_AS(diagonal(y, 0, 1, -2), ShapeError);
  CHECK_THROWS_AS(diagonal(arange(3)), IndexError);
}

TEST_CASE("gradients of parts lie as the whole does", "[shape]") {
  const Tensor x =
      randn({2, 3, 4, 4}, {.dtype = float64}).to(MemoryFormat::channels_last).set_requires_grad();
  sum(slice(x, 2, 1, 3) * slice(x, 2, 1, 3)).backward();
  CHECK(x.grad().is_contiguous(MemoryFormat::channels_last));
  CHECK(gradcheck([](const std::vector<Tensor>& t) { return select(t[0], 3, 1) * select(t[0], 3, 2); },
                  {x.detach()}));
}

TEST_CASE("overlapping windows add up", "[shape]") {
  const Tensor x = zeros({6}).set_requires_grad();
  sum(unfold_dimension(x, 0, 3, 1)).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{1, 2, 3, 3, 2, 1});
}

TEST_CASE("gradients of empty views", "[shape]") {
  const Tensor x = zeros({0, 3}).set_requires_grad();
  sum(transpose(narrow(x, 1, 1, 2), 0, 1)).backward();
  CHECK(x.grad().shape() == Shape{0, 3});
}

TEST_CASE("x[i] is a part of the first dimension, for reading and writing") {
  const Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}).set_requires_grad();
  CHECK(x[1].to_vector() == std::vector<float>{4, 5, 6});
  CHECK(x[-2][2].item() == 3);
  CHECK_THROWS_AS(x[2], IndexError);
  CHECK_THROWS_AS(x[0][0][0], ShapeError);
  (x[1] * x[0][1]).backward(ones({3}));
  CHECK(x.grad().to_vector() == std::vector<float>{0, 15, 0, 2, 2, 2});

  const Tensor y = zeros({2, 3});
  Tensor row = y[0];
  row = ones({3});  // another tensor from here on
  CHECK(y.to_vector() == std::vector<float>(6, 0));
  y[0] = tensor({1.0, 2.0, 3.0});
  y[1] = 7;
  y[1][0] = x.detach()[0][2];
  CHECK(y.to_vector() == std::vector<float>{1, 2, 3, 3, 7, 7});
  select(y, 1, 2) = -1.5;
  narrow(y, 1, 0, 2) += 1;
  CHECK(y.to_vector() == std::vector<float>{2, 3, -1.5, 4, 8, -1.5});
  const Tensor truth = zeros({2}, boolean);
  truth[0] = true;
  CHECK(truth.to_vector<int>() == std::vector<int>{1, 0});
  CHECK_THROWS_AS((y[0] = ones({2})), ShapeError);
}

TEST_CASE("what is written into a part has gradients") {
  const Tensor x = tensor({1.0, 2.0, 3.0}).set_requires_grad();
  const Tensor y = zeros({2, 3});
  y[1] = x * x;
  narrow(y, 1, 0, 1) = 5;
  sum(y * 2).backward();
  CHECK(y.to_vector() == std::vector<float>{5, 0, 0, 5, 4, 9});
  CHECK(x.grad().to_vector() == std::vector<float>{0, 8, 12});
}
