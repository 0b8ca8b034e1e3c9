#include <limits>

#include "pleat/bench/ask/questions.h"
#include "pleat/core/random/random.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/unfold/unfold.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using pleat::test::contains;
using pleat::test::made_up;
using pleat::test::relative_error;

TEST_CASE("A convolution from pad, unfold, einsum and fold is a convolution, in 1, 2 and 3 dimensions",
          "[ask]") {
  manual_seed(3);
  const Tensor bias = randn({5}, {.dtype = float64});
  for (const Shape& input : std::vector<Shape>{{2, 3, 9}, {2, 3, 6, 7}, {2, 3, 4, 5, 6}}) {
    Shape weight{5, 3};
    weight.resize(input.size(), 3);
    weight.back() = 2;  // not square
    const Tensor x = randn(input, {.dtype = float64}), w = randn(weight, {.dtype = float64});
    for (const int64_t padding : {0, 1}) {
      const Tensor wanted = input.size() == 3   ? conv1d(x, w, bias, {.padding = padding})
                            : input.size() == 4 ? conv2d(x, w, bias, {.padding = padding})
                                                : conv3d(x, w, bias, {.padding = padding});
      CHECK(relative_error(conv_fast(x, w, bias, padding, Windows::im2col), wanted) < 1e-14);
      CHECK(relative_error(conv_fast(x, w, bias, padding, Windows::one_hot), wanted) < 1e-14);
    }
  }
}

TEST_CASE("One-hot filters lay windows out as unfold does", "[ask]") {
  const Tensor x = randn({2, 3, 5, 6});
  const Tensor filters = one_hot_filters(3, {2, 3}, x);
  CHECK(filters.shape() == Shape{18, 1, 2, 3});
  const Tensor windows = conv2d(x, filters, {.groups = 3, .format = MemoryFormat::contiguous});
  CHECK(windows.to_vector() == unfold(x, {.kernel_size = {2, 3}}).to_vector());
}

namespace {

/// A spread of the quartiles may be given.
Times times(double conv, double im2col, double one_hot, double spread = 0.02) {
  Times all;
  all.add("2-D float32", "convolution", forward, made_up(conv, spread));
  all.add("2-D float32", "fast, im2col", forward, made_up(im2col, spread, true));
  all.add("2-D float32", "fast, one-hot filters", forward, made_up(one_hot, spread));
  return all;
}

}  // namespace

TEST_CASE("faster-convolution concludes from the times, whatever they are", "[ask]") {
  const auto expected = conclude_faster_convolution(times(10, 80, 160));
  CHECK(contains(expected,
                 "2-D float32, forward, beside convolution: fast, im2col takes 8.00 times as long (7.69 to "
                 "8.33); fast, one-hot filters takes 16.0 times as long"));
  CHECK(contains(expected, "All ways agree with float64"));

  CHECK(contains(conclude_faster_convolution(times(80, 20, 10)), "fast, im2col takes 0.250 times as long"));
  CHECK(contains(conclude_faster_convolution(times(10, 10, 30)), "fast, im2col is level"));
  CHECK(contains(conclude_faster_convolution(times(10, 13, 30, 0.2)),
                 "fast, im2col cannot be told apart in the noise"));
}

TEST_CASE("faster-convolution names the piece that takes most of the time, not the sum of all", "[ask]") {
  Times all = times(10, 80, 160);
  for (const auto& [piece, time] :
       {std::pair{"unfold", 20.0}, {"einsum", 50.0}, {"fold", 9.0}, {"bias", 1.0}, {"sum", 80.0}})
    all.add("2-D float32", "fast, im2col", forward, made_up(time), piece);
  CHECK(contains(conclude_faster_convolution(all),
                 "2-D float32, fast, im2col, forward: einsum takes 62 % of the time of all pieces."));
  CHECK_FALSE(contains(conclude_faster_convolution(all), "one-hot filters, forward: "));
}

TEST_CASE("faster-convolution distrusts what is wrong", "[ask]") {
  CHECK(is_explained(1e-7, float32, "fast, im2col"));
  CHECK_FALSE(is_explained(1e-3, float32, "fast, im2col"));
  CHECK(is_explained(1e-3, float32, "convolution, TF32"));
  CHECK(is_explained(1e-3, float16, "convolution"));
  CHECK_FALSE(is_explained(5e-3, float16, "convolution"));
  CHECK(is_explained(5e-3, bfloat16, "convolution"));
  CHECK_FALSE(is_explained(std::numeric_limits<double>::infinity(), bfloat16, "convolution"));
  CHECK_FALSE(is_explained(std::numeric_limits<double>::quiet_NaN(), bfloat16, "convolution"));

  Times all = times(10, 80, 160);
  all.records[1].set_detail("error", "more than its type explains");
  CHECK(contains(conclude_faster_convolution(all),
                 "so that their times mean nothing: 2-D float32, fast, im2col."));
  CHECK_FALSE(contains(conclude_faster_convolution(all), "All ways agree"));
  all.records[2].set_detail("error", "more than its type explains");
  CHECK(contains(conclude_faster_convolution(all), "fast, im2col; 2-D float32, fast, one-hot filters."));
}

TEST_CASE("faster-convolution names the time that a first call falsifies most", "[ask]") {
  Times all = times(10, 80, 160);
  all.records[1].time->first_call = 0.8;
  CHECK(contains(conclude_faster_convolution(all),
                 "misled most by 2-D float32, fast, im2col: 800 ms instead of 80.0 ms"));
}
