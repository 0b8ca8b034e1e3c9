#include "pleat/ops/index/index.h"

#include "pleat/autograd/backward.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/parallel/threads_scope.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {
using Numbers = std::vector<int>;
Numbers numbers(const Tensor& x) { return x.to_vector<int>(); }

/// y[i] of the definition for every element of a tensor of rank 3, by plain loops.
std::vector<double> plain_gather(const Tensor& x, std::size_t dim, const Tensor& index) {
  const auto values = x.to_vector<double>();
  const auto at = index.to_vector<int64_t>();
  std::vector<double> result;
  const Shape& s = index.shape();
  for (int64_t i = 0; i < s[0]; ++i)
    for (int64_t j = 0; j < s[1]; ++j)
      for (int64_t k = 0; k < s[2]; ++k) {
        int64_t place[3] = {i, j, k};
        place[dim] = at[static_cast<std::size_t>((i * s[1] + j) * s[2] + k)];
        result.push_back(
            values[static_cast<std::size_t>((place[0] * x.size(1) + place[1]) * x.size(2) + place[2])]);
      }
  return result;
}

/// The numbers 0 ... 119 as [2, 3, 4, 5]: row-major, channels_last, with gaps, transposed.
std::vector<Tensor> layouts() {
  const Tensor x = reshape(ops::cast(arange(120), float32), {2, 3, 4, 5});
  const Tensor wide = zeros({2, 3, 4, 7});
  ops::copy_into(narrow(wide, 3, 1, 5), x);
  const Tensor turned = ops::copy(zeros({5, 4, 3, 2}));
  ops::copy_into(permute(turned, {3, 2, 1, 0}), x);
  return {x, ops::to_format(x, MemoryFormat::channels_last), narrow(wide, 3, 1, 5),
          permute(turned, {3, 2, 1, 0})};
}

Tensor random64(const Shape& shape) { return randn(shape, {.dtype = float64}); }

/// Both derivatives of a linear f, squared so that the second is not zero; plain and transposed.
void check_derivatives(const TensorFunction& f, const std::vector<Shape>& shapes) {
  const auto squared = [&](const std::vector<Tensor>& t) {
    const Tensor y = f(t);
    return y * y;
  };
  std::vector<Tensor> plain, turned;
  for (const Shape& shape : shapes) {
    plain.push_back(random64(shape));
    Shape swapped = shape;
    std::swap(swapped.front(), swapped.back());
    turned.push_back(transpose(random64(swapped), 0, -1));
  }
  for (const auto& inputs : {plain, turned}) {
    CHECK(gradcheck(squared, inputs));
    CHECK(gradgradcheck(squared, inputs));
  }
}

}  // namespace

TEST_CASE("gather takes one index for each element", "[index]") {
  const Tensor plain = reshape(arange(24), {2, 3, 4});
  const Tensor turned = transpose(reshape(arange(24), {4, 3, 2}), 0, 2);
  for (const Tensor& x : {plain, turned})
    for (const std::size_t dim : {0, 1, 2}) {
      Shape shape = {2, 2, 3};
      shape[dim] = 5;
      const Tensor index = randint(0, x.shape()[dim], shape);
      const Tensor y = gather(x, static_cast<int64_t>(dim), index);
      CHECK(y.shape() == shape);
      CHECK(y.to_vector<double>() == plain_gather(x, dim, index));
      CHECK(gather(x, static_cast<int64_t>(dim) - 3, ops::cast(index, int32)).to_vector<double>() ==
            y.to_vector<double>());
    }
  CHECK(gather(plain, 0, zeros({0, 3, 4}, {.dtype = int64})).shape() == Shape{0, 3, 4});
  for (const DType dtype : {boolean, uint8, float16, bfloat16, float64})
    CHECK(numbers(gather(ops::cast(tensor({0, 1}), dtype), 0, tensor({1, 0, 1}))) == Numbers{1, 0, 1});
}

