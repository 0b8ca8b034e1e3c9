#include <algorithm>

#include "pleat/core/parallel/parallel.h"
#include "pleat/ops/matmul/gemm.h"

namespace pleat::ops {
void gemm(const Gemm<int64_t>& product) {
  const Gemm<int64_t> p = started(product);
  // Unsigned, so that overflow wraps instead of being undefined.
  const auto number = [](int64_t x) { return static_cast<uint64_t>(x); };
  parallel_for(0, p.m, std::max<int64_t>(1, 32768 / std::max<int64_t>(p.n * p.k * p.terms, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   int64_t* const c = p.c + i * p.ldc;
                   if (!p.accumulate) std::fill_n(c, p.n, 0);
                   for (int64_t tl = 0; tl < p.terms * p.k; ++tl) {
                     const int64_t term = tl / p.k;
                     const int64_t l = tl % p.k;
                     const int64_t* const a_row = p.a + term * p.a_term_step;
                     const uint64_t a = number(p.alpha) *
                                        number(p.transpose_a ? a_row[l * p.lda + i] : a_row[i * p.lda + l]);
                     const int64_t* const b = p.b + term * p.b_term_step + (p.transpose_b ? l : l * p.ldb);
                     const int64_t step = p.transpose_b ? p.ldb : 1;
                     for (int64_t j = 0; j < p.n; ++j)
                       c[j] = static_cast<int64_t>(number(c[j]) + a * number(b[j * step]));
                   }
                 }
               });
}

template <class T, class Out>
void batched_gemm(const GemmBatch<T, Out>& products) {
  const Gemm<T, Out>& p = products.first;
  const auto multiply = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      Gemm<T, Out> product = p;
      product.a += i * products.a_step;
      product.b += i * products.b_step;
      product.c += i * products.c_step;
      gemm(product);
    }
  };
  // A few large products divide themselves among the threads; the result is the same either way.
  if (products.batch < num_threads()) return multiply(0, products.batch);
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                      static_cast<double>(p.terms);
  const auto grain = static_cast<int64_t>(std::max(1.0, 65536 / std::max(work, 1.0)));
  parallel_for(0, products.batch, grain, multiply);
}

template void batched_gemm(const GemmBatch<float>&);
template void batched_gemm(const GemmBatch<double>&);
template void batched_gemm(const GemmBatch<int64_t>&);
template void batched_gemm(const GemmBatch<BFloat16>&);
template void batched_gemm(const GemmBatch<BFloat16, float>&);

}  // namespace pleat::ops
