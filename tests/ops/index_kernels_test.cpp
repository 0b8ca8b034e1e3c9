#include "pleat/ops/index/index_kernels.h"

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/parallel/threads_scope.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/view.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/gpu.h"

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
  const Tensor x = ops::reshape(ops::cast(arange(120), float32), {2, 3, 4, 5});
  const Tensor wide = zeros({2, 3, 4, 7});
  ops::copy_into(ops::narrow(wide, 3, 1, 5), x);
  const Tensor turned = ops::copy(zeros({5, 4, 3, 2}));
  ops::copy_into(ops::permute(turned, {3, 2, 1, 0}), x);
  return {x, ops::to_format(x, MemoryFormat::channels_last), ops::narrow(wide, 3, 1, 5),
          ops::permute(turned, {3, 2, 1, 0})};
}
}  // namespace

TEST_CASE("gather takes one index for each element", "[index]") {
  const Tensor plain = ops::reshape(arange(24), {2, 3, 4});
  const Tensor turned = ops::transpose(ops::reshape(arange(24), {4, 3, 2}), 0, 2);
  for (const Tensor& x : {plain, turned})
    for (const std::size_t dim : {0, 1, 2}) {
      Shape shape = {2, 2, 3};
      shape[dim] = 5;
      const Tensor index = randint(0, x.shape()[dim], shape);
      const Tensor y = ops::gather(x, static_cast<int64_t>(dim), index);
      CHECK(y.shape() == shape);
      CHECK(y.to_vector<double>() == plain_gather(x, dim, index));
      CHECK(ops::gather(x, static_cast<int64_t>(dim) - 3, ops::cast(index, int32)).to_vector<double>() ==
            y.to_vector<double>());
    }
  CHECK(ops::gather(plain, 0, zeros({0, 3, 4}, {.dtype = int64})).shape() == Shape{0, 3, 4});
  for (const DType dtype : {boolean, uint8, float16, bfloat16, float64})
    CHECK(numbers(ops::gather(ops::cast(tensor({0, 1}), dtype), 0, tensor({1, 0, 1}))) == Numbers{1, 0, 1});
}

TEST_CASE("scatter_add adds what goes to one place", "[index]") {
  const Tensor x = tensor({{10, 20, 30}, {40, 50, 60}});
  const Tensor index = tensor({{0, 0}, {2, 0}});
  const Tensor source = tensor({{1, 2}, {3, 4}});
  CHECK(numbers(ops::scatter_add(x, 1, index, source)) == Numbers{13, 20, 30, 44, 50, 63});
  CHECK(numbers(ops::scatter_add(x, 0, tensor({{1, 1}, {1, 0}}), source)) == Numbers{10, 24, 30, 44, 52, 60});
  CHECK(numbers(x) == Numbers{10, 20, 30, 40, 50, 60});
  CHECK(numbers(ops::scatter_add(ops::transpose(x, 0, 1), 0, ops::transpose(index, 0, 1),
                                 ops::transpose(source, 0, 1))) == Numbers{13, 44, 20, 50, 30, 63});
  // In float16, 2048 + 1 is 2048 each time.
  const Tensor ones16 = ones({100}, {.dtype = float16});
  const Tensor big = full({1}, 2048, {.dtype = float16});
  const Tensor sum = ops::scatter_add(big, 0, zeros({100}, {.dtype = int64}), ones16);
  CHECK(sum.dtype() == float16);
  CHECK(sum.item() == 2148);
  CHECK_THROWS_WITH(ops::scatter_add(x, 1, index, ones({2, 3})),
                    "scatter_add: the source must have the index's shape [2, 2], got [2, 3]");
  CHECK_THROWS_AS(ops::scatter_add(tensor({true}), 0, tensor({0}), tensor({true})), DTypeError);
}