TEST_CASE("scatter_add adds what goes to one place", "[index]") {
  const Tensor x = tensor({{10, 20, 30}, {40, 50, 60}});
  const Tensor index = tensor({{0, 0}, {2, 0}});
  const Tensor source = tensor({{1, 2}, {3, 4}});
  CHECK(numbers(scatter_add(x, 1, index, source)) == Numbers{13, 20, 30, 44, 50, 63});
  CHECK(numbers(scatter_add(x, 0, tensor({{1, 1}, {1, 0}}), source)) == Numbers{10, 24, 30, 44, 52, 60});
  CHECK(numbers(x) == Numbers{10, 20, 30, 40, 50, 60});
  CHECK(numbers(scatter_add(transpose(x, 0, 1), 0, transpose(index, 0, 1), transpose(source, 0, 1))) ==
        Numbers{13, 44, 20, 50, 30, 63});
  // In float16, 2048 + 1 is 2048 each time.
  const Tensor ones16 = ones({100}, {.dtype = float16});
  const Tensor big = full({1}, 2048, {.dtype = float16});
  const Tensor sum = scatter_add(big, 0, zeros({100}, {.dtype = int64}), ones16);
  CHECK(sum.dtype() == float16);
  CHECK(sum.item() == 2148);
  CHECK_THROWS_WITH(scatter_add(x, 1, index, ones({2, 3})),
                    "scatter_add: the source must have the index's shape [2, 2], got [2, 3]");
  CHECK_THROWS_AS(scatter_add(tensor({true}), 0, tensor({0}), tensor({true})), DTypeError);
}

TEST_CASE("scatter overwrites, the last of one place standing", "[index]") {
  const Tensor x = tensor({{10, 20, 30}, {40, 50, 60}});
  const Tensor index = tensor({{0, 0}, {2, 0}});
  const Tensor source = tensor({{1, 2}, {3, 4}});
  CHECK(numbers(scatter(x, 1, index, source)) == Numbers{2, 20, 30, 4, 50, 3});
  CHECK(numbers(scatter(x, 0, tensor({{1, 1}, {1, 0}}), source)) == Numbers{10, 4, 30, 3, 2, 60});
  CHECK(numbers(scatter(x, -1, index, 7)) == Numbers{7, 20, 30, 7, 50, 7});
  CHECK(numbers(x) == Numbers{10, 20, 30, 40, 50, 60});
  CHECK(numbers(scatter(transpose(x, 0, 1), 0, transpose(index, 0, 1), transpose(source, 0, 1))) ==
        Numbers{2, 4, 20, 50, 30, 3});
  CHECK(numbers(scatter(expand(tensor({1, 2, 3}), {2, 3}), 1, index, source)) == Numbers{2, 2, 3, 4, 2, 3});
  CHECK(numbers(scatter(x, 1, zeros({2, 0}, {.dtype = int64}), 7)) == numbers(x));
  for (const DType dtype : {boolean, uint8, float16, bfloat16, float64}) {
    const Tensor y = scatter(zeros({3}, {.dtype = dtype}), 0, tensor({2, 0}), ones({2}, {.dtype = dtype}));
    CHECK(y.dtype() == dtype);
    CHECK(numbers(y) == Numbers{1, 0, 1});
  }
  CHECK_THROWS_WITH(scatter(x, 1, index, tensor({{1, 2, 3}, {4, 5, 6}})),
                    "scatter: the source must have the index's shape [2, 2], got [2, 3]");
  CHECK_THROWS_WITH(scatter(x, 1, index, ones({2, 2})),
                    "scatter: the source must be int64 like the tensor, got float32");
  CHECK_THROWS_WITH(scatter(x, 1, index, 0.5), "scatter: a tensor of int64 cannot hold 0.5");
  CHECK_THROWS_WITH(scatter(x, 1, tensor({{3}}), 1),
                    Contains("scatter: index 3 at [0, 0] is outside [-3, 3)"));
  CHECK_THROWS_AS(scatter(x, 1, tensor({0}), 1), ShapeError);
  CHECK_THROWS_AS(scatter(x, 1, ones({2, 1}), 1), DTypeError);
}

