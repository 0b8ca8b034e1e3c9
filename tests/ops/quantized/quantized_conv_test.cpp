#include "pleat/ops/quantized/quantized_conv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/matmul/linear_activation.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;
using ops::Quantization;
using ops::QuantizedConv;
using ops::QuantizedFinish;
using ops::U8S8Kernels;

namespace {

SharedBlocks shared;

std::vector<const U8S8Kernels*> all_kernels() {
  std::vector<const U8S8Kernels*> list{&ops::u8s8_kernels_portable()};
  if (&ops::u8s8_kernels() != list[0]) list.push_back(&ops::u8s8_kernels());
  return list;
}

constexpr Quantization whole{.scale = 1, .zero = 37};

/// Whole numbers that int8 holds as they are: each row has a 127.
Tensor whole_weight(const Shape& shape) {
  Tensor w = ops::cast(randint(-127, 128, {shape[0], count(shape) / shape[0]}), float32);
  for (int64_t k = 0; k < shape[0]; ++k)
    w.data<float>()[k * w.size(1) + k % w.size(1)] = k % 2 == 0 ? 127 : -127;
  return reshape(w, Sizes(shape));
}
Tensor bytes(const Shape& shape) { return ops::cast(randint(0, 256, shape), uint8); }
Tensor wide(const Tensor& t) { return ops::cast(t, float64); }

bool equal_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         wide(to_format(a, MemoryFormat::contiguous)).to_vector<double>() ==
             wide(to_format(b, MemoryFormat::contiguous)).to_vector<double>();
}

Tensor exact(const Tensor& x, const Tensor& w, const ConvOptions& options) {
  const Tensor numbers = wide(x) - whole.zero, weight = wide(w);
  if (w.rank() == 2) return matmul(numbers, transpose(weight, 0, 1));
  ConvOptions plain = options;
  plain.implementation = "reference";
  return w.rank() == 3   ? conv1d(numbers, weight, plain)
         : w.rank() == 4 ? conv2d(numbers, weight, plain)
                         : conv3d(numbers, weight, plain);
}

/// y as `q` holds it, by the formula.
Tensor rounded(const Tensor& y, const Quantization& q) {
  Tensor out = empty(y.shape(), {.dtype = uint8});
  const Tensor dense = to_format(y, MemoryFormat::contiguous);
  const auto scale = static_cast<float>(1.0 / q.scale);
  for (int64_t i = 0; i < y.numel(); ++i) {
    const float value = static_cast<float>(dense.data<double>()[i]) * scale;
    out.data<uint8_t>()[i] =
        static_cast<uint8_t>(std::clamp(std::nearbyint(value + static_cast<float>(q.zero)), 0.0F, 255.0F));
  }
  return out;
}

void check_exact(const Shape& input, const Shape& weight, const ConvOptions& options = {}) {
  INFO(to_string(input) << " " << to_string(weight));
  const Tensor x = bytes(input), w = whole_weight(weight);
  const Tensor y = exact(x, w, options);
  const Quantization to{.scale = 64, .zero = 100};
  for (const U8S8Kernels* const kernels : all_kernels()) {
    const QuantizedConv to_float(w, {}, options, whole, {}, shared, *kernels);
    CHECK(equal_bits(to_float.run(x), ops::cast(y, float32)));
    // Bytes are the same numbers as float32 that is quantised on the way.
    CHECK(equal_bits(to_float.run(ops::cast(x, float32) - whole.zero), ops::cast(y, float32)));
    const QuantizedConv to_uint8(w, {}, options, whole, {.y = to}, shared, *kernels);
    CHECK(equal_bits(to_uint8.run(x), rounded(y, to)));
  }
}

}  // namespace

TEST_CASE("int8: linear is the plain sum of products", "[int8][cpu]") {
  manual_seed(1);
  for (const int64_t k : {1, 3, 4, 17, 64, 129})
    for (const int64_t n : {1, 7, 16, 17, 40, 64, 65, 300}) check_exact({5, k}, {n, k});
  for (const int64_t m : {1, 2, 3, 4, 6, 7, 11, 12, 13, 127, 129, 300}) {
    check_exact({m, 24}, {16, 24});
    check_exact({m, 21}, {50, 21});
    check_exact({m, 8}, {100, 8});
  }
  check_exact({2, 3, 30}, {9, 30});

  const Tensor x = bytes({3, 70}), w = whole_weight({5, 70});
  const Tensor y = QuantizedConv(w, {}, {}, whole, {}, shared).run(x);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 5; ++j) {
      int32_t sum = 0;
      for (int64_t k = 0; k < 70; ++k)
        sum +=
            (x.data<uint8_t>()[i * 70 + k] - whole.zero) * static_cast<int32_t>(w.data<float>()[j * 70 + k]);
      CHECK(y.data<float>()[i * 5 + j] == static_cast<float>(sum));
    }
}

