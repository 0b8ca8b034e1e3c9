#include "pleat/core/tensor/tensor.h"

#include <sstream>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"

using namespace pleat;

TEST_CASE("tensors are made from nested lists and read back") {
  const Tensor t = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(t.shape() == Shape{2, 3});
  CHECK(t.dtype() == int64);
  CHECK(t.to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(tensor({1.5, 2.0}).dtype() == float32);
  CHECK(tensor({true, false}).dtype() == boolean);
  CHECK_THROWS_WITH((tensor({{1, 2}, {3}})), "tensor: lists of one level must be equally long, got 2 and 1");
  CHECK(scalar(3).item<int>() == 3);
}

TEST_CASE("every type converts to every other, through any layout") {
  const Tensor x = tensor({{0, 1, 2}, {3, 4, 250}});
  for (const DType a : {boolean, uint8, int32, int64, bfloat16, float16, float32, float64})
    for (const DType b : {uint8, int32, int64, bfloat16, float16, float32, float64}) {
      const Tensor from = ops::cast(x, a);
      const Tensor transposed = from.as_strided({3, 2}, {1, 3}, 0);
      const Tensor to = ops::cast(transposed, b);
      const auto expected =
          a == boolean ? std::vector<double>{0, 1, 1, 1, 1, 1} : std::vector<double>{0, 3, 1, 4, 2, 250};
      CHECK(to.to_vector<double>() == expected);
    }
}

TEST_CASE("memory formats are strides") {
  const Tensor x = ops::cast(arange(2 * 3 * 4 * 5), float32).as_strided({2, 3, 4, 5}, {60, 20, 5, 1}, 0);
  const Tensor y = ops::to_format(x, MemoryFormat::channels_last);
  CHECK(y.strides() == Strides{60, 1, 15, 3});
  CHECK(y.memory_format() == MemoryFormat::channels_last);
  CHECK(y.to_vector<float>() == x.to_vector<float>());
  CHECK(ops::to_format(y, MemoryFormat::contiguous).to_vector<float>() == x.to_vector<float>());
}

TEST_CASE("memory formats change places by tiles of every size") {
  for (const DType dtype : {uint8, float16, int32, float32, float64})
    for (const int64_t channels : {0, 3, 8, 21, 77, 600})
      for (const int64_t pixels : {1, 8, 35, 130, 700}) {
        const int64_t images = 2;
        const int64_t size = images * channels * pixels;
        std::vector<int> values, expected;  // these fit every type
        for (int64_t i = 0; i < size; ++i) values.push_back(static_cast<int>(i * i % 251));
        for (int64_t n = 0; n < images; ++n)
          for (int64_t p = 0; p < pixels; ++p)
            for (int64_t c = 0; c < channels; ++c)
              expected.push_back(values[static_cast<std::size_t>((n * channels + c) * pixels + p)]);
        const Tensor x = ops::cast(from_vector(values, {images, channels, pixels}), dtype);
        const Tensor y = ops::to_format(x, MemoryFormat::channels_last);
        CHECK(y.as_strided({size}, {1}, 0).to_vector<int>() == expected);
        const Tensor z = ops::to_format(y, MemoryFormat::contiguous);
        CHECK(z.as_strided({size}, {1}, 0).to_vector<int>() == values);
      }
}

TEST_CASE("a tensor prints as people know it", "[cpu]") {
  CHECK(to_string(tensor({{1, -20}, {3, 4}})) == "[[  1, -20],\n [  3,   4]]");
  CHECK(to_string(tensor({1.0, 0.5})) == "[1.0000, 0.5000]");
  CHECK(to_string(zeros({40, 40})) ==
        "[[0., 0., 0., ..., 0., 0., 0.],\n [0., 0., 0., ..., 0., 0., 0.],\n [0., 0., 0., ..., 0., 0., 0.],\n "
        "...,\n"
        " [0., 0., 0., ..., 0., 0., 0.],\n [0., 0., 0., ..., 0., 0., 0.],\n [0., 0., 0., ..., 0., 0., 0.]] "
        "[40, 40]");
}

namespace of_a_user {  // who does not write `using namespace pleat`

std::string printed(const pleat::Tensor& x) {
  std::ostringstream out;
  out << x.shape() << x.strides() << ' ' << x.dtype() << ' ' << x.device() << ' ' << x.memory_format();
  return out.str();
}

}  // namespace of_a_user

TEST_CASE("what a tensor is prints, too", "[cpu]") {
  CHECK(of_a_user::printed(empty({2, 3, 4, 5}, {.dtype = float16, .format = MemoryFormat::channels_last})) ==
        "[2, 3, 4, 5][60, 1, 15, 3] float16 cpu channels_last");
  CHECK(of_a_user::printed(scalar(1)) == "[][] int64 cpu contiguous");
  std::ostringstream out;
  out << Sizes{7, 8};
  CHECK(out.str() == "[7, 8]");
}
