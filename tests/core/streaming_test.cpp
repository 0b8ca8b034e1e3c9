#include "pleat/core/base/streaming.h"

#include <numeric>
#include <vector>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;

TEST_CASE("streaming: bytes are copied, whatever their number and place", "[streaming][cpu]") {
  std::vector<uint8_t> from(400);
  std::iota(from.begin(), from.end(), uint8_t{1});
  for (const std::size_t at : {0, 1, 4, 60, 63})
    for (const std::size_t count : {0, 1, 3, 63, 64, 65, 130, 300}) {
      std::vector<uint8_t> to(400), expected(400);
      std::copy_n(from.begin() + 5, count, expected.begin() + static_cast<std::ptrdiff_t>(at));
      stream_bytes(to.data() + at, from.data() + 5, static_cast<int64_t>(count));
      end_streaming();
      CHECK(to == expected);
    }
}

TEST_CASE("streaming: a run is written piece by piece, or at once", "[streaming][cpu]") {
  std::vector<float> from(700);
  std::iota(from.begin(), from.end(), 1.0f);
  for (const bool streamed : {false, true}) {
    std::vector<float> to(from.size(), 0);
    int64_t calls = 0;
    write_run(
        to.data(), static_cast<int64_t>(from.size()), streamed,
        [&](float* out, int64_t first, int64_t count) {
          ++calls;
          for (int64_t i = 0; i < count; ++i) out[i] = 2 * from[static_cast<std::size_t>(first + i)];
        },
        from.data());
    end_streaming();
    CHECK(calls == (streamed ? 3 : 1));
    for (std::size_t i = 0; i < to.size(); ++i) REQUIRE(to[i] == 2 * from[i]);
  }
}

namespace {

/// Rows enough for results that are written past the caches.
constexpr int64_t rows = 43, columns = 100'003;

}  // namespace

TEST_CASE("streaming: large results have the bits of small ones", "[streaming][cpu]") {
  const Tensor x = randn({rows, columns}), y = randn({rows, columns});
  const auto check_rows = [&](const Tensor& all, const auto& of_row) {
    for (const int64_t row : {int64_t{0}, rows / 2, rows - 1})
      CHECK(array_equal(select(all, 0, row), of_row(select(x, 0, row), select(y, 0, row))));
  };
  check_rows(x + y, [](const Tensor& a, const Tensor& b) { return a + b; });
  check_rows(exp(x), [](const Tensor& a, const Tensor&) { return exp(a); });
  check_rows(x.to(float64), [](const Tensor& a, const Tensor&) { return a.to(float64); });
  check_rows(where(x > y, x, y), [](const Tensor& a, const Tensor& b) { return maximum(a, b); });
  const Tensor in_place = clone(x);
  multiply_(in_place, y);
  check_rows(in_place, [](const Tensor& a, const Tensor& b) { return a * b; });
}

TEST_CASE("streaming: a large batch norm has the bits of a small one", "[streaming][batch_norm][cpu]") {
  const int64_t channels = GENERATE(48, 17);
  const MemoryFormat format = GENERATE(MemoryFormat::contiguous, MemoryFormat::channels_last);
  const Tensor x = randn({96, channels, 56, 50}).to(format), mean = randn({channels}),
               variance = rand({channels}) + 0.5;
  const auto run = [&](const Tensor& input) {
    return batch_norm(input, {}, {}, mean, variance, {.bounds = {.min = 0}});
  };
  CHECK(array_equal(narrow(run(x), 0, 40, 3), run(narrow(x, 0, 40, 3))));
}

TEST_CASE("streaming: a large depthwise convolution gives the numbers of a small one",
          "[streaming][conv][cpu]") {
  const int64_t stride = GENERATE(1, 2);
  const ConvOptions options{.stride = stride, .padding = 1, .groups = 48};
  const Tensor x = randn({100, 48, 61, 31}).to(MemoryFormat::channels_last), w = randn({48, 1, 3, 3});
  const Tensor y = ops::conv_forward(x, w, {}, options);
  const Tensor some = narrow(x, 0, 50, 2);
  CHECK(allclose(narrow(y, 0, 50, 2), ops::conv_forward(some, w, {}, options), {.rtol = 1e-5, .atol = 1e-5}));
  const Tensor dx = ops::conv_backward_input(y, w, Sizes(x.shape()), options);
  const Tensor of_some = ops::conv_backward_input(narrow(y, 0, 50, 2), w, Sizes(some.shape()), options);
  CHECK(allclose(narrow(dx, 0, 50, 2), of_some, {.rtol = 1e-5, .atol = 1e-5}));
}
