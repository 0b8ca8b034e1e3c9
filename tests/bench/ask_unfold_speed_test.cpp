#include "pleat/autograd/backward.h"
#include "pleat/autograd/functions/conv.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/bench/ask/unfold_speed.h"
#include "pleat/core/random/random.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using namespace pleat::bench::ask::unfold_speed;
using pleat::test::contains;
using pleat::test::made_up;
using pleat::test::relative_error;

TEST_CASE("unfold, product and fold by hand are conv2d, forward and backward", "[ask]") {
  manual_seed(5);
  const Tensor x = randn({2, 3, 7, 6}, {.dtype = float64}).set_requires_grad();
  const Tensor filters = randn({4, 27}, {.dtype = float64}).set_requires_grad();
  for (const int64_t padding : {0, 1}) {
    const Tensor by_hand = conv_by_hand(x, filters, 3, padding);
    const Tensor conv = conv2d(x, reshape(filters, {4, 3, 3, 3}), {.padding = padding});
    CHECK(relative_error(by_hand, conv) < 1e-14);
    const Tensor dy = randn(conv.shape(), {.dtype = float64});
    const Grads got = grad({by_hand}, {x, filters}, {dy});
    const Grads wanted = grad({conv}, {x, filters}, {dy});
    CHECK(relative_error(got[0], wanted[0]) < 1e-14);
    CHECK(relative_error(got[1], wanted[1]) < 1e-14);
  }
}

TEST_CASE("Hooks on gradients split a backward into pieces that take time", "[ask]") {
  const Tensor x = randn({4, 3, 32, 32}).set_requires_grad();
  const Tensor filters = randn({4, 27}).set_requires_grad();
  const Pieces pieces = backward_pieces(x, filters, 3, 1, randn({4, 4, 32, 32}));
  CHECK(pieces.unfold > 0);
  CHECK(pieces.product > 0);
  CHECK(pieces.fold > 0);
  CHECK(pieces.unfold + pieces.product + pieces.fold < 60);
  CHECK_FALSE(x.grad().defined());  // nothing is accumulated
}

TEST_CASE("unfold-speed concludes for each batch size, and which piece takes the time", "[ask]") {
  const auto sentences = conclude({{2, "direct", made_up(1), made_up(1), made_up(2)},
                                   {2, "unfold", made_up(0.5), made_up(2), made_up(4)},
                                   {2, "by hand", made_up(4), made_up(4), made_up(8)},
                                   {512, "direct", made_up(100), made_up(100), made_up(200)},
                                   {512, "by hand", made_up(50), made_up(101), made_up(200)}},
                                  {{2, "unfold", made_up(3), made_up(6)},
                                   {2, "product", made_up(1), made_up(1)},
                                   {2, "fold", made_up(0), made_up(1)},
                                   {512, "unfold", made_up(1), made_up(1)},
                                   {512, "product", made_up(8), made_up(1)},
                                   {512, "fold", made_up(1), made_up(98)}});
  CHECK(
      contains(sentences, "Batch 2, inference: the one by hand takes 8.0 times as long as conv2d (unfold)"));
  CHECK(contains(sentences, "Batch 2, training: the one by hand takes 4.0 times as long as conv2d (direct)"));
  CHECK(contains(sentences,
                 "Batch 512, inference: conv2d (direct) takes 2.0 times as long as the one by hand"));
  CHECK(contains(sentences, "Batch 512, training: the one by hand and conv2d (direct) are level"));
  CHECK(contains(sentences,
                 "with batch 2, most of the forward time goes to unfold (75 %), most of the backward time "
                 "to unfold (75 %)"));
  CHECK(contains(sentences,
                 "with batch 512, most of the forward time goes to product (80 %), most of the backward "
                 "time to fold (98 %)"));
}