TEST_CASE("index_select takes slices and keeps the layout", "[index]") {
  for (const Tensor& x : layouts())
    for (const int64_t dim : {0, 1, 2, 3}) {
      CAPTURE(x.describe(), dim);
      const std::vector<int64_t> at = {1, 0, 1, 1};
      const Tensor y = index_select(x, dim, from_vector(at));
      REQUIRE(y.size(dim) == 4);
      for (std::size_t i = 0; i < at.size(); ++i)
        CHECK(select(y, dim, static_cast<int64_t>(i)).to_vector() == select(x, dim, at[i]).to_vector());
      CHECK(y.is_contiguous(MemoryFormat::channels_last) == x.is_contiguous(MemoryFormat::channels_last));
    }
  CHECK(index_select(zeros({3, 0}), 0, tensor({2})).shape() == Shape{1, 0});
  CHECK(index_select(zeros({3, 2}), 0, zeros({0}, {.dtype = int64})).shape() == Shape{0, 2});
  CHECK(numbers(index_select(tensor({5, 6, 7}), 0, slice(tensor({2, 9, 0, 9}), 0, 0, 4, 2))) ==
        Numbers{7, 5});
}

TEST_CASE("index_add adds slices in order", "[index]") {
  for (const Tensor& x : layouts())
    for (const int64_t dim : {0, 1, 2, 3}) {
      CAPTURE(x.describe(), dim);
      const std::vector<int64_t> at = {1, 0, 1, 1};
      const Tensor index = from_vector(at);
      const Tensor source = index_select(x, dim, index);
      const Tensor y = index_add(x, dim, index, source);
      const auto before = [&](const Tensor& t, int64_t i) { return select(t, dim, i).to_vector(); };
      const auto times = [](std::vector<float> values, float factor) {
        for (float& value : values) value *= factor;
        return values;
      };
      CHECK(before(y, 0) == times(before(x, 0), 2));
      CHECK(before(y, 1) == times(before(x, 1), 4));
      if (x.size(dim) > 2) CHECK(before(y, 2) == before(x, 2));
    }
  CHECK(index_add(zeros({1}, {.dtype = bfloat16}), 0, zeros({300}, {.dtype = int64}),
                  ones({300}, {.dtype = bfloat16}))
            .item() == 300);
  CHECK_THROWS_WITH(index_add(zeros({3, 2}), 0, tensor({1}), zeros({2, 2})),
                    "index_add: the source must be [1, 2], got [2, 2]");
}

TEST_CASE("sums by index have the same bits for any number of threads", "[index]") {
  const int threads = num_threads();
  const Tensor index = randint(0, 50, {4000});
  const Tensor source = randn({4000, 33});
  const Tensor wide = randint(0, 50, {4000, 33});
  std::vector<std::vector<float>> added, scattered, written;
  for (const int number : {1, 2, 3}) {
    set_num_threads(number);
    added.push_back(index_add(zeros({50, 33}), 0, index, source).to_vector());
    scattered.push_back(scatter_add(zeros({50, 33}), 0, wide, source).to_vector());
    written.push_back(scatter(zeros({50, 33}), 0, wide, source).to_vector());
  }
  set_num_threads(threads);
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK((added[i] == added[0]));
    CHECK((scattered[i] == scattered[0]));
    CHECK((written[i] == written[0]));
  }
}