TEST_CASE("scatter overwrites, the last of one place standing", "[index]") {
  const Tensor x = tensor({{10, 20, 30}, {40, 50, 60}});
  const Tensor index = tensor({{0, 0}, {2, 0}});
  const Tensor source = tensor({{1, 2}, {3, 4}});
  CHECK(numbers(ops::scatter(x, 1, index, source)) == Numbers{2, 20, 30, 4, 50, 3});
  CHECK(numbers(ops::scatter(x, 0, tensor({{1, 1}, {1, 0}}), source)) == Numbers{10, 4, 30, 3, 2, 60});
  CHECK(numbers(ops::scatter(x, -1, index, 7)) == Numbers{7, 20, 30, 7, 50, 7});
  CHECK(numbers(x) == Numbers{10, 20, 30, 40, 50, 60});
  CHECK(numbers(ops::scatter(ops::transpose(x, 0, 1), 0, ops::transpose(index, 0, 1),
                             ops::transpose(source, 0, 1))) == Numbers{2, 4, 20, 50, 30, 3});
  CHECK(numbers(ops::scatter(ops::expand(tensor({1, 2, 3}), {2, 3}), 1, index, source)) ==
        Numbers{2, 2, 3, 4, 2, 3});
  CHECK(numbers(ops::scatter(x, 1, zeros({2, 0}, {.dtype = int64}), 7)) == numbers(x));
  for (const DType dtype : {boolean, uint8, float16, bfloat16, float64}) {
    const Tensor y =
        ops::scatter(zeros({3}, {.dtype = dtype}), 0, tensor({2, 0}), ones({2}, {.dtype = dtype}));
    CHECK(y.dtype() == dtype);
    CHECK(numbers(y) == Numbers{1, 0, 1});
  }
  CHECK_THROWS_WITH(ops::scatter(x, 1, index, tensor({{1, 2, 3}, {4, 5, 6}})),
                    "scatter: the source must have the index's shape [2, 2], got [2, 3]");
  CHECK_THROWS_WITH(ops::scatter(x, 1, index, ones({2, 2})),
                    "scatter: the source must be int64 like the tensor, got float32");
  CHECK_THROWS_WITH(ops::scatter(x, 1, index, 0.5), "scatter: a tensor of int64 cannot hold 0.5");
  CHECK_THROWS_WITH(ops::scatter(x, 1, tensor({{3}}), 1),
                    Contains("scatter: index 3 at [0, 0] is outside [-3, 3)"));
  CHECK_THROWS_AS(ops::scatter(x, 1, tensor({0}), 1), ShapeError);
  CHECK_THROWS_AS(ops::scatter(x, 1, ones({2, 1}), 1), DTypeError);
}

TEST_CASE("index_select takes slices and keeps the layout", "[index]") {
  for (const Tensor& x : layouts())
    for (const int64_t dim : {0, 1, 2, 3}) {
      CAPTURE(x.describe(), dim);
      const std::vector<int64_t> at = {1, 0, 1, 1};
      const Tensor y = ops::index_select(x, dim, from_vector(at));
      REQUIRE(y.size(dim) == 4);
      for (std::size_t i = 0; i < at.size(); ++i)
        CHECK(ops::select(y, dim, static_cast<int64_t>(i)).to_vector() ==
              ops::select(x, dim, at[i]).to_vector());
      CHECK(y.is_contiguous(MemoryFormat::channels_last) == x.is_contiguous(MemoryFormat::channels_last));
    }
  CHECK(ops::index_select(zeros({3, 0}), 0, tensor({2})).shape() == Shape{1, 0});
  CHECK(ops::index_select(zeros({3, 2}), 0, zeros({0}, {.dtype = int64})).shape() == Shape{0, 2});
  CHECK(numbers(ops::index_select(tensor({5, 6, 7}), 0, ops::slice(tensor({2, 9, 0, 9}), 0, 0, 4, 2))) ==
        Numbers{7, 5});
}

