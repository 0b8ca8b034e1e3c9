#include <algorithm>
#include <type_traits>
#include <vector>

#include "pleat/core/convert.h"
#include "pleat/core/grid.h"
#include "pleat/core/parallel.h"
#include "pleat/ops/matmul/device_gemm.h"

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

/// A row-major matrix in float.
template <class T>
std::vector<float> widened(const T* matrix, int64_t rows, int64_t columns, int64_t leading) {
  std::vector<float> wide(static_cast<std::size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    std::transform(matrix + i * leading, matrix + i * leading + columns, wide.begin() + i * columns,
                   convert<float, T>);
  return wide;
}

template <class T, class Out>
void multiply(const Gemm<T, Out>& p) {
  if constexpr (!is_half(dtype_of<T>())) {
    gemm(p);
  } else if (p.terms > 1) {
    for (int64_t i = 0; i < p.terms; ++i) multiply(term_of(p, i));
  } else {
    const std::vector<float> a =
        p.transpose_a ? widened(p.a, p.k, p.m, p.lda) : widened(p.a, p.m, p.k, p.lda);
    const std::vector<float> b =
        p.transpose_b ? widened(p.b, p.n, p.k, p.ldb) : widened(p.b, p.k, p.n, p.ldb);
    std::vector<float> c(static_cast<std::size_t>(p.m * p.n));
    if (p.accumulate) c = widened(p.c, p.m, p.n, p.ldc);
    gemm(Gemm<float>{.m = p.m,
                     .n = p.n,
                     .k = p.k,
                     .a = a.data(),
                     .lda = p.transpose_a ? p.m : p.k,
                     .transpose_a = p.transpose_a,
                     .b = b.data(),
                     .ldb = p.transpose_b ? p.k : p.n,
                     .transpose_b = p.transpose_b,
                     .c = c.data(),
                     .ldc = p.n,
                     .accumulate = p.accumulate,
                     .alpha = p.alpha});
    for (int64_t i = 0; i < p.m; ++i)
      std::transform(c.begin() + i * p.n, c.begin() + (i + 1) * p.n, p.c + i * p.ldc, convert<Out, float>);
  }
}

template <class T, class Out>
void cpu_gemm(const GemmBatch<T, Out>& products) {
  const Gemm<T, Out>& p = products.first;
  // A few large products divide themselves among the threads; the result is the same either way.
  if (products.batch < num_threads()) {
    for (int64_t i = 0; i < products.batch; ++i) multiply(product_at(products, i));
    return;
  }
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                      static_cast<double>(p.terms);
  const auto grain = static_cast<int64_t>(std::max(1.0, 65536 / std::max(work, 1.0)));
  parallel_for(0, products.batch, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) multiply(product_at(products, i));
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
    for (int64_t term = 0; term < p.terms; ++term) {
      for (int64_t l = 0; l < p.k; ++l) {
        const int64_t left = p.transpose_a ? a[l * p.lda + i] : a[i * p.lda + l];
        const int64_t right = p.transpose_b ? b[j * p.ldb + l] : b[l * p.ldb + j];
        total += static_cast<uint64_t>(left) * static_cast<uint64_t>(right);
      }
      a += p.a_term_step;
      b += p.b_term_step;
    }
    total *= static_cast<uint64_t>(p.alpha);
    c = static_cast<int64_t>(total + (p.accumulate ? static_cast<uint64_t>(c) : 0));
  }
};

}  // namespace

template <class T, class Out>
void device_gemm(const char* op, Device device, const GemmBatch<T, Out>& products) {
  if constexpr (std::is_same_v<T, int64_t>) {
    const Gemm<int64_t>& p = products.first;
    if (uses_grid(device)) return grid_for(op, device, products.batch * p.m * p.n, IntegerProduct{products});
  } else if (device.is_cuda()) {
    return cublas_gemm(op, device, products);
  }
  cpu_gemm(products);
}

template void device_gemm(const char*, Device, const GemmBatch<float>&);
template void device_gemm(const char*, Device, const GemmBatch<double>&);
template void device_gemm(const char*, Device, const GemmBatch<int64_t>&);
template void device_gemm(const char*, Device, const GemmBatch<Half>&);
template void device_gemm(const char*, Device, const GemmBatch<Half, float>&);
template void device_gemm(const char*, Device, const GemmBatch<BFloat16>&);
template void device_gemm(const char*, Device, const GemmBatch<BFloat16, float>&);

}  // namespace pleat::ops