TEST_CASE("indices on a GPU: the CPU's bits, on lines of their own and sorted", "[index][device]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice cpu{Device()};
  // Long and few lines along a dimension are sorted, short or many ones have a thread each.
  for (const Shape& shape : {Shape{300, 2}, Shape{2, 300}, Shape{9, 20}, Shape{40, 17000}, Shape{300}})
    for (const DType dtype : {float64, float32, bfloat16, int32}) {
      CAPTURE(shape, name(dtype));
      const int64_t dim = shape[0] == 2 ? 1 : 0;
      if (shape.back() == 17000 && dtype != float32) continue;
      Shape small = shape;
      small[static_cast<std::size_t>(dim)] = 7;
      const auto random = [dtype](const Shape& s) {
        return ops::cast(multiply(randn(s), scalar(50)), dtype);
      };
      const Tensor plain = random(small);
      Tensor turned = plain;
      if (plain.rank() == 2)
        turned = transpose(ops::to_format(transpose(plain, 0, 1), MemoryFormat::contiguous), 0, 1);
      const Tensor index = randint(0, 7, shape);
      const Tensor row_index = randint(0, 7, {shape[static_cast<std::size_t>(dim)]});
      const Tensor source = random(shape);
      const auto all = [&](Device device) {
        const auto there = [device](const Tensor& t) { return ops::to_device(t, device); };
        const Tensor at = there(index), row_at = there(row_index), from = there(source);
        std::vector<std::vector<double>> results;
        for (const Tensor& here : {plain, turned}) {
          const Tensor x = there(here);
          for (const Tensor& t : {scatter_add(x, dim, at, from), scatter(x, dim, at, from),
                                  scatter(x, dim, at, 3), index_add(x, dim, row_at, from), gather(x, dim, at),
                                  index_select(x, dim, row_at), nonzero(x)})
            results.push_back(t.to_vector<double>());
        }
        return results;
      };
      CHECK((all("cuda") == all("cpu")));
    }
}

TEST_CASE("index_add and embedding on a GPU: the CPU's bits for rows of any width at any address",
          "[index][device]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice cpu{Device()};
  const Tensor index = randint(0, 7, {60});
  for (const DType dtype : {float32, float16, bfloat16, float64, int32})
    for (const int64_t width : {1, 4, 6, 12, 16})
      for (const int64_t start : {0, 1, 4}) {
        CAPTURE(name(dtype), width, start);
        // Rows from an element `start` of memory on.
        const auto rows = [&](const Tensor& flat, int64_t n, Device device) {
          return reshape(narrow(ops::copy(ops::to_device(flat, device)), 0, start, n * width), {n, width});
        };
        const Tensor x = ops::cast(multiply(randn({8 * width + 4}), scalar(50)), dtype);
        const Tensor source = ops::cast(multiply(randn({60 * width + 4}), scalar(50)), dtype);
        const auto all = [&](Device device) {
          const Tensor at = ops::to_device(index, device), from = rows(source, 60, device);
          const Tensor y = index_add(rows(x, 8, device), 0, at, from);
          const Tensor in_place = rows(x, 8, device);
          index_add_(in_place, 0, at, from);
          std::vector<std::vector<double>> results{y.to_vector<double>(), in_place.to_vector<double>()};
          if (!is_floating(dtype)) return results;
          const Tensor weight = rows(x, 8, device).detach().set_requires_grad();
          for (const EmbeddingOptions& options : {EmbeddingOptions{}, EmbeddingOptions{.padding_idx = 3}})
            results.push_back(
                grad({embedding(at, weight, options)}, {weight}, {from})[0].to_vector<double>());
          return results;
        };
        CHECK((all("cuda") == all("cpu")));
      }
}

TEST_CASE("indices out of range are named before anything is written", "[index]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(gather(x, 1, tensor({{0, 1}, {2, 3}})),
                    "gather: index 3 at [1, 1] is outside [-3, 3), dimension 1 of [2, 3]");
  CHECK_THROWS_WITH(gather(x, 0, tensor({{-3}})), Contains("index -3 at [0, 0] is outside [-2, 2)"));
  CHECK_THROWS_WITH(index_select(x, 0, tensor({0, 2})),
                    "index_select: index 2 at [1] is outside [-2, 2), dimension 0 of [2, 3]");
  CHECK_THROWS_AS(index_add(x, 0, tensor({5}), zeros({1, 3})), IndexError);
  CHECK_THROWS_AS(scatter_add(x, 0, tensor({{5}}), zeros({1, 1})), IndexError);
  CHECK_THROWS_WITH(embedding(tensor({{0, 1}, {2, 0}}), x),
                    "embedding: index 2 at [1, 0] is outside [0, 2), dimension 0 of [2, 3]");
  CHECK_THROWS_AS(gather(zeros({0}), 0, tensor({0})), IndexError);
  CHECK_THROWS_WITH(gather(x, 1, ones({2, 1})), Contains("gather: indices must be integers, got float32"));
  CHECK_THROWS_AS(index_select(x, 0, tensor({true, false})), DTypeError);
  CHECK_THROWS_WITH(gather(x, 1, tensor({0})), Contains("must have the rank of the tensor [2, 3], got [1]"));
  CHECK_THROWS_WITH(gather(x, 1, zeros({3, 1}, {.dtype = int64})),
                    "gather: the index [3, 1] must not exceed the tensor [2, 3] except in dimension 1");
  CHECK(gather(scalar(5), 0, scalar(0)).item() == 5);
  CHECK_THROWS_AS(gather(x, 2, tensor({{0}})), IndexError);
  CHECK_THROWS_WITH(index_select(x, 0, tensor({{0}})),
                    "index_select: the index must have rank 1, got [1, 1]");
  CHECK_THROWS_AS(embedding(tensor({0}), zeros({2})), ShapeError);
}

