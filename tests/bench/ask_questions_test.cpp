// What the questions of pleat-bench ask compute in several ways is the same in each.
#include "pleat/bench/ask/questions.h"
#include "pleat/ops/conv/call.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using pleat::test::relative_error;

TEST_CASE("Convolutions by hand are convolutions, and leave results in different layouts", "[ask]") {
  manual_seed(11);
  const Tensor x = randn({2, 3, 6, 5}, {.dtype = float64}), w = randn({4, 3, 3, 3}, {.dtype = float64});
  const Tensor wanted = conv2d(x, w, {.padding = 1});
  const Tensor columns = conv_by_product(x, w, 1, false), windows = conv_by_product(x, w, 1, true);
  CHECK(relative_error(columns, wanted) < 1e-14);
  CHECK(relative_error(windows, wanted) < 1e-14);
  CHECK(columns.memory_format() == MemoryFormat::contiguous);
  CHECK(windows.memory_format() == MemoryFormat::channels_last);
}

TEST_CASE("Frames of videos are the pictures in order", "[ask]") {
  const Tensor videos = randn({2, 3, 4, 5, 6});
  const Tensor frames = frames_of(videos);
  REQUIRE(frames.shape() == Shape{8, 3, 5, 6});
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t d = 0; d < 4; ++d)
      CHECK(array_equal(select(frames, 0, n * 4 + d), select(select(videos, 0, n), 1, d)));
}

TEST_CASE("The ways of conv2d-vs-conv3d are one convolution, solved in two dimensions or in three", "[ask]") {
  manual_seed(7);
  const Tensor videos = randn({2, 3, 6, 5, 7}), w = randn({4, 3, 1, 3, 3});
  for (const std::string& name : fast_implementations(videos, w, {.padding = {0, 1, 1}})) {
    const auto ways = frames_and_videos(videos, w, name);
    REQUIRE(ways.size() == 3);
    const Tensor y2 = ways[0].compute(), y3 = ways[1].compute(), padded = ways[2].compute();
    CHECK(padded.shape() == y3.shape());
    CHECK(relative_error(frames_of(y3), y2) < 1e-6);
    CHECK(relative_error(narrow(padded, 2, 1, 4), narrow(y3, 2, 1, 4)) < 1e-6);
    CHECK(relative_error(narrow(padded, 2, 0, 1), narrow(y3, 2, 0, 1)) == 1);  // zeros

    const auto solved = [&](const Way& way, const Padding& padding) {
      const ops::ConvProblem problem =
          ops::forward_call(way.inputs[0], way.inputs[1], {}, {.padding = padding}).problem;
      return ops::solved_problem(problem, *ops::all_conv_implementations().find(problem, ops::ConvPass::forward, name));
    };
    CHECK(solved(ways[0], 1).describe() == "n12 c3 k4 d1h5w7 r1x3x3 s1 p0x1x1");
    CHECK(solved(ways[1], {0, 1, 1}) == solved(ways[0], 1));
    CHECK(solved(ways[2], 1).batch == 2);
    CHECK(solved(ways[2], 1).output == ops::Spatial{6, 5, 7});
  }
}

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
      for (const Windows layout : {Windows::im2col, Windows::one_hot, Windows::none})
        CHECK(relative_error(FastConvolution{padding, layout}(x, w, bias), wanted) < 1e-14);
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

TEST_CASE("All ways to convolve patches with one filter bank give the same", "[ask]") {
  manual_seed(9);
  const Tensor x = randn({2, 5, 3, 4, 6}, {.dtype = float64}),
               filters = randn({7, 3, 3, 3}, {.dtype = float64});
  const Tensor wanted = as_batch(x, filters, "reference");
  CHECK(wanted.shape() == Shape{2, 5, 7, 4, 6});
  CHECK(relative_error(as_batch(x, filters), wanted) < 1e-14);
  CHECK(relative_error(as_frames(x, filters), wanted) < 1e-14);
  CHECK(relative_error(by_unfold(x, filters), wanted) < 1e-14);
  CHECK(relative_error(by_loop(x, filters), wanted) < 1e-14);
  CHECK(relative_error(as_groups(x, filters), wanted) < 1e-14);
}

TEST_CASE("unfold, product and fold by hand are conv2d, forward and backward", "[ask]") {
  manual_seed(5);
  const Tensor x = randn({3, 3, 7, 6}, {.dtype = float64}).set_requires_grad();
  const Tensor filters = randn({4, 27}, {.dtype = float64}).set_requires_grad();
  for (const int64_t padding : {0, 1}) {
    const Tensor conv = conv2d(x, reshape(filters, {4, 3, 3, 3}), {.padding = padding});
    const Tensor dy = randn(conv.shape(), {.dtype = float64});
    const Grads wanted = grad({conv}, {x, filters}, {dy});
    // Three images are parts of two and of one.
    for (const Tensor& hand :
         {conv_by_hand(x, filters, 3, padding), conv_in_parts(x, filters, 3, padding, 2)}) {
      CHECK(relative_error(hand, conv) < 1e-14);
      const Grads got = grad({hand}, {x, filters}, {dy});
      CHECK(relative_error(got[0], wanted[0]) < 1e-14);
      CHECK(relative_error(got[1], wanted[1]) < 1e-14);
    }
  }
}
