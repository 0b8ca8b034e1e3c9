#include <algorithm>

#include "pleat/core/parallel.h"
#include "pleat/ops/matmul/gemm.h"

namespace pleat::ops {

void gemm(const Gemm<int64_t>& p) {
  // Unsigned, so that overflow wraps instead of being undefined.
  const auto number = [](int64_t x) { return static_cast<uint64_t>(x); };
  parallel_for(0, p.m, std::max<int64_t>(1, 32768 / std::max<int64_t>(p.n * p.k, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   int64_t* const c = p.c + i * p.ldc;
                   if (!p.accumulate) std::fill_n(c, p.n, 0);
                   for (int64_t l = 0; l < p.k; ++l) {
                     const uint64_t a =
                         number(p.alpha) * number(p.transpose_a ? p.a[l * p.lda + i] : p.a[i * p.lda + l]);
                     const int64_t* const b = p.b + (p.transpose_b ? l : l * p.ldb);
                     const int64_t step = p.transpose_b ? p.ldb : 1;
                     for (int64_t j = 0; j < p.n; ++j)
                       c[j] = static_cast<int64_t>(number(c[j]) + a * number(b[j * step]));
                   }
                 }
               });
}

}  // namespace pleat::ops