TEST_CASE("embedding of no indices and of one", "[index]") {
  CHECK(embedding(zeros({0, 2}, {.dtype = int64}), zeros({3, 4})).shape() == Shape{0, 2, 4});
  CHECK(embedding(scalar(1), tensor({{1, 2}, {3, 4}})).to_vector<int>() == Numbers{3, 4});
}

TEST_CASE("one_hot", "[index]") {
  CHECK(numbers(one_hot(tensor({1, 0, 2}))) == Numbers{0, 1, 0, 1, 0, 0, 0, 0, 1});
  const Tensor y = one_hot(tensor({{1}, {0}}), 4, float32);
  CHECK(y.shape() == Shape{2, 1, 4});
  CHECK(y.dtype() == float32);
  CHECK(y.to_vector() == std::vector<float>{0, 1, 0, 0, 1, 0, 0, 0});
  CHECK(one_hot(scalar(2), 3).to_vector<int>() == Numbers{0, 0, 1});
  CHECK(one_hot(zeros({0}, {.dtype = int64}), 3).shape() == Shape{0, 3});
  CHECK_THROWS_WITH(one_hot(tensor({3}), 3), Contains("one_hot: index 3 at [0] is outside [0, 3)"));
  CHECK_THROWS_AS(one_hot(tensor({-2}), -1), IndexError);
  CHECK_THROWS_AS(one_hot(zeros({0}, {.dtype = int64})), ShapeError);
}

TEST_CASE("nonzero and masked_select", "[index]") {
  const Tensor x = tensor({{0, 3}, {5, 0}});
  CHECK(numbers(nonzero(x)) == Numbers{0, 1, 1, 0});
  CHECK(nonzero(zeros({3, 2})).shape() == Shape{0, 2});
  CHECK(nonzero(ones({})).shape() == Shape{1, 0});
  CHECK(numbers(nonzero(select(transpose(tensor({{1, 0, 1}}), 0, 1), 1, 0))) == Numbers{0, 2});
  CHECK(numbers(masked_select(x, tensor({true, false}))) == Numbers{0, 5});
  CHECK(numbers(masked_select(tensor({1, 2}), tensor({{true, true}, {false, true}}))) == Numbers{1, 2, 2});
  CHECK(masked_select(x, tensor({false})).shape() == Shape{0});
  CHECK_THROWS_WITH(masked_select(x, x), Contains("masked_select: the mask must be bool, got int64"));
  CHECK_THROWS_AS(masked_select(x, tensor({true, false, true})), ShapeError);
}

TEST_CASE("of several rows written to one place the last gets the gradient", "[index]") {
  for (const int64_t places : {4, 400}) {  // few of them named, and most
    const Tensor x = zeros({places, 2});
    const Tensor source = ones({5, 2}).set_requires_grad();
    const Tensor index = tensor({int64_t{-1}, int64_t{2}, places - 1, int64_t{2}, int64_t{0}});
    sum(index_copy(x, 0, index, source)).backward();
    CHECK(numbers(source.grad()) == Numbers{0, 0, 0, 0, 1, 1, 1, 1, 1, 1});
    source.set_grad({});
    sum(index_put(x, {index}, source)).backward();
    CHECK(numbers(source.grad()) == Numbers{0, 0, 0, 0, 1, 1, 1, 1, 1, 1});
  }
}