TEST_CASE("index_add adds slices in order", "[index]") {
  for (const Tensor& x : layouts())
    for (const int64_t dim : {0, 1, 2, 3}) {
      CAPTURE(x.describe(), dim);
      const std::vector<int64_t> at = {1, 0, 1, 1};
      const Tensor index = from_vector(at);
      const Tensor source = ops::index_select(x, dim, index);
      const Tensor y = ops::index_add(x, dim, index, source);
      const auto before = [&](const Tensor& t, int64_t i) { return ops::select(t, dim, i).to_vector(); };
      const auto times = [](std::vector<float> values, float factor) {
        for (float& value : values) value *= factor;
        return values;
      };
      CHECK(before(y, 0) == times(before(x, 0), 2));
      CHECK(before(y, 1) == times(before(x, 1), 4));
      if (x.size(dim) > 2) CHECK(before(y, 2) == before(x, 2));
    }
  CHECK(ops::index_add(zeros({1}, {.dtype = bfloat16}), 0, zeros({300}, {.dtype = int64}),
                       ones({300}, {.dtype = bfloat16}))
            .item() == 300);
  CHECK_THROWS_WITH(ops::index_add(zeros({3, 2}), 0, tensor({1}), zeros({2, 2})),
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
    added.push_back(ops::index_add(zeros({50, 33}), 0, index, source).to_vector());
    scattered.push_back(ops::scatter_add(zeros({50, 33}), 0, wide, source).to_vector());
    written.push_back(ops::scatter(zeros({50, 33}), 0, wide, source).to_vector());
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
        turned = ops::transpose(ops::to_format(ops::transpose(plain, 0, 1), MemoryFormat::contiguous), 0, 1);
      const Tensor index = randint(0, 7, shape);
      const Tensor row_index = randint(0, 7, {shape[static_cast<std::size_t>(dim)]});
      const Tensor source = random(shape);
      const auto all = [&](Device device) {
        const auto there = [device](const Tensor& t) { return ops::to_device(t, device); };
        const Tensor at = there(index), row_at = there(row_index), from = there(source);
        std::vector<std::vector<double>> results;
        for (const Tensor& here : {plain, turned}) {
          const Tensor x = there(here);
          for (const Tensor& t :
               {ops::scatter_add(x, dim, at, from), ops::scatter(x, dim, at, from),
                ops::scatter(x, dim, at, 3), ops::index_add(x, dim, row_at, from), ops::gather(x, dim, at),
                ops::index_select(x, dim, row_at), ops::nonzero(x)})
            results.push_back(t.to_vector<double>());
        }
        return results;
      };
      CHECK((all("cuda") == all("cpu")));
    }
}

TEST_CASE("indices out of range are named before anything is written", "[index]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(ops::gather(x, 1, tensor({{0, 1}, {2, 3}})),
                    "gather: index 3 at [1, 1] is outside [-3, 3), dimension 1 of [2, 3]");
  CHECK_THROWS_WITH(ops::gather(x, 0, tensor({{-3}})), Contains("index -3 at [0, 0] is outside [-2, 2)"));
  CHECK_THROWS_WITH(ops::index_select(x, 0, tensor({0, 2})),
                    "index_select: index 2 at [1] is outside [-2, 2), dimension 0 of [2, 3]");
  CHECK_THROWS_AS(ops::index_add(x, 0, tensor({5}), zeros({1, 3})), IndexError);
  CHECK_THROWS_AS(ops::scatter_add(x, 0, tensor({{5}}), zeros({1, 1})), IndexError);
  CHECK_THROWS_WITH(ops::embedding(tensor({{0, 1}, {2, 0}}), x),
                    "embedding: index 2 at [1, 0] is outside [0, 2), dimension 0 of [2, 3]");
  CHECK_THROWS_AS(ops::gather(zeros({0}), 0, tensor({0})), IndexError);
  CHECK_THROWS_WITH(ops::gather(x, 1, ones({2, 1})),
                    Contains("gather: indices must be integers, got float32"));
  CHECK_THROWS_AS(ops::index_select(x, 0, tensor({true, false})), DTypeError);
  CHECK_THROWS_WITH(ops::gather(x, 1, tensor({0})),
                    Contains("must have the rank of the tensor [2, 3], got [1]"));
  CHECK_THROWS_WITH(ops::gather(x, 1, zeros({3, 1}, {.dtype = int64})),
                    "gather: the index [3, 1] must not exceed the tensor [2, 3] except in dimension 1");
  CHECK(ops::gather(scalar(5), 0, scalar(0)).item() == 5);
  CHECK_THROWS_AS(ops::gather(x, 2, tensor({{0}})), IndexError);
  CHECK_THROWS_WITH(ops::index_select(x, 0, tensor({{0}})),
                    "index_select: the index must have rank 1, got [1, 1]");
  CHECK_THROWS_AS(ops::embedding(tensor({0}), zeros({2})), ShapeError);
}

