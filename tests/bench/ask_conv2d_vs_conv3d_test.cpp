#include "pleat/bench/ask/questions.h"
#include "pleat/core/random/random.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using namespace pleat::bench::ask::conv2d_vs_conv3d;
using ops::ConvPass;
using pleat::test::contains;
using pleat::test::made_up;
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

TEST_CASE("A convolution that is not reduced gives what a call gives, in all passes", "[ask]") {
  manual_seed(7);
  const Tensor x = randn({2, 3, 4, 5, 6}, {.dtype = float64}), w = randn({5, 3, 1, 3, 3}, {.dtype = float64});
  const Tensor dy = randn({2, 5, 4, 5, 6}, {.dtype = float64});
  for (const char* name : {"direct", "unfold", "reference"}) {
    const ConvOptions options{.padding = {0, 1, 1}, .implementation = name};
    CHECK(relative_error(unreduced_pass(ConvPass::forward, name, x, w, dy.shape(), options),
                         ops::conv_forward(x, w, {}, options)) < 1e-14);
    CHECK(relative_error(unreduced_pass(ConvPass::backward_input, name, dy, w, x.shape(), options),
                         ops::conv_backward_input(dy, w, x.shape(), options)) < 1e-14);
    CHECK(relative_error(unreduced_pass(ConvPass::backward_weight, name, dy, x, w.shape(), options),
                         ops::conv_backward_weight(dy, x, w.shape(), options)) < 1e-14);
  }
  CHECK_THROWS_AS(unreduced_pass(ConvPass::forward, "winograd", x, w, dy.shape(), {}), ValueError);
}

namespace {

/// Milliseconds of the backward of conv2d, of conv3d, and of conv3d that is not reduced.
Times made_up_times(double conv2d, double conv3d, double stated, double spread = 0.02) {
  return {{"direct", "conv2d", "backward", made_up(conv2d, spread)},
          {"direct", "conv3d", "backward", made_up(conv3d, spread)},
          {"direct", not_reduced, "backward", made_up(stated, spread)}};
}

}  // namespace

TEST_CASE("conv2d-vs-conv3d concludes from the times, whatever they are", "[ask]") {
  const auto expected = conclude(made_up_times(10, 10.1, 30), 0, Device());
  CHECK(contains(expected, "bit for bit"));
  CHECK(contains(expected, "direct, backward: conv3d and conv2d are level"));
  CHECK(contains(expected, "without the reduction to two dimensions it would take 3.0 times as long"));

  const auto surprising = conclude(made_up_times(10, 20, 10), 1e-7, Device());
  CHECK(contains(surprising, "conv2d and conv3d differ by 1.0e-07"));
  CHECK(contains(surprising, "conv3d takes 2.0 times as long as conv2d"));
  CHECK(contains(surprising, "it would take less time, only 0.50 of it"));
  CHECK(contains(conclude(made_up_times(10, 10, 10), 0, Device()), "makes no difference to it"));
  CHECK(contains(conclude(made_up_times(10, 10, 13, 0.2), 0, Device()), "is lost in the noise (ratio 1.30)"));
}

TEST_CASE("conv2d-vs-conv3d says how careless timing misleads, and when it does not", "[ask]") {
  const auto conclude_with = [](const std::string& how, double conv2d, double conv3d, Device device) {
    Times times = made_up_times(10, 10, 30);
    times.add({careless, how, "conv2d", made_up(conv2d)});
    times.add({careless, how, "conv3d", made_up(conv3d)});
    return conclude(times, 0, device);
  };
  CHECK(contains(conclude_with("no warm-up, conv2d first", 30, 10, Device()),
                 "no warm-up, conv2d first: conv3d / conv2d seems to be 0.33 and is 1.00, a wrong answer"));
  CHECK(contains(conclude_with("no warm-up, conv2d first", 30, 31, Device()),
                 "seems to be 1.03 and is 1.00, which is close enough here"));
  CHECK(contains(conclude_with(not_waiting, 0.01, 0.1, Device()), "nothing to wait for"));
  CHECK(contains(conclude_with(not_waiting, 0.01, 0.1, DeviceType::cuda),
                 "host clock, not waiting for the device: conv3d / conv2d seems to be 10 and is 1.00; the "
                 "clock says 10.0 µs for conv2d where the device works for 10.0 ms"));
}
