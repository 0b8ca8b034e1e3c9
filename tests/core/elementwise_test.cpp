#include "pleat/core/tensor/elementwise.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

/// The place in storage of the element of `t` that meets element `index` (row-major) of a tensor of shape
/// `shape`.
int64_t place(const Tensor& t, const Shape& shape, int64_t index) {
  int64_t at = 0;
  const std::size_t added = shape.size() - t.shape().size();
  for (std::size_t d = shape.size(); d-- > 0;) {
    const int64_t i = index % shape[d];
    index /= shape[d];
    if (d >= added && t.shape()[d - added] != 1) at += i * t.strides()[d - added];
  }
  return at;
}

double element(const Tensor& t, int64_t at) {
  return dispatch(t.dtype(), [&]<class T>(Type<T>) {
    const T value = t.data<T>()[at];
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      return static_cast<double>(static_cast<float>(value));
    else
      return static_cast<double>(value);
  });
}

/// Tensors of random layout: dimensions in any order in memory, some with gaps.
class Layouts {
 public:
  explicit Layouts(unsigned seed) : random_(seed) {}

  int64_t pick(std::initializer_list<int64_t> choices) { return choices.begin()[random_() % choices.size()]; }

  Tensor make(const Shape& shape, DType dtype) {
    std::vector<std::size_t> order(shape.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (random_() % 2 == 0) std::shuffle(order.begin(), order.end(), random_);
    Strides strides(shape.size());
    int64_t next = pick({1, 1, 1, 2});
    for (std::size_t k = order.size(); k-- > 0;) {
      strides[order[k]] = next;
      next *= shape[order[k]] + pick({0, 0, 0, 1});
    }
    const int64_t offset = pick({0, 3});
    const Tensor storage = full({next + offset + 1}, 1, {.dtype = dtype});
    return storage.as_strided(shape, strides, offset);
  }

  Shape shape(std::size_t rank, std::initializer_list<int64_t> sizes) {
    Shape result(rank);
    for (int64_t& size : result) size = pick(sizes);
    return result;
  }

  /// A shape that broadcasts to this one.
  Shape narrower(const Shape& shape) {
    Shape result(shape.begin() + pick({0, 0, static_cast<int64_t>(random_() % (shape.size() + 1))}),
                 shape.end());
    for (int64_t& size : result)
      if (random_() % 3 == 0) size = 1;
    return result;
  }

  void fill(const Tensor& t, int64_t largest) {
    dispatch(t.dtype(), [&]<class T>(Type<T>) {
      for (int64_t i = 0; i < t.numel(); ++i) {
        const auto value = static_cast<float>(random_() % static_cast<unsigned>(largest + 1));
        t.data<T>()[place(t, t.shape(), i)] = static_cast<T>(value);
      }
    });
  }

 private:
  std::mt19937 random_;
};

template <class T>
void add_twice(const Tensor& out, const Tensor& a, const Tensor& b) {
  elementwise<T, T, T>("probe", out, {a, b}, [](T* y, int64_t n, auto p, auto q) {
    for (int64_t i = 0; i < n; ++i) y[i] = p[i] + 2 * q[i];
  });
}

/// out = a + 2 b computed in T, against one element after the other.
template <class T>
void check_against_indices(Layouts& layouts, const Shape& shape) {
  const DType types[] = {uint8, int32, int64, bfloat16, float16, float32, float64, boolean};
  const auto type = [&](int64_t count) {
    return types[layouts.pick({0, 1, 2, 3, 4, 5, 5, 5, 6, 6, 7}) % count];
  };
  const Tensor out = layouts.make(shape, type(7));
  const Tensor a = layouts.make(layouts.narrower(shape), type(8));
  const Tensor b = layouts.make(layouts.narrower(shape), type(8));
  layouts.fill(a, a.dtype() == boolean ? 1 : 5);
  layouts.fill(b, b.dtype() == boolean ? 1 : 3);
  const Tensor whole = out.as_strided({out.impl().storage->size / size_of(out.dtype())}, {1}, 0);
  ops::fill(whole, 99);
  CAPTURE(out.describe(), a.describe(), b.describe());
  add_twice<T>(out, a, b);
  std::vector<bool> written(static_cast<std::size_t>(whole.numel()));
  bool right = true;
  for (int64_t i = 0; i < out.numel(); ++i) {
    const int64_t at = place(out, shape, i);
    written[static_cast<std::size_t>(out.offset() + at)] = true;
    right = right && element(out, at) == element(a, place(a, shape, i)) + 2 * element(b, place(b, shape, i));
  }
  CHECK(right);
  bool untouched = true;
  for (int64_t i = 0; i < whole.numel(); ++i)
    untouched = untouched && (written[static_cast<std::size_t>(i)] || element(whole, i) == 99);
  CHECK(untouched);
}

}  // namespace

TEST_CASE("the elementwise loop takes operands of any layout, type and broadcast shape", "[cpu]") {
  Layouts layouts(7);
  for (int round = 0; round < 400; ++round) {
    const auto rank = static_cast<std::size_t>(layouts.pick({0, 1, 2, 3, 4, 5}));
    // Runs short and long, chunks that end inside of runs.
    const Shape shape =
        rank <= 2 ? layouts.shape(rank, {1, 2, 7, 16, 130, 521, 0}) : layouts.shape(rank, {1, 2, 3, 5, 8});
    check_against_indices<float>(layouts, shape);
    check_against_indices<double>(layouts, shape);
    check_against_indices<int64_t>(layouts, shape);
  }
}