TEST_CASE("embedding agrees with PyTorch", "[index]") {
  for (const test::Json& entry : test::fixture_cases("layers", "embedding")) {
    const auto inputs = test::tensors_from(entry.at("inputs"));
    const Tensor y = test::tensor_from(entry.at("outputs").at("y"));
    const Tensor got = ops::embedding(inputs.at("x"), inputs.at("weight"));
    CHECK(got.shape() == y.shape());
    CHECK(got.to_vector<double>() == y.to_vector<double>());
  }
  CHECK(ops::embedding(zeros({0, 2}, {.dtype = int64}), zeros({3, 4})).shape() == Shape{0, 2, 4});
  CHECK(ops::embedding(scalar(1), tensor({{1, 2}, {3, 4}})).to_vector<int>() == Numbers{3, 4});
}

TEST_CASE("one_hot", "[index]") {
  CHECK(numbers(ops::one_hot(tensor({1, 0, 2}))) == Numbers{0, 1, 0, 1, 0, 0, 0, 0, 1});
  const Tensor y = ops::one_hot(tensor({{1}, {0}}), 4, float32);
  CHECK(y.shape() == Shape{2, 1, 4});
  CHECK(y.dtype() == float32);
  CHECK(y.to_vector() == std::vector<float>{0, 1, 0, 0, 1, 0, 0, 0});
  CHECK(ops::one_hot(scalar(2), 3).to_vector<int>() == Numbers{0, 0, 1});
  CHECK(ops::one_hot(zeros({0}, {.dtype = int64}), 3).shape() == Shape{0, 3});
  CHECK_THROWS_WITH(ops::one_hot(tensor({3}), 3), Contains("one_hot: index 3 at [0] is outside [0, 3)"));
  CHECK_THROWS_AS(ops::one_hot(tensor({-2}), -1), IndexError);
  CHECK_THROWS_AS(ops::one_hot(zeros({0}, {.dtype = int64})), ShapeError);
}

TEST_CASE("nonzero and masked_select", "[index]") {
  const Tensor x = tensor({{0, 3}, {5, 0}});
  CHECK(numbers(ops::nonzero(x)) == Numbers{0, 1, 1, 0});
  CHECK(ops::nonzero(zeros({3, 2})).shape() == Shape{0, 2});
  CHECK(ops::nonzero(ones({})).shape() == Shape{1, 0});
  CHECK(numbers(ops::flat_nonzero(ops::transpose(tensor({{1, 0, 1}}), 0, 1))) == Numbers{0, 2});
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
      std::vector<int64_t> places, coordinates;
      const std::vector<bool> flags = mask.to_vector<bool>();
      for (int64_t i = 0; i < mask.numel(); ++i)
        if (flags[static_cast<std::size_t>(i)]) {
          places.push_back(i);
          coordinates.insert(coordinates.end(), {i / (3 * 67), i / 67 % 3, i % 67});
        }
      for (const int threads : {1, 3}) {
        const ThreadsScope scope(threads);
        CHECK(ops::flat_nonzero(mask).to_vector<int64_t>() == places);
        CHECK(ops::nonzero(mask).to_vector<int64_t>() == coordinates);
      }
      const Tensor x = randn({rows, 3, 67, 2});
      const Tensor put = ops::index_put(x, std::vector<Tensor>{mask}, scalar(7.0));
      CHECK(put.to_vector() == where(ops::unsqueeze(mask, 3), scalar(7.0), x).to_vector());
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
    const Tensor turned = ops::permute(ops::copy(ops::permute(x, {2, 0, 1})), {1, 2, 0});
    const std::vector<double> expected = plain_gather(x, dim, index);
    for (const int threads : {1, 3}) {
      const ThreadsScope scope(threads);
      CHECK(ops::gather(x, along, index).to_vector<double>() == expected);
      CHECK(ops::gather(turned, along, index).to_vector<double>() == expected);
      // Each is the other's adjoint; the last of several writers stands.
      const Tensor y = randn(shape, float64);
      const Tensor sums = ops::scatter_add(zeros(shape, float64), along, index, y);
      const auto dot = [](const Tensor& a, const Tensor& b) { return sum(multiply(a, b)).item(); };
      CHECK(dot(sums, x) == Approx(dot(y, ops::gather(x, along, index))));
      const Tensor numbers = ops::reshape(arange(0, count(shape), 1, float64), shape);
      const Tensor written = ops::gather(ops::scatter(x, along, index, numbers), along, index);
      CHECK(all(greater_equal(written, numbers)).item<bool>());
      CHECK(written.to_vector<double>() ==
            ops::gather(ops::scatter(turned, along, index, numbers), along, index).to_vector<double>());
    }
  }
}

