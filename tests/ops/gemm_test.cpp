#include "pleat/ops/matmul/gemm.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "pleat/core/base/host_device.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/ops/matmul/frozen_linear.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;

namespace {

struct Case {
  int64_t m, n, k;
};

/// Odd sizes, vectors, empty sides, sizes that are cut into rows, columns and parts of k.
const std::vector<Case> cases = {
    {1, 1, 1},     {3, 5, 7},     {1, 9, 17},     {33, 1, 20},  {17, 19, 1},  {4, 4, 0},      {0, 5, 3},
    {5, 0, 3},     {64, 64, 64},  {97, 131, 53},  {257, 3, 65}, {2, 301, 40}, {1, 1, 9000},   {9, 7, 70000},
    {400, 96, 97}, {90, 700, 60}, {131, 205, 91}, {2, 13, 300}, {3, 33, 128}, {4, 6, 1001},   {5, 7, 129},
    {6, 40, 260},  {7, 3, 555},   {5, 70, 33},    {7, 300, 21}, {130, 6, 45}, {40, 300, 600}, {200, 60, 900}};

template <class T>
std::vector<T> numbers(int64_t count, uint64_t seed) {
  Generator generator(seed);
  const Tensor x = rand({count}, {.dtype = float64}, generator);
  std::vector<T> values;
  for (const double value : x.to_vector<double>()) values.push_back(static_cast<T>(value * 2 - 1));
  return values;
}

/// A product with gaps between rows, its operands, and the result in float64 by a plain loop.
template <class T>
struct Problem {
  ops::Gemm<T> product;
  std::vector<T> a, b, c;
  std::vector<double> expected;

  Problem(const Case& size, bool transpose_a, bool transpose_b, bool accumulate, T alpha) {
    const auto [m, n, k] = size;
    auto& p = product;
    p = {.m = m,
         .n = n,
         .k = k,
         .transpose_a = transpose_a,
         .transpose_b = transpose_b,
         .accumulate = accumulate,
         .alpha = alpha};
    p.lda = (transpose_a ? m : k) + 3;
    p.ldb = (transpose_b ? k : n) + 1;
    p.ldc = n + 2;
    a = numbers<T>((transpose_a ? k : m) * p.lda, 1);
    b = numbers<T>((transpose_b ? n : k) * p.ldb, 2);
    c = numbers<T>(m * p.ldc, 3);
    p.a = a.data();
    p.b = b.data();
    p.c = c.data();
    expected.assign(c.begin(), c.end());
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(p.a[transpose_a ? l * p.lda + i : i * p.lda + l]) *
                 static_cast<double>(p.b[transpose_b ? j * p.ldb + l : l * p.ldb + j]);
        double& out = expected[static_cast<std::size_t>(i * p.ldc + j)];
        out = alpha * sum + (accumulate ? out : 0);
      }
  }

  /// The gaps between the rows included: they must not have changed.
  double error() const { return test::relative_error(std::vector<double>(c.begin(), c.end()), expected); }
};

template <class T>
void check_products(double tolerance) {
  for (const Case& size : cases)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const bool accumulate : {false, true}) {
          CAPTURE(size.m, size.n, size.k, transpose_a, transpose_b, accumulate);
          Problem<T> parallel(size, transpose_a, transpose_b, accumulate, T(1.5));
          ops::gemm(parallel.product);
          CHECK(parallel.error() < tolerance);
          Problem<T> serial(size, transpose_a, transpose_b, accumulate, T(1));
          ops::gemm_serial(serial.product);
          CHECK(serial.error() < tolerance);
        }
}

}  // namespace

TEST_CASE("gemm agrees with a plain float64 loop", "[gemm]") {
  check_products<float>(1e-5);
  check_products<double>(1e-13);
}

TEST_CASE("gemm gives the same bits for any number of threads", "[gemm]") {
  const int threads = num_threads();
  for (const Case& size : cases)
    for (const bool transpose : {false, true}) {
      CAPTURE(size.m, size.n, size.k, transpose);
      std::vector<std::vector<float>> results;
      for (const int count : {1, 2, 3}) {
        set_num_threads(count);
        Problem<float> problem(size, transpose, !transpose, true, 1);
        ops::gemm(problem.product);
        results.push_back(problem.c);
        // Inside somebody else's parallel region, too.
        Problem<float> inner(size, transpose, !transpose, true, 1);
        parallel_chunks(2, [&](int64_t chunk) {
          if (chunk == 1) ops::gemm(inner.product);
        });
        results.push_back(inner.c);
      }
      for (const auto& result : results)
        CHECK((result.empty() ||
               std::memcmp(result.data(), results[0].data(), result.size() * sizeof(float)) == 0));
    }
  set_num_threads(threads);
}

