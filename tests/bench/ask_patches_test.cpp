#include "pleat/bench/ask/questions.h"
#include "pleat/core/random/random.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using namespace pleat::bench::ask::patches;
using pleat::test::contains;
using pleat::test::made_up;
using pleat::test::relative_error;

TEST_CASE("All ways to convolve patches with one filter bank give the same", "[ask]") {
  manual_seed(9);
  const Tensor x = randn({2, 5, 3, 4, 6}, {.dtype = float64}),
               filters = randn({7, 3, 3, 3}, {.dtype = float64});
  const Tensor wanted = as_batch(x, filters, "reference");
  CHECK(wanted.shape() == Shape{2, 5, 7, 4, 6});
  CHECK(relative_error(as_batch(x, filters), wanted) < 1e-14);
  CHECK(relative_error(as_frames(x, filters), wanted) < 1e-14);
  CHECK(relative_error(by_unfold(x, filters), wanted) < 1e-14);
}

namespace {

/// Of 10 and 100 patches with 1,000 results each; the batch takes `small` and `large`, and an image of
/// 200,000 results takes `image`.
std::vector<std::string> conclude_from(double small, double large, double frames, double unfold,
                                       double image) {
  Times times;
  const auto add = [&](const std::string& problem, const std::string& way, double milliseconds) {
    for (const char* pass : {"forward", "backward"})
      times.add({problem, way, pass, made_up(milliseconds / 2)});
  };
  add("10 patches", "a batch, direct", small);
  add("100 patches", "a batch, direct", large);
  add("100 patches", "(1, 3, 3) conv3d", frames);
  add("100 patches", "unfold and product", unfold);
  add(dense, dense, image);
  return conclude(times, {{"10 patches", 10, 10000}, {"100 patches", 100, 100000}, {dense, 0, 200000}});
}

}  // namespace

TEST_CASE("patches concludes from the times, whatever they are", "[ask]") {
  const auto expected = conclude_from(1, 10, 20, 80, 20);
  CHECK(contains(expected,
                 "The fastest way for 100 patches, forward and backward, is \"a batch, direct\" (10.0 ms)"));
  CHECK(contains(expected, "(1, 3, 3) conv3d takes 2.0 times as long as a batch, direct"));
  CHECK(contains(expected, "unfold and product takes 8.0 times as long as a batch, direct"));
  CHECK(contains(expected, "one dense image of 2.0 as many elements"));
  CHECK(contains(expected, "it makes no difference that the image is in pieces"));
  CHECK(
      contains(expected, "From 10 to 100 patches, 10 times the work, its time grows 10-fold: in proportion"));

  const auto surprising = conclude_from(1, 20, 10, 80, 10);
  CHECK(contains(surprising, "is \"(1, 3, 3) conv3d\" (10.0 ms)"));
  CHECK(contains(surprising, "small patches cost 2.0 times as much"));
  CHECK_FALSE(contains(surprising, "conv3d takes"));
  CHECK(contains(conclude_from(1, 20, 30, 80, 80), "small patches cost only 0.50 of that"));
  CHECK(contains(conclude_from(1, 20, 30, 80, 80), "a patch costs more among many"));
  CHECK(contains(conclude_from(5, 20, 30, 80, 80), "a patch costs more among few"));
  CHECK_FALSE(contains(conclude_from(1, 10, 30, 80, 80), "out of proportion"));
  CHECK(contains(
      conclude_from(1, 20, 30, 80, 80),
      "From 10 to 100 patches, the time of \"a batch, direct\" grows 20-fold, far out of proportion."));
}