TEST_CASE("int8: convolutions are the plain sums of products", "[int8][cpu]") {
  manual_seed(2);
  check_exact({2, 3, 9, 7}, {16, 3, 3, 3}, {.padding = 1});
  check_exact({1, 3, 32, 32}, {20, 3, 7, 7}, {.stride = 2, .padding = 3});
  check_exact({3, 16, 8, 8}, {33, 16, 3, 3}, {.padding = 1});
  check_exact({2, 8, 11, 6}, {8, 8, 3, 2}, {.stride = {2, 1}, .padding = Padding({{0, 2}, {1, 0}})});
  check_exact({2, 5, 12, 12}, {7, 5, 3, 3}, {.padding = 2, .dilation = 2});
  check_exact({2, 12, 12, 13}, {7, 12, 3, 3}, {.padding = 1, .dilation = {3, 1}});
  check_exact({1, 16, 40, 40}, {24, 16, 3, 3}, {.padding = 1});  // in bands
  check_exact({5, 24, 7, 7}, {17, 24, 1, 1});
  check_exact({2, 24, 7, 7}, {17, 24, 1, 1}, {.stride = 2});
  check_exact({2, 24, 7, 7}, {17, 24, 1, 1}, {.padding = 1});
  check_exact({2, 3, 16, 16}, {12, 3, 8, 8}, {.stride = 8});
  check_exact({40, 8, 3, 3}, {8, 8, 3, 3}, {.padding = 1});  // several images at once
  // groups
  check_exact({2, 32, 6, 6}, {32, 4, 3, 3}, {.padding = 1, .groups = 8});
  check_exact({2, 12, 6, 6}, {18, 4, 3, 3}, {.padding = 1, .groups = 3});
  check_exact({2, 6, 6, 6}, {12, 1, 3, 3}, {.groups = 6});
  check_exact({2, 40, 6, 6}, {80, 20, 1, 1}, {.groups = 2});
  check_exact({1, 10, 5, 5}, {10, 2, 3, 3}, {.padding = 1, .groups = 5});
  // 1 and 3 dimensions
  check_exact({2, 6, 20}, {9, 6, 2}, {.padding = Padding::Sides{4, 0}, .dilation = 4});
  check_exact({2, 1, 300}, {32, 1, 1});
  check_exact({3, 8, 21}, {16, 8, 3}, {.stride = 2, .padding = 1});
  check_exact({2, 4, 5, 6, 7}, {9, 4, 3, 3, 3}, {.padding = 1});
  check_exact({1, 4, 9, 9, 9}, {6, 2, 2, 3, 1}, {.stride = {2, 1, 2}, .groups = 2});
}

TEST_CASE("int8: depthwise convolutions", "[int8][cpu]") {
  manual_seed(3);
  for (const int64_t c : {2, 15, 16, 17, 24, 32, 33, 48, 64, 65, 100, 144}) {
    check_exact({2, c, 8, 9}, {c, 1, 3, 3}, {.padding = 1, .groups = c});
    check_exact({1, c, 7, 7}, {c, 1, 5, 5}, {.stride = 2, .padding = 2, .groups = c});
  }
  check_exact({1, 20, 40, 40}, {20, 1, 3, 3}, {.padding = 2, .dilation = 2, .groups = 20});
  check_exact({2, 20, 9, 9}, {20, 1, 1, 1}, {.groups = 20});
  check_exact({2, 20, 30}, {20, 1, 4}, {.groups = 20});
  check_exact({2, 18, 5, 5, 5}, {18, 1, 3, 3, 3}, {.padding = 1, .groups = 18});
}

TEST_CASE("int8: the longest sums of extremes fit", "[int8][cpu]") {
  constexpr int64_t longest = 33155;
  CHECK(QuantizedConv::sums_fit(longest));
  CHECK_FALSE(QuantizedConv::sums_fit(longest + 1));
  const Tensor x = ops::cast(full({1, longest}, 255), uint8), none = zeros({1, longest}, uint8);
  Tensor w = full({2, longest}, 127.0F);
  std::fill_n(w.data<float>() + longest, longest, -127.0F);
  for (const U8S8Kernels* const kernels : all_kernels())
    for (const int32_t zero : {0, 255}) {
      const QuantizedConv linear(w, {}, {}, {.scale = 1, .zero = zero}, {}, shared, *kernels);
      const auto most = static_cast<float>(127.0 * longest * (255 - zero));
      const auto least = static_cast<float>(127.0 * longest * -zero);
      CHECK(linear.run(x).to_vector<float>() == std::vector{most, -most});
      CHECK(linear.run(none).to_vector<float>() == std::vector{least, -least});
    }
  CHECK_THROWS_WITH(QuantizedConv(zeros({1, longest + 1}), {}, {}, whole, {}, shared),
                    Contains("33156 products"));
}

