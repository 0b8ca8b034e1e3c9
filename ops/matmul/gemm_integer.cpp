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

}  // namespace pleat::ops
