#include "pleat/autograd/backward.h"
#include "pleat/bench/ask/questions.h"
#include "pleat/core/random/random.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using pleat::test::contains;
using pleat::test::made_up;
using pleat::test::relative_error;

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

TEST_CASE("A convolution by hand is split into pieces that take time, forward and backward", "[ask]") {
  const Tensor x = randn({4, 3, 32, 32}).set_requires_grad();
  const Tensor filters = randn({4, 27}).set_requires_grad();
  const std::vector<double> pieces = time_pieces(x, filters, 3, 1, randn({4, 4, 32, 32}));
  REQUIRE(pieces.size() == 6);
  for (const double seconds : pieces) {
    CHECK(seconds > 0);
    CHECK(seconds < 60);
  }
  CHECK_FALSE(x.grad().defined());  // nothing is accumulated
}

TEST_CASE("unfold-speed concludes for each batch size, and which piece takes the time", "[ask]") {
  Times times;
  const std::string hand = "unfold, product, fold by hand";
  const auto add = [&](const std::string& problem, const std::string& way, double inference,
                       double training) {
    times.add(problem, way, forward, made_up(inference));
    times.add(problem, way, "training", made_up(training));
  };
  const auto add_piece = [&](const std::string& problem, const char* piece, double there, double back) {
    times.add(problem, hand, forward, made_up(there), piece);
    times.add(problem, hand, bench::ask::backward, made_up(back), piece);
  };
  add("batch 2", "conv2d, direct", 1, 3);
  add("batch 2", "conv2d, unfold", 0.5, 6);
  add("batch 2", hand, 4, 12);
  add_piece("batch 2", "unfold", 3, 6);
  add_piece("batch 2", "product", 1, 1);
  add_piece("batch 2", "fold", 0, 1);
  add("batch 512", "conv2d, direct", 100, 300);
  add("batch 512", hand, 50, 301);
  add("batch 512", "unfold, product by hand, in parts", 25, 400);
  add_piece("batch 512", "unfold", 1, 1);
  add_piece("batch 512", "product", 8, 1);
  add_piece("batch 512", "fold", 1, 98);
  const auto sentences = conclude_unfold_speed(times);
  CHECK(contains(sentences,
                 "batch 2, forward, beside conv2d, direct: conv2d, unfold takes 0.500 times as long (0.50 to "
                 "0.50); unfold, product, fold by hand takes 4.00 times as long"));
  CHECK(contains(sentences, "batch 2, training, beside conv2d, direct: conv2d, unfold takes 2.00 times"));
  CHECK(contains(sentences,
                 "batch 512, training, beside conv2d, direct: unfold, product by hand, in parts takes 1.33"));
  CHECK(contains(sentences, "; unfold, product, fold by hand is level (1.00 to 1.00)"));
  const std::string by_hand = ", unfold, product, fold by hand, ";
  CHECK(contains(sentences, "batch 2" + by_hand + "forward: unfold takes 75 % of the time of all pieces"));
  CHECK(contains(sentences, "batch 2" + by_hand + "backward: unfold takes 75 % of the time of all pieces"));
  CHECK(contains(sentences, "batch 512" + by_hand + "forward: product takes 80 % of the time of all pieces"));
  CHECK(contains(sentences, "batch 512" + by_hand + "backward: fold takes 98 % of the time of all pieces"));
  // What the faster way by hand gains.
  CHECK(
      contains(sentences,
               "batch 512, forward, beside unfold, product, fold by hand: unfold, product by hand, in parts "
               "takes 0.500 times as long"));
}
