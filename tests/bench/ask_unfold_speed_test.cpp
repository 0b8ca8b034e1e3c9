#include "pleat/autograd/backward.h"
#include "pleat/autograd/functions/conv.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/bench/ask/questions.h"
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
    const Tensor hand = conv_by_hand(x, filters, 3, padding);
    const Tensor conv = conv2d(x, reshape(filters, {4, 3, 3, 3}), {.padding = padding});
    CHECK(relative_error(hand, conv) < 1e-14);
    const Tensor dy = randn(conv.shape(), {.dtype = float64});
    const Grads got = grad({hand}, {x, filters}, {dy});
    const Grads wanted = grad({conv}, {x, filters}, {dy});
    CHECK(relative_error(got[0], wanted[0]) < 1e-14);
    CHECK(relative_error(got[1], wanted[1]) < 1e-14);
  }
}

TEST_CASE("Hooks on gradients split a backward into pieces that take time", "[ask]") {
  const Tensor x = randn({4, 3, 32, 32}).set_requires_grad();
  const Tensor filters = randn({4, 27}).set_requires_grad();
  const auto pieces = backward_pieces(x, filters, 3, 1, randn({4, 4, 32, 32}));
  REQUIRE(pieces.size() == 3);
  for (const char* piece : {"unfold", "product", "fold"}) {
    CHECK(pieces.at(piece) > 0);
    CHECK(pieces.at(piece) < 60);
  }
  CHECK_FALSE(x.grad().defined());  // nothing is accumulated
}

TEST_CASE("unfold-speed concludes for each batch size, and which piece takes the time", "[ask]") {
  Times times;
  const auto add = [&](const std::string& problem, const std::string& way, double inference, double forward,
                       double backward) {
    times.add({problem, way, "inference", made_up(inference)});
    times.add({problem, way, "forward, recorded", made_up(forward)});
    times.add({problem, way, "backward", made_up(backward)});
  };
  const auto add_piece = [&](const std::string& batch, const char* piece, double forward, double backward) {
    times.add({pieces_of + batch, piece, "forward", made_up(forward)});
    times.add({pieces_of + batch, piece, "backward (between hooks)", made_up(backward)});
  };
  add("batch 2", "conv2d, direct", 1, 1, 2);
  add("batch 2", "conv2d, unfold", 0.5, 2, 4);
  add("batch 2", by_hand, 4, 4, 8);
  add_piece("batch 2", "unfold", 3, 6);
  add_piece("batch 2", "product", 1, 1);
  add_piece("batch 2", "fold", 0, 1);
  add("batch 512", "conv2d, direct", 100, 100, 200);
  add("batch 512", by_hand, 50, 101, 200);
  add_piece("batch 512", "unfold", 1, 1);
  add_piece("batch 512", "product", 8, 1);
  add_piece("batch 512", "fold", 1, 98);
  const auto sentences = conclude(times);
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