TEST_CASE("threads share the elementwise loop at any element", "[cpu]") {
  const int threads = num_threads();
  set_num_threads(3);
  Layouts layouts(11);
  for (const Shape& shape : {Shape{100003}, Shape{77, 1300}, Shape{3, 16, 41, 43}, Shape{16, 9, 700}})
    for (int round = 0; round < 6; ++round) check_against_indices<float>(layouts, shape);
  set_num_threads(threads);
}

TEST_CASE("windows that overlap are gathered apart, wherever a thread begins", "[cpu]") {
  const int threads = num_threads();
  set_num_threads(3);
  // Each plane repeats its run, which is the next plane's, moved on by one element.
  const Tensor line = arange(0, 80, 1, {.dtype = float32});
  const Tensor out = empty({64, 300, 15});
  add_twice<float>(out, zeros({1}), line.as_strided({64, 300, 15}, {1, 0, 1}, 0));
  const std::vector<float> values = out.to_vector();
  for (std::size_t i = 0; i < values.size(); ++i)
    REQUIRE(values[i] == 2 * static_cast<float>(i / (300 * 15) + i % 15));
  set_num_threads(threads);
}

TEST_CASE("operands that overlap the written one are read before", "[cpu]") {
  const Tensor x = arange(0, 6, 1, {.dtype = float32});
  const Tensor matrix = x.as_strided({2, 2}, {2, 1}, 0);
  const Tensor transposed = x.as_strided({2, 2}, {1, 2}, 0);
  add_twice<float>(matrix, matrix, transposed);  // [[0, 1], [2, 3]] + 2 [[0, 2], [1, 3]]
  CHECK(x.to_vector() == std::vector<float>{0, 5, 4, 9, 4, 5});
  const Tensor shifted = x.as_strided({5}, {1}, 1);
  const Tensor first = x.as_strided({5}, {1}, 0);
  add_twice<float>(shifted, first, zeros({1}));
  CHECK(x.to_vector() == std::vector<float>{0, 0, 5, 4, 9, 4});
  // A row broadcast over the matrix it belongs to.
  const Tensor grid = arange(0, 4, 1, {.dtype = float32});
  add_twice<float>(grid.as_strided({2, 2}, {2, 1}, 0), grid.as_strided({2, 2}, {2, 1}, 0),
                   grid.as_strided({2}, {1}, 0));
  CHECK(grid.to_vector() == std::vector<float>{0, 3, 2, 5});
  // Other parts of one storage are no overlap.
  add_twice<float>(grid.as_strided({2}, {1}, 0), grid.as_strided({2}, {1}, 2), grid.as_strided({2}, {1}, 2));
  CHECK(grid.to_vector() == std::vector<float>{6, 15, 2, 5});
}

TEST_CASE("the elementwise loop refuses what it cannot do", "[cpu]") {
  const Tensor x = ones({3});
  CHECK_THROWS_WITH(add_twice<float>(x, ones({2}), ones({3})),
                    Contains("probe: [2] does not broadcast to [3]"));
  CHECK_THROWS_WITH(add_twice<float>(x, ones({2, 3}), ones({3})),
                    Contains("probe: [2, 3] does not broadcast to [3]"));
  CHECK_THROWS_WITH(add_twice<float>(x.as_strided({2, 3}, {0, 1}, 0), x, x),
                    Contains("whose elements share memory"));
  CHECK(x.to_vector() == std::vector<float>{1, 1, 1});
  const uint64_t before = x.version();
  add_twice<float>(x, x, x);
  CHECK(x.version() > before);
}

TEST_CASE("results lie in memory as parts of a tensor do") {
  const Tensor images = randn({2, 6, 5, 4}).to(MemoryFormat::channels_last);
  const Tensor half = narrow(images, 1, 2, 3);
  CHECK((half * 2).is_contiguous(MemoryFormat::channels_last));
  CHECK(array_equal(half * 2, half.contiguous() * 2));
  CHECK(slice(images, 3, 0, 4, 2).to(float64).is_contiguous(MemoryFormat::channels_last));
  // The first that is dense decides, and what is expanded does not.
  CHECK((half + zeros(half.shape())).is_contiguous());
  CHECK((expand(randn({3, 1}), {3, 4}) + 1.0).is_contiguous());
  CHECK((narrow(randn({4, 6}), 1, 1, 3) * 2).is_contiguous());
  const Tensor part = narrow(transpose(randn({4, 6}), 0, 1), 0, 1, 3);
  CHECK((part * 2).strides() == Strides{1, 3});
  CHECK(array_equal(part * 2, part.contiguous() * 2));
}

TEST_CASE("casts of dense tensors are those of their elements") {
  const Tensor x = randn({3, 5, 7, 9}) * 100;
  for (const Tensor& from : {x, x.to(MemoryFormat::channels_last), transpose(x, 0, 3)})
    for (const DType type : {float16, bfloat16, float64, int32, uint8, boolean}) {
      const Tensor to = from.to(type);
      CHECK(to.strides() == from.strides());
      CHECK(array_equal(to.contiguous(), from.contiguous().to(type)));
      CHECK(array_equal(narrow(from, 1, 1, 3).to(type), narrow(to, 1, 1, 3)));
    }
}