TEST_CASE("int8: biases, addends, limits and activations", "[int8][cpu]") {
  manual_seed(4);
  const Tensor x = randn({2, 19, 6, 6}), w = randn({21, 19, 3, 3}) * 0.1, b = randn({21});
  const Tensor addend = randn({2, 21, 6, 6});
  const ConvOptions options{.padding = 1};
  const Quantization in = Quantization::of(-4, 4), out = Quantization::of(-3, 3),
                     of_addend = Quantization::of(-6, 6);
  const Tensor plain = conv2d(x, w, b, options);
  const Tensor addend_bytes =
      ops::cast(clamp(round(addend / of_addend.scale) + of_addend.zero, {.min = 0, .max = 255}), uint8);
  const auto numbers = [](const Tensor& y, const Quantization& q) {
    return (ops::cast(y, float32) - static_cast<double>(q.zero)) * static_cast<double>(q.scale);
  };
  const auto gelu_function = linear_gelu(GeluApproximation::none);
  struct Case {
    const char* what;
    QuantizedFinish finish;
    Tensor addend, expected;
  };
  const Tensor sum = plain + addend;
  for (const U8S8Kernels* const kernels : all_kernels())
    for (const bool to_bytes : {false, true})
      for (Case c :
           {Case{"bias", {}, {}, plain}, Case{"relu", {.bounds = {.min = 0}}, {}, relu(plain)},
            Case{"relu6 of a sum",
                 {.bounds = {.min = 0, .max = 1.5}},
                 addend,
                 clamp(sum, {.min = 0, .max = 1.5})},
            Case{"bytes added", {.addend = of_addend, .bounds = {.min = 0}}, addend_bytes, relu(sum)},
            Case{"gelu", {.f = &gelu_function->function()}, {}, gelu(plain)},
            Case{"gelu of a sum", {.f = &gelu_function->function()}, addend, gelu(sum)},
            Case{"gelu of bytes added",
                 {.addend = of_addend, .f = &gelu_function->function()},
                 addend_bytes,
                 gelu(sum)}}) {
        INFO(c.what << " to " << (to_bytes ? "uint8" : "float32"));
        if (to_bytes) c.finish.y = out;
        const Tensor y = QuantizedConv(w, b, options, in, c.finish, shared, *kernels).run(x, c.addend);
        CHECK(y.dtype() == (to_bytes ? uint8 : float32));
        const Tensor got = to_bytes ? numbers(y, out) : y;
        const Tensor expected = to_bytes ? clamp(c.expected, {.min = -3, .max = 3}) : c.expected;
        CHECK(max(abs(got - expected)).item<float>() < 0.1F);
        CHECK(mean(abs(got - expected)).item<float>() < 0.025F);
      }
  // A vector of columns in parts, with an activation on each.
  const Tensor row = randn({1, 40}), wide_weight = randn({700, 40}) * 0.2;
  const Tensor y = QuantizedConv(wide_weight, {}, {}, in, {.f = &gelu_function->function()}, shared).run(row);
  CHECK(max(abs(y - gelu(linear(row, wide_weight)))).item<float>() < 0.08F);
}

TEST_CASE("int8: the same bits for any number of threads and kernels", "[int8][cpu][threads]") {
  manual_seed(5);
  const int before = num_threads();
  const auto silu_function = linear_silu();
  for (const bool depthwise : {false, true}) {
    const Tensor x = randn({3, 48, 40, 40}), w = randn({48, depthwise ? 1 : 48, 3, 3});
    const ConvOptions options{.padding = 1, .groups = depthwise ? 48 : 1};
    const QuantizedFinish finish{.y = Quantization::of(-9, 9), .f = &silu_function->function()};
    std::vector<Tensor> all;
    for (const int64_t threads : {1, 3, 4}) {
      set_num_threads(threads);
      for (const U8S8Kernels* const kernels : all_kernels())
        all.push_back(
            QuantizedConv(w, {}, options, Quantization::of(-3, 4), finish, shared, *kernels).run(x));
    }
    for (const Tensor& y : all) CHECK(equal_bits(y, all[0]));
  }
  set_num_threads(before);
}

TEST_CASE("int8: a range holds 0 as it is", "[int8][cpu]") {
  CHECK(Quantization::of(0, 25.5).zero == 0);
  CHECK(Quantization::of(0, 25.5).scale == Approx(0.1));
  CHECK(Quantization::of(1, 2).zero == 0);
  CHECK(Quantization::of(-2, -1).zero == 255);
  CHECK(Quantization::of(-1, 3).zero == 64);
  CHECK(Quantization::of(0, 0).scale == 1);
  CHECK(Quantization::of(0, 1e-44).scale == 1);
  CHECK(QuantizedConv(full({1, 4}, 1e-44F), {}, {}, whole, {}, shared).run(bytes({1, 4})).item<float>() == 0);
  for (const float x : {std::numeric_limits<float>::infinity(), std::nanf("")})
    CHECK_THROWS_WITH(QuantizedConv(full({1, 4}, x), {}, {}, whole, {}, shared), Contains("a weight is"));
}