TEST_CASE("negative indices count from the end") {
  const Tensor x = ops::reshape(arange(6, float32), {2, 3});
  const auto same = [](const Tensor& got, const Tensor& wanted) {
    CHECK(got.to_vector() == wanted.to_vector());
  };
  same(ops::index_select(x, 1, tensor({-1, 0, -3})), ops::index_select(x, 1, tensor({2, 0, 0})));
  same(ops::gather(x, 1, tensor({{-1, 0}, {1, -3}})), ops::gather(x, 1, tensor({{2, 0}, {1, 0}})));
  same(ops::scatter(x, 0, tensor({{-1, 0, -2}}), 9), ops::scatter(x, 0, tensor({{1, 0, 0}}), 9));
  const Tensor source = ones({2, 2});
  same(ops::scatter_add(x, 1, tensor({{-1, 2}, {-3, 0}}), source),
       ops::scatter_add(x, 1, tensor({{2, 2}, {0, 0}}), source));
  same(ops::index_add(x, 1, tensor({-1, 2}), source), ops::index_add(x, 1, tensor({2, 2}), source));
  same(ops::narrow(x, 1, -2, 2), ops::narrow(x, 1, 1, 2));
  CHECK_THROWS_AS(ops::narrow(x, 1, -4, 1), IndexError);
  CHECK_THROWS_AS(ops::narrow(x, 1, -2, 3), IndexError);
  CHECK_THROWS_AS(ops::embedding(tensor({-1}), x), IndexError);
  CHECK_THROWS_AS(ops::one_hot(tensor({-1}), 3), IndexError);
}

TEST_CASE("index_copy into rows: the last one of a row stays, with any number of threads") {
  const Tensor x = ops::cast(arange(0, 2 * 5 * 20'000), float32);
  const Tensor index = tensor({3, 0, 3, 3, 1});
  for (const Shape& shape :
       {Shape{10, 20'000}, Shape{2, 5, 20'000}, Shape{5, 2, 20'000}, Shape{40'000, 5, 1}}) {
    const Tensor own = ops::view(x, shape);
    const int64_t dim = shape.size() == 2 || shape[0] == 5 ? 0 : 1;
    Shape part = shape;
    part[static_cast<std::size_t>(dim)] = 5;
    const Tensor source = ops::view(ops::cast(arange(-count(part), 0), float32), part);
    for (const bool one_number : {false, true}) {
      const Tensor from = one_number ? ops::expand(ops::cast(tensor({-1.0}), float32), part) : source;
      for (const int threads : {1, 3}) {
        const ThreadsScope scope(threads);
        const Tensor y = ops::index_copy(own, dim, index, from);
        for (const auto& [row, given] : {std::pair{0, 1}, {1, 4}, {2, -1}, {3, 3}, {4, -1}}) {
          INFO(shape.size() << " dimensions, row " << row);
          const Tensor right = given < 0 ? ops::select(own, dim, row) : ops::select(from, dim, given);
          CHECK(ops::select(y, dim, row).to_vector() == right.to_vector());
        }
      }
    }
  }
}
