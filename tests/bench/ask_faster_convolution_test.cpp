#include <limits>

#include "pleat/autograd/functions/conv.h"
#include "pleat/autograd/functions/unfold.h"
#include "pleat/bench/ask/questions.h"
#include "pleat/core/random/random.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using namespace pleat::bench::ask::faster_convolution;
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
      CHECK(relative_error(conv_fast(x, w, bias, padding, Way::im2col), wanted) < 1e-14);
      CHECK(relative_error(conv_fast(x, w, bias, padding, Way::one_hot), wanted) < 1e-14);
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

const std::string problem = "2-D float32", off = "TF32: convolution off, product off";

/// A spread of the quartiles may be given.
Times times(double conv, double im2col, double one_hot, double spread = 0.02) {
  return {{problem, "conv2d", off, made_up(conv, spread), 1e-7},
          {problem, "conv2d_fast, im2col", off, made_up(im2col, spread), 1e-7},
          {problem, "conv2d_fast, one-hot filters", off, made_up(one_hot, spread), 1e-7}};
}

}  // namespace

TEST_CASE("faster-convolution concludes from the times, whatever they are", "[ask]") {
  const auto expected = conclude(times(10, 80, 160));
  CHECK(contains(expected, "2-D float32: conv2d_fast, im2col takes 8.0 times as long as conv2d"));
  CHECK(
      contains(expected, "unfolding with one-hot filters takes 2.0 times as long as unfolding with im2col"));
  CHECK(contains(expected, "So unfolding by hand costs time."));
  CHECK(contains(expected, "All ways agree with float64"));
  CHECK_FALSE(contains(expected, "with TF32"));

  const auto surprising = conclude(times(80, 20, 10));
  CHECK(contains(surprising, "conv2d takes 8.0 times as long as conv2d_fast, one-hot filters"));
  CHECK(contains(surprising, "So unfolding by hand saves time here."));
  CHECK(contains(conclude(times(10, 10.1, 30)), "So unfolding by hand gains nothing."));
  CHECK(contains(conclude(times(10, 13, 30, 0.2)), "So it is not clear which is faster."));
}

TEST_CASE("faster-convolution says what TF32 brings where it was measured, and distrusts what is wrong",
          "[ask]") {
  Times all = times(10, 80, 160);
  all.add({problem, "conv2d", "TF32: convolution on, product off", made_up(4), 4e-4});
  all.add({problem, "conv2d_fast, im2col", "TF32: convolution off, product on", made_up(79), 4e-4});
  const auto sentences = conclude(all);
  CHECK(contains(sentences, "conv2d without TF32 takes 2.5 times as long as conv2d with TF32"));
  CHECK(contains(sentences, "the error with TF32 is 4.0e-04, without it 1.0e-07"));
  CHECK(contains(sentences, "are level (80.0 ms and 79.0 ms"));

  all.cells()[1].error = 1e-3;
  CHECK(contains(conclude(all),
                 "conv2d_fast, im2col, float32 (TF32: convolution off, product off) is off by 1.0e-03"));
  all.cells()[1].error = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(contains(conclude(all), "All ways agree"));
}

TEST_CASE("faster-convolution names the time that a first call falsifies most", "[ask]") {
  Times all = times(10, 80, 160);
  all.cells()[1].time.first_call = 0.8;
  CHECK(contains(conclude(all),
                 "misled most by conv2d_fast, im2col, float32 (TF32: convolution off, product off): "
                 "800 ms instead of 80.0 ms"));
}
