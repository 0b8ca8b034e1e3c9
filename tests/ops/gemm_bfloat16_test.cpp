#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/matmul/gemm.h"
#include "pleat/ops/matmul/kernels.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/skip.h"

using namespace pleat;

namespace {

struct Case {
  int64_t m, n, k;
  int64_t terms = 1;
};

/// Odd sizes, empty sides, sizes that are cut into rows, columns, panels and parts of k; few terms and many.
const std::vector<Case> cases = {
    {1, 1, 1},     {3, 5, 7},      {1, 9, 17},      {33, 1, 20},   {17, 19, 1},  {4, 4, 0},
    {0, 5, 3},     {5, 0, 3},      {64, 64, 64},    {97, 131, 53}, {257, 3, 65}, {2, 301, 40},
    {1, 1, 9000},  {9, 7, 7000},   {13, 16, 31},    {300, 33, 34}, {7, 49, 2},   {270, 70, 1200},
    {3, 5, 7, 20}, {40, 20, 1, 9}, {9, 7, 1100, 3}, {4, 4, 0, 3}};

std::vector<BFloat16> numbers(int64_t count, uint64_t seed) {
  Generator generator(seed);
  std::vector<BFloat16> values;
  for (const float value : rand({count}, {}, generator).to_vector<float>())
    values.push_back(BFloat16(value * 2 - 1));
  return values;
}

/// A product with gaps between rows and terms, and its operands.
template <class Out>
struct Problem {
  ops::Gemm<BFloat16, Out> product;
  std::vector<BFloat16> a, b;
  std::vector<Out> c, before;

  Problem(const Case& size, bool transpose_a, bool transpose_b, bool accumulate, float alpha) {
    const auto [m, n, k, terms] = size;
    auto& p = product;
    p = {.m = m,
         .n = n,
         .k = k,
         .transpose_a = transpose_a,
         .transpose_b = transpose_b,
         .accumulate = accumulate,
         .alpha = alpha,
         .terms = terms};
    p.lda = (transpose_a ? m : k) + 3;
    p.ldb = (transpose_b ? k : n) + 1;
    p.ldc = n + 2;
    p.a_term_step = (transpose_a ? k : m) * p.lda + 5;
    p.b_term_step = (transpose_b ? n : k) * p.ldb;
    a = numbers(terms * p.a_term_step, 1);
    b = numbers(terms * p.b_term_step, 2);
    for (const BFloat16 value : numbers(m * p.ldc, 3)) c.push_back(convert<Out>(value));
    before = c;
    p.a = a.data();
    p.b = b.data();
    p.c = c.data();
  }

  /// The largest error of an element as a part of what it may be: half a unit of the result's last place, and
  /// that of the sum of k products in float32, in any order. The gaps between rows must not have changed.
  double error() const {
    const auto& p = product;
    double most = 0;
    for (int64_t i = 0; i < p.m * p.ldc; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const int64_t row = i / p.ldc;
      const int64_t column = i % p.ldc;
      if (column >= p.n) {
        if (std::memcmp(&c[at], &before[at], sizeof(Out)) != 0) return 1e9;
        continue;
      }
      double sum = 0;
      double magnitude = 0;
      for (int64_t t = 0; t < p.terms; ++t)
        for (int64_t l = 0; l < p.k; ++l) {
          const double product_of_two =
              convert<double>(p.a[t * p.a_term_step + (p.transpose_a ? l * p.lda + row : row * p.lda + l)]) *
              convert<double>(
                  p.b[t * p.b_term_step + (p.transpose_b ? column * p.ldb + l : l * p.ldb + column)]);
          sum += product_of_two;
          magnitude += std::abs(product_of_two);
        }
      const double start = p.accumulate ? convert<double>(before[at]) : 0;
      const double exact = p.alpha * sum + start;
      magnitude = std::abs(p.alpha) * magnitude + std::abs(start);
      const double steps = static_cast<double>(p.terms * p.k + 3);
      double bound = steps * 0x1p-24 * magnitude;
      if (std::is_same_v<Out, BFloat16>) bound += 0x1p-8 * (std::abs(exact) + bound);
      const double off = std::abs(convert<double>(c[at]) - exact);
      most = std::max(most, bound > 0 ? off / bound : off > 0 ? 1e9 : 0);
    }
    return most;
  }
};

template <class Out>
void check_products() {
  for (const Case& size : cases) {
    // The sum of terms goes through C.
    if (size.terms > 1 && std::is_same_v<Out, BFloat16>) continue;
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const bool accumulate : {false, true}) {
          CAPTURE(size.m, size.n, size.k, size.terms, transpose_a, transpose_b, accumulate);
          Problem<Out> parallel(size, transpose_a, transpose_b, accumulate, 1.5F);
          ops::gemm(parallel.product);
          CHECK(parallel.error() <= 1);
          Problem<Out> serial(size, transpose_a, transpose_b, accumulate, 1);
          ops::gemm_serial(serial.product);
          CHECK(serial.error() <= 1);
        }
  }
}

