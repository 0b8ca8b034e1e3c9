#include "pleat/autograd/functions/conv.h"
#include "pleat/bench/ask/questions.h"
#include "pleat/core/random/random.h"
#include "pleat/tests/bench/ask_made_up.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using namespace pleat::bench::ask::batchnorm_after_unfold;
using pleat::test::contains;
using pleat::test::made_up;
using pleat::test::relative_error;

TEST_CASE("Convolutions by hand are convolutions, and leave results in different layouts", "[ask]") {
  manual_seed(11);
  const Tensor x = randn({2, 3, 6, 5}, {.dtype = float64}), w = randn({4, 3, 3, 3}, {.dtype = float64});
  const Tensor wanted = conv2d(x, w, {.padding = 1});
  const Tensor columns = conv_by_columns(x, w, 1), windows = conv_by_windows(x, w, 1);
  CHECK(relative_error(columns, wanted) < 1e-14);
  CHECK(relative_error(windows, wanted) < 1e-14);
  CHECK(columns.memory_format() == MemoryFormat::contiguous);
  CHECK(windows.memory_format() == MemoryFormat::channels_last);
}

namespace {

struct MadeUp {
  Way way;
  double milliseconds;  ///< of each pass of batch norm
};

std::vector<std::string> conclude_from(const std::vector<MadeUp>& all, double train_spread = 0.02) {
  Times times;
  std::vector<Way> ways;
  for (const auto& [way, milliseconds] : all) {
    ways.push_back(way);
    times.add({"batch 128", way.name, "convolution", made_up(5)});
    for (const char* pass : {"eval", "train", "backward"})
      times.add({"batch 128", way.name, pass, made_up(milliseconds, train_spread)});
  }
  return conclude(times, ways);
}

}  // namespace

TEST_CASE("batchnorm-after-unfold concludes from formats and times, whatever they are", "[ask]") {
  const MemoryFormat last = MemoryFormat::channels_last, first = MemoryFormat::contiguous;
  const auto expected = conclude_from({{{"direct", true, last}, 1},
                                       {{"unfold", true, last}, 1.01},
                                       {{"direct, asked for contiguous", false, first}, 2}});
  CHECK(
      contains(expected, "channels_last after \"direct\", \"unfold\"; contiguous after \"direct, asked for"));
  CHECK(contains(expected,
                 "Batch 128, batch norm after unfold and after direct, which give the same format: eval 1.01 "
                 "ms and 1.00 ms, train 1.01 ms and 1.00 ms, backward 1.01 ms and 1.00 ms"));
  CHECK(contains(expected,
                 "together 1.01 times as much (quartiles 0.97 to 1.05): it costs the same after both."));
  CHECK(
      contains(expected,
               "Batch 128, batch norm train by layout: contiguous takes 2.0 times as long as channels_last"));

  const auto surprising = conclude_from({{{"cudnn", true, first}, 1}, {{"unfold", true, last}, 7}});
  CHECK(contains(surprising, "which give different formats"));
  CHECK(contains(surprising, "it does NOT cost the same after both."));
  CHECK(
      contains(surprising, "batch norm eval by layout: channels_last takes 7.0 times as long as contiguous"));

  CHECK(contains(conclude_from({{{"direct", true, last}, 1}, {{"unfold", true, last}, 1.2}}, 0.3),
                 "no difference that stands out of the noise."));
  const auto one_layout = conclude_from({{{"direct", true, last}, 1}, {{"unfold", true, last}, 1}});
  CHECK_FALSE(contains(one_layout, "by layout"));
}