TEST_CASE("nonzero and masks of many elements", "[index]") {
  for (const double share : {0.0, 0.02, 0.5, 1.0})
    for (const int64_t rows : {1, 130, 700}) {
      CAPTURE(share, rows);
      const Tensor mask = bernoulli(share, {rows, 3, 67});
      const Tensor numbered = reshape(arange(mask.numel()), mask.shape());
      std::vector<int64_t> places, coordinates;
      const std::vector<bool> flags = mask.to_vector<bool>();
      for (int64_t i = 0; i < mask.numel(); ++i)
        if (flags[static_cast<std::size_t>(i)]) {
          places.push_back(i);
          coordinates.insert(coordinates.end(), {i / (3 * 67), i / 67 % 3, i % 67});
        }
      for (const int threads : {1, 3}) {
        const ThreadsScope scope(threads);
        CHECK(masked_select(numbered, mask).to_vector<int64_t>() == places);
        CHECK(nonzero(mask).to_vector<int64_t>() == coordinates);
      }
      const Tensor x = randn({rows, 3, 67, 2});
      const Tensor put = index_put(x, std::vector<Tensor>{mask}, scalar(7.0));
      CHECK(put.to_vector() == where(unsqueeze(mask, 3), scalar(7.0), x).to_vector());
    }
}

TEST_CASE("gather, scatter and their sums over lines of any length in any dimension", "[index]") {
  for (const auto& [shape, dim] : {std::pair<Shape, std::size_t>{{3, 5, 150}, 2},
                                   {{3, 5, 150}, 1},
                                   {{300, 2, 65}, 0},
                                   {{2, 9, 64}, 0},
                                   {{2, 700, 3}, 1}}) {
    const auto along = static_cast<int64_t>(dim);
    CAPTURE(shape, dim);
    const Tensor index = randint(0, shape[dim], shape);
    const Tensor x = randn(shape, float64);
    const Tensor turned = permute(ops::copy(permute(x, {2, 0, 1})), {1, 2, 0});
    const std::vector<double> expected = plain_gather(x, dim, index);
    for (const int threads : {1, 3}) {
      const ThreadsScope scope(threads);
      CHECK(gather(x, along, index).to_vector<double>() == expected);
      CHECK(gather(turned, along, index).to_vector<double>() == expected);
      // Each is the other's adjoint; the last of several writers stands.
      const Tensor y = randn(shape, float64);
      const Tensor sums = scatter_add(zeros(shape, float64), along, index, y);
      const auto dot = [](const Tensor& a, const Tensor& b) { return sum(multiply(a, b)).item(); };
      CHECK(dot(sums, x) == Approx(dot(y, gather(x, along, index))));
      const Tensor numbers = reshape(arange(0, count(shape), 1, float64), shape);
      const Tensor written = gather(scatter(x, along, index, numbers), along, index);
      CHECK(all(greater_equal(written, numbers)).item<bool>());
      CHECK(written.to_vector<double>() ==
            gather(scatter(turned, along, index, numbers), along, index).to_vector<double>());
    }
  }
}

TEST_CASE("negative indices count from the end") {
  const Tensor x = reshape(arange(6, float32), {2, 3});
  const auto same = [](const Tensor& got, const Tensor& wanted) {
    CHECK(got.to_vector() == wanted.to_vector());
  };
  same(index_select(x, 1, tensor({-1, 0, -3})), index_select(x, 1, tensor({2, 0, 0})));
  same(gather(x, 1, tensor({{-1, 0}, {1, -3}})), gather(x, 1, tensor({{2, 0}, {1, 0}})));
  same(scatter(x, 0, tensor({{-1, 0, -2}}), 9), scatter(x, 0, tensor({{1, 0, 0}}), 9));
  const Tensor source = ones({2, 2});
  same(scatter_add(x, 1, tensor({{-1, 2}, {-3, 0}}), source),
       scatter_add(x, 1, tensor({{2, 2}, {0, 0}}), source));
  same(index_add(x, 1, tensor({-1, 2}), source), index_add(x, 1, tensor({2, 2}), source));
  same(narrow(x, 1, -2, 2), narrow(x, 1, 1, 2));
  CHECK_THROWS_AS(narrow(x, 1, -4, 1), IndexError);
  CHECK_THROWS_AS(narrow(x, 1, -2, 3), IndexError);
  CHECK_THROWS_AS(embedding(tensor({-1}), x), IndexError);
  CHECK_THROWS_AS(one_hot(tensor({-1}), 3), IndexError);
}

