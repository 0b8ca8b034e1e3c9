#include <algorithm>

#include "pleat/core/grid.h"
#include "pleat/core/parallel.h"
#include "pleat/ops/matmul/device_gemm.h"

namespace pleat::ops {
namespace {

/// Product number `index` of a batch.
template <class T>
Gemm<T> product_at(const GemmBatch<T>& products, int64_t index) {
  Gemm<T> product = products.first;
  product.a += index * products.a_step;
  product.b += index * products.b_step;
  product.c += index * products.c_step;
  return product;
}

template <class T>
void cpu_gemm(const GemmBatch<T>& products) {
  const Gemm<T>& p = products.first;
  // A few large products divide themselves among the threads; the result is the same either way.
  if (products.batch < num_threads()) {
    for (int64_t i = 0; i < products.batch; ++i) gemm(product_at(products, i));
    return;
  }
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const auto grain = static_cast<int64_t>(std::max(1.0, 65536 / std::max(work, 1.0)));
  parallel_for(0, products.batch, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) gemm(product_at(products, i));
  });
}

/// One element of integer products, modulo 2^64.
struct IntegerProduct {
  GemmBatch<int64_t> products;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    const Gemm<int64_t>& p = products.first;
    const int64_t j = index % p.n;
    const int64_t i = index / p.n % p.m;
    const int64_t batch = index / p.n / p.m;
    const int64_t* a = p.a + batch * products.a_step;
    const int64_t* b = p.b + batch * products.b_step;
    int64_t& c = p.c[batch * products.c_step + i * p.ldc + j];
    uint64_t total = 0;
    for (int64_t l = 0; l < p.k; ++l) {
      const int64_t left = p.transpose_a ? a[l * p.lda + i] : a[i * p.lda + l];
      const int64_t right = p.transpose_b ? b[j * p.ldb + l] : b[l * p.ldb + j];
      total += static_cast<uint64_t>(left) * static_cast<uint64_t>(right);
    }
    total *= static_cast<uint64_t>(p.alpha);
    c = static_cast<int64_t>(total + (p.accumulate ? static_cast<uint64_t>(c) : 0));
  }
};

}  // namespace

void device_gemm(const char* op, Device device, const GemmBatch<float>& products) {
  if (device.is_cuda()) return cublas_gemm(op, device, products);
  cpu_gemm(products);
}

void device_gemm(const char* op, Device device, const GemmBatch<double>& products) {
  if (device.is_cuda()) return cublas_gemm(op, device, products);
  cpu_gemm(products);
}

void device_gemm(const char* op, Device device, const GemmBatch<int64_t>& products) {
  const Gemm<int64_t>& p = products.first;
  if (uses_grid(device)) return grid_for(op, device, products.batch * p.m * p.n, IntegerProduct{products});
  cpu_gemm(products);
}

}  // namespace pleat::ops
