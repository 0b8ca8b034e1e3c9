#include "pleat/bench/ask/questions.h"
#include "pleat/core/random/random.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using pleat::test::relative_error;

TEST_CASE("Frames of videos are the pictures in order", "[ask]") {
  const Tensor videos = randn({2, 3, 4, 5, 6});
  const Tensor frames = frames_of(videos);
  REQUIRE(frames.shape() == Shape{8, 3, 5, 6});
  const auto v = videos.to_vector(), f = frames.to_vector();
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t d = 0; d < 4; ++d)
        for (std::size_t i = 0; i < 30; ++i)
          REQUIRE(f[((n * 4 + d) * 3 + c) * 30 + i] == v[((n * 3 + c) * 4 + d) * 30 + i]);
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
      return ops::solved_problem(problem, *ops::find_conv(problem, ops::ConvPass::forward, name));
    };
    CHECK(solved(ways[0], 1).describe() == "n12 c3 k4 d1h5w7 r1x3x3 s1 p0x1x1");
    CHECK(solved(ways[1], {0, 1, 1}) == solved(ways[0], 1));
    CHECK(solved(ways[2], 1).batch == 2);
    CHECK(solved(ways[2], 1).output == ops::Spatial{6, 5, 7});
  }
}