TEST_CASE("index_copy into rows: the last one of a row stays, with any number of threads") {
  const Tensor x = ops::cast(arange(0, 2 * 5 * 20'000), float32);
  const Tensor index = tensor({3, 0, 3, 3, 1});
  for (const Shape& shape :
       {Shape{10, 20'000}, Shape{2, 5, 20'000}, Shape{5, 2, 20'000}, Shape{40'000, 5, 1}}) {
    const Tensor own = view(x, shape);
    const int64_t dim = shape.size() == 2 || shape[0] == 5 ? 0 : 1;
    Shape part = shape;
    part[static_cast<std::size_t>(dim)] = 5;
    const Tensor source = view(ops::cast(arange(-count(part), 0), float32), part);
    for (const bool one_number : {false, true}) {
      const Tensor from = one_number ? expand(ops::cast(tensor({-1.0}), float32), part) : source;
      for (const int threads : {1, 3}) {
        const ThreadsScope scope(threads);
        const Tensor y = index_copy(own, dim, index, from);
        for (const auto& [row, given] : {std::pair{0, 1}, {1, 4}, {2, -1}, {3, 3}, {4, -1}}) {
          INFO(shape.size() << " dimensions, row " << row);
          const Tensor right = given < 0 ? select(own, dim, row) : select(from, dim, given);
          CHECK(select(y, dim, row).to_vector() == right.to_vector());
        }
      }
    }
  }
}

TEST_CASE("gather and scatter_add are differentiable", "[index]") {
  const Tensor index = tensor({{0, 2, 2}, {1, 1, 0}});
  check_derivatives([&](const std::vector<Tensor>& t) { return gather(t[0], 1, index); }, {{2, 3}});
  check_derivatives([&](const std::vector<Tensor>& t) { return gather(t[0], 0, index); }, {{3, 4}});
  check_derivatives([&](const std::vector<Tensor>& t) { return scatter_add(t[0], -1, index, t[1]); },
                    {{2, 4}, {2, 3}});
  const Tensor x = zeros({0, 3}).set_requires_grad();
  sum(gather(x, 1, zeros({0, 1}, {.dtype = int64}))).backward();
  CHECK(x.grad().shape() == Shape{0, 3});
}

TEST_CASE("scatter is differentiable in both tensors, duplicates included", "[index]") {
  const Tensor index = tensor({{0, 2, 0}, {1, 1, 1}});
  check_derivatives([&](const std::vector<Tensor>& t) { return scatter(t[0], 1, index, t[1]); },
                    {{2, 4}, {2, 3}});
  check_derivatives([&](const std::vector<Tensor>& t) { return scatter(t[0], -2, index, t[1]); },
                    {{3, 3}, {2, 3}});
  check_derivatives([&](const std::vector<Tensor>& t) { return scatter(t[0], 1, index, 0.5); }, {{2, 4}});
  const Tensor x = zeros({4}).set_requires_grad();
  const Tensor source = ones({3}).set_requires_grad();
  scatter(x, 0, tensor({1, 3, 1}), source).backward(tensor({1.F, 2.F, 3.F, 4.F}));
  CHECK(x.grad().to_vector() == std::vector<float>{1, 0, 3, 0});
  CHECK(source.grad().to_vector() == std::vector<float>{0, 4, 2});
}

TEST_CASE("index_select, index_add and masked_select are differentiable", "[index]") {
  const Tensor index = tensor({2, 0, 2});
  check_derivatives([&](const std::vector<Tensor>& t) { return index_select(t[0], 0, index); }, {{3, 2}});
  check_derivatives([&](const std::vector<Tensor>& t) { return index_select(t[0], -2, index); }, {{2, 3, 2}});
  check_derivatives([&](const std::vector<Tensor>& t) { return index_add(t[0], 1, index, t[1]); },
                    {{2, 3}, {2, 3}});
  check_derivatives(
      [](const std::vector<Tensor>& t) {
        return masked_select(t[0], tensor({{true, false}, {true, true}}));
      },
      {{2, 2}});
  check_derivatives(
      [](const std::vector<Tensor>& t) {
        return masked_select(t[0], tensor({{true}, {false}, {true}}));
      },
      {{1, 2}});
  const Tensor x = random64({2, 3, 2, 2}).to(MemoryFormat::channels_last).set_requires_grad();
  sum(index_select(x, 1, index)).backward();
  CHECK(x.grad().is_contiguous(MemoryFormat::channels_last));
  CHECK(select(select(select(x.grad(), 0, 0), 1, 0), 1, 0).to_vector() == std::vector<float>{1, 0, 2});
}

TEST_CASE("embedding is differentiable but for the padding row", "[index]") {
  const Tensor index = tensor({{0, 2}, {2, 1}});
  check_derivatives([&](const std::vector<Tensor>& t) { return embedding(index, t[0]); }, {{3, 2}});
  // The padding row has no gradient by decree, so that finite differences must not move it.
  for (const int64_t padding_idx : {0, 2, -1})
    check_derivatives(
        [&](const std::vector<Tensor>& t) {
          const Tensor fixed = tensor({{0.5, -1.5}}).to(float64);
          const Tensor weight = padding_idx == 0 ? cat({fixed, t[0]}, 0) : cat({t[0], fixed}, 0);
          return embedding(index, weight, {.padding_idx = padding_idx});
        },
        {{2, 2}});
  for (const test::Json& entry : test::fixture_cases("layers", "embedding")) {
    CAPTURE(entry.at("name").get<std::string>());
    const auto inputs = test::tensors_from(entry.at("inputs"));
    const test::Json& padding = entry.at("options").at("padding_idx");
    EmbeddingOptions options;
    if (!padding.is_null()) options.padding_idx = padding.get<int64_t>();
    const Tensor weight = inputs.at("weight").set_requires_grad();
    // A strided index must be read as it is.
    const Tensor x = inputs.at("x");
    const auto strided = [](const Tensor& t) {
      return select(expand(unsqueeze(t, -1), {-1, -1, 2}).contiguous(), -1, 1);
    };
    const Tensor dy = test::tensor_from(entry.at("grad_output"));
    const Tensor y = embedding(x.rank() == 2 ? strided(x) : x, weight, options);
    const Tensor wanted = test::tensor_from(entry.at("outputs").at("y"));
    CHECK(y.shape() == wanted.shape());
    CHECK(y.to_vector<double>() == wanted.to_vector<double>());
    y.backward(dy);
    CHECK(test::relative_error(weight.grad(), test::tensor_from(entry.at("grads").at("weight"))) < 1e-14);
  }
  CHECK_THROWS_WITH(embedding(index, random64({3, 2}), {.padding_idx = 3}),
                    "embedding: padding_idx 3 is outside [-3, 3)");
  // The gradient's gradient: nothing flows through the padding row.
  const auto f = [&](const std::vector<Tensor>& t) {
    return t[0] * embedding(index, t[1], {.padding_idx = 2});
  };
  const Tensor w = random64({3, 2});
  const Tensor scale = random64({2, 2, 2}).set_requires_grad();
  const Tensor weight = w.set_requires_grad();
  sum(f({scale, weight})).backward();
  CHECK(select(weight.grad(), 0, 2).to_vector() == std::vector<float>{0, 0});
  CHECK(select(weight.grad(), 0, 0).to_vector() == select(select(scale, 0, 0), 0, 0).to_vector());
}
