#include "pleat/ops/matmul/batched_gemm.h"

#include <algorithm>
#include <type_traits>

#include "pleat/core/parallel/parallel.h"

namespace pleat::ops {
namespace {

/// Product number `index` of a batch.
template <class T, class Out>
Gemm<T, Out> product_at(const GemmBatch<T, Out>& products, int64_t index) {
  Gemm<T, Out> product = products.first;
  product.a += index * products.a_step;
  product.b += index * products.b_step;
  product.c += index * products.c_step;
  return product;
}

}  // namespace

template <class T, class Out>
void batched_gemm(const GemmBatch<T, Out>& products) {
  const Gemm<T, Out>& p = products.first;
  // A few large products divide themselves among the threads; the result is the same either way.
  if (products.batch < num_threads()) {
    for (int64_t i = 0; i < products.batch; ++i) gemm(product_at(products, i));
    return;
  }
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                      static_cast<double>(p.terms);
  const auto grain = static_cast<int64_t>(std::max(1.0, 65536 / std::max(work, 1.0)));
  parallel_for(0, products.batch, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) gemm(product_at(products, i));
  });
}

template void batched_gemm(const GemmBatch<float>&);
template void batched_gemm(const GemmBatch<double>&);
template void batched_gemm(const GemmBatch<int64_t>&);
template void batched_gemm(const GemmBatch<BFloat16>&);
template void batched_gemm(const GemmBatch<BFloat16, float>&);

}  // namespace pleat::ops