TEST_CASE("gemm of many blocks gives the same bits for few threads, which get fewer", "[gemm]") {
  const int threads = num_threads();
  for (const Case& size : std::vector<Case>{{128, 512, 300}, {530, 130, 200}, {300, 330, 257}})
    for (const bool transpose : {false, true}) {
      CAPTURE(size.m, size.n, size.k, transpose);
      std::vector<std::vector<float>> results;
      for (const int count : {1, 2, 4, 9}) {
        set_num_threads(count);
        Problem<float> problem(size, transpose, !transpose, false, 1);
        ops::gemm(problem.product);
        CHECK(problem.error() < 1e-5);
        results.push_back(std::move(problem.c));
      }
      for (const auto& result : results) CHECK(result == results[0]);
    }
  set_num_threads(threads);
}

TEST_CASE("a packed linear layer agrees with a plain loop, for few rows, too", "[gemm][cpu]") {
  SharedBlocks shared;
  for (const int64_t m : {1, 2, 3, 4, 5, 9, 130})
    for (const auto& [n, k] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 5}, {31, 70}, {64, 3}, {129, 40}, {300, 257}})
      for (const DType dtype : {float32, float64}) {
        CAPTURE(m, n, k, dtype);
        Generator generator(4);
        const Tensor x = randn({m, k}, {.dtype = dtype}, generator),
                     w = randn({n, k}, {.dtype = dtype}, generator),
                     b = randn({n}, {.dtype = dtype}, generator);
        const ops::ResultFinish finish{.addend = randn({m, n}, {.dtype = dtype}, generator)};
        const Tensor y = ops::FrozenLinear(w, b, shared).run(x, finish);
        const auto a = x.to_vector<double>(), rows = w.to_vector<double>(), bias = b.to_vector<double>(),
                   addend = finish.addend.to_vector<double>();
        std::vector<double> expected;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = bias[static_cast<std::size_t>(j)] + addend[static_cast<std::size_t>(i * n + j)];
            for (int64_t l = 0; l < k; ++l)
              sum += a[static_cast<std::size_t>(i * k + l)] * rows[static_cast<std::size_t>(j * k + l)];
            expected.push_back(sum);
          }
        CHECK(test::relative_error(y, expected) < (dtype == float32 ? 1e-6 : 1e-14));
      }
}

TEST_CASE("gemm starts from a row or a matrix as from C", "[gemm]") {
  for (const Case& size : cases)
    for (const bool is_row : {true, false})
      for (const float alpha : {1.0F, 1.5F}) {
        CAPTURE(size.m, size.n, size.k, is_row, alpha);
        const int64_t step = is_row ? 0 : size.n + 5;
        const std::vector<float> start = numbers<float>(size.n + size.m * step + 1, 4);
        Problem<float> wanted(size, false, true, true, alpha);
        for (int64_t row = 0; row < size.m; ++row)
          std::copy_n(start.data() + row * step, size.n, wanted.c.data() + row * wanted.product.ldc);
        ops::gemm(wanted.product);
        Problem<float> got(size, false, true, false, alpha);
        got.product.start = start.data();
        got.product.start_row = step;
        ops::gemm(got.product);
        CHECK(got.c == wanted.c);
        Problem<float> serial(size, false, true, false, alpha);
        serial.product.start = start.data();
        serial.product.start_row = step;
        ops::gemm_serial(serial.product);
        CHECK(test::relative_error(std::vector<double>(serial.c.begin(), serial.c.end()),
                                   std::vector<double>(wanted.c.begin(), wanted.c.end())) < 1e-5);
      }
}

