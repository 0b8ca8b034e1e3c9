#include "pleat/core/base/streaming.h"

#include <algorithm>
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

TEST_CASE("streaming: large results of any operands have the bits of small ones", "[streaming][cpu]") {
  // Runs that are whole cache lines, and others.
  const int64_t width = GENERATE(8000, 8003);
  const Tensor x = randn({33, 17, width}), column = randn({33, 17, 1}), row = randn({width}),
               part = narrow(randn({33, 17, 2 * width}), 2, 5, width);
  const auto check = [&](const auto& f) {
    const Tensor all = f(x, column, part);
    for (const int64_t i : {0, 16, 32})
      CHECK(array_equal(select(all, 0, i), f(select(x, 0, i), select(column, 0, i), select(part, 0, i))));
  };
  check([](const Tensor& a, const Tensor& b, const Tensor&) { return a * b; });
  check([](const Tensor& a, const Tensor& b, const Tensor&) { return b - a; });
  check([](const Tensor& a, const Tensor&, const Tensor&) { return 2 / a; });
  check([&](const Tensor& a, const Tensor&, const Tensor&) { return a + row; });
  check([](const Tensor& a, const Tensor&, const Tensor& c) { return a * c; });
  check([](const Tensor&, const Tensor& b, const Tensor& c) { return maximum(b, c); });
  check([](const Tensor&, const Tensor&, const Tensor& c) { return tanh(c); });
  check([](const Tensor& a, const Tensor&, const Tensor& c) { return a.to(float64) * c; });
  check([](const Tensor& a, const Tensor& b, const Tensor&) { return where(a > b, a, b); });
  // Of each 16 million bytes and more, but half as large.
  const Tensor half = cat({x, x}, 0).to(float16), half_part = narrow(half, 2, 1, width - 1);
  CHECK(array_equal(select(half + half, 0, 40), select(half, 0, 40) * 2));
  CHECK(array_equal(select(relu(half_part), 0, 3), relu(select(half_part, 0, 3))));
}

TEST_CASE("streaming: large results of short runs have the bits of small ones", "[streaming][cpu]") {
  const Tensor x = randn({40, 64, 50, 34}).to(MemoryFormat::channels_last);
  for (const Tensor& other : {randn({40, 1, 50, 34}), randn({40, 64, 1, 1}), randn({34}),
                              narrow(randn({40, 65, 50, 34}).to(MemoryFormat::channels_last), 1, 1, 64)}) {
    const Tensor all = x * other;
    const Tensor of_one = other.rank() == 1 ? other : narrow(other, 0, 21, 1);
    CHECK(array_equal(narrow(all, 0, 21, 1), narrow(x, 0, 21, 1) * of_one));
  }
}

TEST_CASE("streaming: large copies are those of their parts", "[streaming][cpu]") {
  const int64_t channels = GENERATE(16, 48, 3);
  const MemoryFormat format = GENERATE(MemoryFormat::contiguous, MemoryFormat::channels_last);
  const Tensor a = randn({50, channels, 90, 70}).to(format), b = randn({50, 32, 90, 70}).to(format);
  const Tensor all = cat({a, b}, 1);
  CHECK(array_equal(narrow(all, 1, 0, channels), a));
  CHECK(array_equal(narrow(all, 1, channels, 32), b));
  const Tensor rolled = roll(b, {5}, {3});
  CHECK(array_equal(narrow(rolled, 3, 5, 65), narrow(b, 3, 0, 65)));
  CHECK(array_equal(narrow(rolled, 3, 0, 5), narrow(b, 3, 65, 5)));
}

TEST_CASE("streaming: large resized images are those of single ones", "[streaming][cpu]") {
  const int64_t channels = GENERATE(40, 3);
  const MemoryFormat format = GENERATE(MemoryFormat::contiguous, MemoryFormat::channels_last);
  const Interpolation mode = GENERATE(Interpolation::nearest, Interpolation::linear);
  const Tensor x = randn({channels == 3 ? 400 : 40, channels, 33, 27}).to(format);
  const InterpolateOptions options{.size = {65, 60}, .mode = mode};
  CHECK(array_equal(narrow(interpolate(x, options), 0, 7, 2), interpolate(narrow(x, 0, 7, 2), options)));
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
