#include "pleat/autograd/functions/conv.h"
#include "pleat/bench/ask/batchnorm_after_unfold.h"
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

Row row(const char* convolution, bool is_implementation, MemoryFormat format, double milliseconds) {
  return {128,        convolution,           is_implementation,     format,
          made_up(5), made_up(milliseconds), made_up(milliseconds), made_up(milliseconds)};
}

}  // namespace

TEST_CASE("batchnorm-after-unfold concludes from formats and times, whatever they are", "[ask]") {
  const MemoryFormat rows = MemoryFormat::channels_last, planes = MemoryFormat::contiguous;
  const auto expected = conclude({row("direct", true, rows, 1), row("unfold", true, rows, 1.01),
                                  row("direct, asked for contiguous", false, planes, 2)});
  CHECK(contains(expected,
                 "channels_last after \"direct\" and \"unfold\"; contiguous after \"direct, asked for"));
  CHECK(contains(expected,
                 "after unfold and after direct, which give the same format: eval 1.01 ms and 1.00 ms"));
  CHECK(contains(expected,
                 "together 1.01 times as much (quartiles 0.97 to 1.05): it costs the same after both."));
  CHECK(
      contains(expected, "batch norm train by layout: contiguous takes 2.0 times as long as channels_last"));

  const auto surprising = conclude({row("cudnn", true, planes, 1), row("unfold", true, rows, 7)});
  CHECK(contains(surprising, "which give different formats"));
  CHECK(contains(surprising, "it does NOT cost the same after both."));
  CHECK(
      contains(surprising, "batch norm eval by layout: channels_last takes 7.0 times as long as contiguous"));

  auto noisy = row("unfold", true, rows, 1);
  noisy.train = made_up(1.5, 0.5);
  CHECK(contains(conclude({row("direct", true, rows, 1), noisy}),
                 "no difference that stands out of the noise."));

  const auto one_layout = conclude({row("direct", true, rows, 1), row("unfold", true, rows, 1)});
  CHECK_FALSE(contains(one_layout, "by layout"));
}
