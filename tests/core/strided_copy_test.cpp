#include "pleat/core/tensor/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "pleat/core/parallel/parallel.h"
#include "pleat/core/parallel/threads_scope.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

/// The numbers 0, 1 ... as bytes of different elements.
Tensor counting(const Shape& shape, DType dtype) {
  const Tensor x = empty(shape, {.dtype = dtype, .device = Device()});
  const auto bytes = static_cast<std::size_t>(size_of(dtype));
  for (int64_t i = 0; i < x.numel(); ++i) {
    const auto number = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u | 1;
    std::memcpy(x.raw() + i * static_cast<int64_t>(bytes), &number, bytes);
  }
  return x;
}

int64_t place(const Tensor& x, int64_t row_major) {
  int64_t at = 0;
  for (std::size_t d = x.shape().size(); d-- > 0;) {
    at += row_major % x.shape()[d] * x.strides()[d];
    row_major /= x.shape()[d];
  }
  return at;
}

/// Copies and compares each element's bytes, and what lies between them.
void check_copied(const Tensor& to, const Tensor& from) {
  CAPTURE(to.shape(), to.strides(), from.strides(), to.dtype());
  copy_strided(to, from);
  const auto bytes = static_cast<std::size_t>(size_of(to.dtype()));
  int64_t wrong = 0;
  for (int64_t i = 0; i < to.numel(); ++i) {
    const auto size = static_cast<int64_t>(bytes);
    if (std::memcmp(to.raw() + place(to, i) * size, from.raw() + place(from, i) * size, bytes) != 0) ++wrong;
  }
  CHECK(wrong == 0);
}

Tensor flipped(const Tensor& x, std::size_t dim) {
  Strides strides = x.strides();
  strides[dim] = -strides[dim];
  return x.as_strided(x.shape(), strides, x.offset() + (x.shape()[dim] - 1) * x.strides()[dim]);
}

constexpr std::array element_types = {uint8, float16, float32, int64};

}  // namespace

TEST_CASE("copies between all orders of dimensions, for elements of any size", "[copy]") {
  for (const DType dtype : element_types)
    for (const Shape& shape : {Shape{70, 131}, Shape{3, 37, 40}, Shape{5, 2, 33, 9}, Shape{3, 4, 2, 5, 7}}) {
      std::vector<int64_t> order(shape.size());
      std::iota(order.begin(), order.end(), int64_t{0});
      const Tensor x = counting(shape, dtype);
      do {
        const Tensor permuted = permute(x, Dims(order));
        check_copied(empty(permuted.shape(), {.dtype = dtype, .device = Device()}), permuted);
        // And into an order, from rows without gaps.
        check_copied(permute(counting(shape, dtype), Dims(order)), counting(permuted.shape(), dtype));
      } while (std::next_permutation(order.begin(), order.end()));
    }
}

TEST_CASE("images of few channels from one format to the other", "[copy]") {
  for (const DType dtype : element_types)
    for (const int64_t channels : {2, 3, 4, 5})
      for (const int64_t pixels : {1, 3, 7, 8, 9, 15, 16, 17, 33, 1000}) {
        const Tensor planes = counting({2, channels, pixels}, dtype);
        const Tensor turned = permute(planes, {0, 2, 1});
        check_copied(counting(turned.shape(), dtype), turned);
        check_copied(permute(counting(turned.shape(), dtype), {0, 2, 1}), planes);
        // Between the rows of either side lies something else.
        const Tensor wide = counting({2, channels, pixels + 3}, dtype);
        const Tensor part = permute(narrow(wide, 2, 1, pixels), {0, 2, 1});
        check_copied(counting(turned.shape(), dtype), part);
        check_copied(part, counting(turned.shape(), dtype));
      }
}