bool lacks_instructions() {
  if (ops::multiplies_bfloat16()) return false;
  pleat_test::skip("this processor has no AVX512_BF16");
  return true;
}

}  // namespace

TEST_CASE("products of bfloat16 are exact but for float32 sums and one rounding", "[gemm]") {
  if (lacks_instructions()) return;
  check_products<BFloat16>();
  check_products<float>();
}

TEST_CASE("products of bfloat16 give the same bits for any number of threads", "[gemm]") {
  if (lacks_instructions()) return;
  const int threads = num_threads();
  for (const Case& size : std::vector<Case>{{300, 500, 65}, {64, 48, 9000}, {9, 7, 70001}})
    for (const bool transpose : {false, true}) {
      std::vector<std::vector<BFloat16>> results;
      for (const int count : {1, 2, 3}) {
        set_num_threads(count);
        Problem<BFloat16> problem(size, transpose, !transpose, true, 1);
        ops::gemm(problem.product);
        results.push_back(problem.c);
      }
      for (const auto& result : results)
        CHECK(std::memcmp(result.data(), results[0].data(), result.size() * sizeof(BFloat16)) == 0);
    }
  set_num_threads(threads);
}

TEST_CASE("products of bfloat16 keep infinities and NaN to the elements that they reach", "[gemm]") {
  if (lacks_instructions()) return;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float special : {infinity, std::numeric_limits<float>::quiet_NaN()})
    for (const int64_t k : {5, 6}) {
      Problem<BFloat16> problem({20, 70, k}, false, false, false, 1);
      problem.a[static_cast<std::size_t>(3 * problem.product.lda + k - 1)] = BFloat16(special);
      ops::gemm(problem.product);
      for (int64_t i = 0; i < 20; ++i)
        for (int64_t j = 0; j < 70; ++j) {
          const auto value =
              static_cast<float>(problem.c[static_cast<std::size_t>(i * problem.product.ldc + j)]);
          CHECK(std::isfinite(value) == (i != 3));
          if (i == 3) CHECK(std::isnan(value) == std::isnan(special));
        }
    }
}

TEST_CASE("products of bfloat16 tensors agree with those of float32 within rounding", "[matmul]") {
  Generator generator(4);
  const auto random = [&](const Shape& shape) { return randn(shape, {.dtype = bfloat16}, generator); };
  const auto wide = [](const Tensor& x) { return ops::cast(x, float32); };
  const auto check = [&](const Tensor& got, const Tensor& exact, double scale) {
    CHECK(got.dtype() == bfloat16);
    REQUIRE(got.shape() == exact.shape());
    const auto a = got.to_vector<double>();
    const auto b = exact.to_vector<double>();
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      most = std::max(most, std::abs(a[i] - b[i]) - 0x1p-8 * std::abs(b[i]));
    CHECK(most <= scale * 1e-5);
  };
  const Tensor x = random({3, 37, 45}), w = random({29, 45}), bias = random({29});
  check(linear(x, w, bias), linear(wide(x), wide(w), wide(bias)), 45);
  const Tensor turned = transpose(random({3, 45, 37}), 1, 2);
  check(linear(turned, w), linear(wide(turned), wide(w)), 45);
  const Tensor left = random({2, 1, 9, 21}), right = random({5, 21, 66});
  check(matmul(left, right), matmul(wide(left), wide(right)), 21);
  check(matmul(random({0, 4, 3}), random({3, 5})), empty({0, 4, 5}), 1);
  check(matmul(random({4, 0}), random({0, 5})), zeros({4, 5}), 1);
  const Tensor gaps = slice(random({40, 90}), 1, 0, 90, 2);
  check(matmul(gaps, transpose(w, 0, 1)), matmul(wide(gaps), wide(transpose(w, 0, 1))), 45);
  const Tensor many = random({70, 9, 11}), others = random({70, 11, 13});
  check(ops::matmul_sum_to(many, others, {9, 13}), ops::matmul_sum_to(wide(many), wide(others), {9, 13}),
        770);
  check(addmm(random({9, 13}), random({9, 0}), random({0, 13}), {.beta = 0}), zeros({9, 13}), 1);
}