TEST_CASE("gemm adds up terms, joined where they are small", "[gemm]") {
  // Both of many and of few, in k and in terms; beside one another, with gaps, all the same.
  for (const auto& [size, terms] : std::vector<std::pair<Case, int64_t>>{{{3, 5, 7}, 2},
                                                                         {{64, 48, 16}, 700},
                                                                         {{150, 210, 5}, 90},
                                                                         {{9, 7, 3000}, 3},
                                                                         {{4, 4, 0}, 3},
                                                                         {{0, 4, 2}, 3},
                                                                         {{1, 1, 1}, 9000}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const int64_t gap : {int64_t{-1}, int64_t{0}, int64_t{5}}) {
          const auto [m, n, k] = size;
          CAPTURE(m, n, k, terms, transpose_a, transpose_b, gap);
          ops::Gemm<double> p{.m = m,
                              .n = n,
                              .k = k,
                              .lda = transpose_a ? m : k,
                              .transpose_a = transpose_a,
                              .ldb = transpose_b ? k : n,
                              .transpose_b = transpose_b,
                              .ldc = n,
                              .accumulate = gap == 0,
                              .alpha = 0.5,
                              .terms = terms,
                              .a_term_step = gap < 0 ? 0 : m * k + gap,
                              .b_term_step = k * n + std::max<int64_t>(gap, 0)};
          const auto a = numbers<double>(std::max<int64_t>(1, m * k + (terms - 1) * p.a_term_step), 1);
          const auto b = numbers<double>(std::max<int64_t>(1, k * n + (terms - 1) * p.b_term_step), 2);
          std::vector<double> c = numbers<double>(std::max<int64_t>(1, m * n), 3);
          std::vector<double> serial = c;
          std::vector<double> expected = c;
          p.a = a.data();
          p.b = b.data();
          p.c = c.data();
          for (int64_t i = 0; i < m * n; ++i) {
            double sum = 0;
            for (int64_t t = 0; t < terms; ++t)
              for (int64_t l = 0; l < k; ++l) {
                const int64_t row = i / n;
                const int64_t column = i % n;
                sum += p.a[t * p.a_term_step + (transpose_a ? l * m + row : row * k + l)] *
                       p.b[t * p.b_term_step + (transpose_b ? column * k + l : l * n + column)];
              }
            double& out = expected[static_cast<std::size_t>(i)];
            out = 0.5 * sum + (p.accumulate ? out : 0);
          }
          ops::gemm(p);
          CHECK(test::relative_error(c, expected) < 1e-13);
          p.c = serial.data();
          ops::gemm_serial(p);
          CHECK(test::relative_error(serial, expected) < 1e-13);
        }
}

TEST_CASE("gemm reads rows that overlap", "[gemm]") {
  // Rows of 4 at distance 2: what a convolution without unfolding hands over.
  const auto a = numbers<double>(10, 5);
  const auto b = numbers<double>(4 * 3, 6);
  std::vector<double> c(4 * 3);
  ops::gemm(ops::Gemm<double>{
      .m = 4, .n = 3, .k = 4, .a = a.data(), .lda = 2, .b = b.data(), .ldb = 3, .c = c.data(), .ldc = 3});
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < 4; ++l) sum += a[i * 2 + l] * b[l * 3 + j];
      CHECK(c[i * 3 + j] == Approx(sum).epsilon(1e-13));
    }
}

namespace {

/// Half types: exact products, sums of float32, one rounding to Out.
template <class T, class Out>
void check_half(double rounding) {
  Generator generator(5);
  const int64_t m = 7, n = 9, k = 33, batch = 3;
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const bool accumulate : {false, true}) {
        const Tensor a = randn({batch, transpose_a ? k : m, transpose_a ? m : k},
                               {.dtype = dtype_of<T>(), .device = "cuda"}, generator);
        const Tensor b = randn({transpose_b ? n : k, transpose_b ? k : n},
                               {.dtype = dtype_of<T>(), .device = "cuda"}, generator);
        const Tensor c = randn({batch, m, n}, {.dtype = dtype_of<Out>(), .device = "cuda"}, generator);
        const auto as = a.to_vector<double>();
        const auto bs = b.to_vector<double>();
        std::vector<double> expected = c.to_vector<double>();
        for (int64_t i = 0; i < batch * m * n; ++i) {
          const int64_t column = i % n;
          const int64_t row = i / n % m;
          const int64_t first = i / n / m * m * k;
          double sum = accumulate ? expected[static_cast<std::size_t>(i)] : 0;
          for (int64_t l = 0; l < k; ++l)
            sum += as[static_cast<std::size_t>(first + (transpose_a ? l * m + row : row * k + l))] *
                   bs[static_cast<std::size_t>(transpose_b ? column * k + l : l * n + column)];
          expected[static_cast<std::size_t>(i)] = sum;
        }
        if constexpr (with_cuda)
          ops::cublas_gemm("test", DeviceType::cuda,
                           ops::GemmBatch<T, Out>{.first = {.m = m,
                                                            .n = n,
                                                            .k = k,
                                                            .a = a.data<T>(),
                                                            .lda = transpose_a ? m : k,
                                                            .transpose_a = transpose_a,
                                                            .b = b.data<T>(),
                                                            .ldb = transpose_b ? k : n,
                                                            .transpose_b = transpose_b,
                                                            .c = c.data<Out>(),
                                                            .ldc = n,
                                                            .accumulate = accumulate},
                                                  .batch = batch,
                                                  .a_step = m * k,
                                                  .c_step = m * n});
        CHECK(test::relative_error(c.to_vector<double>(), expected) < rounding + 1e-6);
      }
}

}  // namespace

TEST_CASE("products of half types are added up in float32 and rounded once", "[gemm][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  check_half<Half, Half>(0x1p-11);
  check_half<Half, float>(0);
  check_half<BFloat16, BFloat16>(0x1p-8);
  check_half<BFloat16, float>(0);
}