TEST_CASE("copies of parts, steps, flips and repeats leave what lies between alone", "[copy][cpu]") {
  for (const DType dtype : element_types) {
    const Tensor x = counting({4, 19, 45}, dtype);
    for (const std::size_t dim : {0, 1, 2}) {
      const Tensor from = flipped(x, dim);
      check_copied(counting(x.shape(), dtype), from);
      check_copied(counting(x.shape(), dtype), flipped(from, (dim + 1) % 3));
      const auto d = static_cast<int64_t>(dim);
      for (const int64_t step : {1, 2, 3}) {
        const Tensor part = slice(x, d, 1, 45, step);
        const Tensor whole = zeros({4, 19, 90}, {.dtype = dtype, .device = Device()});
        const Tensor to =
            narrow(narrow(slice(whole, 2, 3, 90, 2).as_strided(part.shape(), {19 * 90, 90, 2}, 3), 0, 0,
                          part.size(0)),
                   1, 0, part.size(1));
        check_copied(to, part);
        const Tensor between = slice(whole, 2, 0, 90, 2);
        for (int64_t i = 0; i < between.numel(); ++i)
          REQUIRE(std::to_integer<int>(between.raw()[place(between, i) * size_of(dtype)]) == 0);
      }
    }
    check_copied(empty({4, 3, 19, 45}, {.dtype = dtype, .device = Device()}),
                 expand(unsqueeze(x, 1), {4, 3, 19, 45}));
    check_copied(empty({4, 19, 45, 3}, {.dtype = dtype, .device = Device()}),
                 x.as_strided({4, 19, 45, 3}, {19 * 45, 45, 1, 0}, 0));
    check_copied(empty({45, 19, 20, 4}, {.dtype = dtype, .device = Device()}),
                 x.as_strided({45, 19, 20, 4}, {1, 45, 0, 19 * 45}, 0));
    check_copied(empty({}, {.dtype = dtype, .device = Device()}), x.as_strided({}, {}, 7));
    check_copied(empty({3, 0, 2}, {.dtype = dtype, .device = Device()}), zeros({3, 0, 2}, dtype));
  }
}

TEST_CASE("copies of lines at any distance of their places", "[copy]") {
  const Tensor x = counting({9000}, uint8);
  for (int64_t from = 0; from < 3; ++from)
    for (int64_t to = 0; to < 20; ++to)
      for (const int64_t length : {1, 9, 17, 33, 1025, 8192})
        check_copied(narrow(counting({9000}, uint8), 0, to, length), narrow(x, 0, from, length));
}

TEST_CASE("copies so large that they pass by the caches", "[copy]") {
  // Of 17 MiB, with three columns beyond whole pieces; rows of the result that are whole cache lines and such
  // that are not.
  for (const DType dtype : {float16, float32}) {
    const int64_t rows = 1088, columns = (17 << 20) / rows / size_of(dtype) / 4 + 3;
    for (const int64_t wide : {rows, rows + 1}) {
      const Tensor x = counting({4, wide, columns}, dtype);
      const Tensor turned = permute(x, {0, 2, 1});
      check_copied(empty(turned.shape(), {.dtype = dtype, .device = Device()}), turned);
    }
    // Few rows, less than a square.
    const Tensor flat = counting({5, (17 << 20) / 5 / size_of(dtype)}, dtype);
    const Tensor turned = permute(flat, {1, 0});
    check_copied(empty(turned.shape(), {.dtype = dtype, .device = Device()}), turned);
  }
}

TEST_CASE("copies larger than a piece, by one thread and by several", "[copy]") {
  for (const int threads : {1, 3}) {
    const ThreadsScope scope(threads);
    const Tensor x = counting({2, 300, 517}, int32);
    for (const auto& order : {std::vector<int64_t>{0, 2, 1}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}}) {
      const Tensor permuted = permute(x, Dims(order));
      check_copied(empty(permuted.shape(), {.dtype = int32, .device = Device()}), permuted);
    }
    check_copied(counting(x.shape(), int32), flipped(x, 2));
    check_copied(counting({2, 300, 200}, int32), narrow(x, 2, 100, 200));
    // A part of a tensor over another part of it: read before it is written.
    const Tensor expected = ops::copy(narrow(x, 2, 0, 500));
    copy_strided(narrow(x, 2, 17, 500), narrow(x, 2, 0, 500));
    const bool same = narrow(x, 2, 17, 500).to_vector<int64_t>() == expected.to_vector<int64_t>();
    CHECK(same);
  }
}
