// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "pleat/core/base/device.h"
#include "pleat/core/tensor/dtype.h"

/// The matrix product under everything: C = op(A) op(B) on row-major matrices with leading dimensions.

namespace pleat::ops {

/// What is done with elements of C as soon as they are complete, while they are in a cache.
template <class Out>
struct Finish {
  virtual ~Finish() = default;
  /// With n neighbours.
  virtual void run(Out* c, int64_t n) const = 0;
};

/// One product: C[m,n] = alpha op(A)[m,k] op(B)[k,n] (+ C, or + another matrix or row). All matrices are
/// row-major; a leading dimension is the distance of two rows in elements. op(A) is A[m,k], or the transposed
/// of A[k,m]; op(B) is B[k,n], or the transposed of B[n,k]. The leading dimensions of A and B may be less
/// than a row, so that rows overlap; C must not overlap itself, A or B. With k = 0 the product is 0. Half
/// types are multiplied and added in float and rounded, where `Out` is one, at the end.
///
/// Several `terms` (at least one) are products to add up, C = alpha (op(A_0) op(B_0) + op(A_1) op(B_1) + ...)
/// (+ C), whose operands lie at equal distances; their sum goes through C, so that `Out` should not be a half
/// type.
template <class T, class Out = T>
struct Gemm {
  using Scale = std::conditional_t<is_half(dtype_of<T>()), float, T>;

  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const T* a = nullptr;
  int64_t lda = 0;
  bool transpose_a = false;
  const T* b = nullptr;
  int64_t ldb = 0;
  bool transpose_b = false;
  Out* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;  ///< add to C instead of overwriting it
  Scale alpha = 1;
  int64_t terms = 1;
  int64_t a_term_step = 0;  ///< from A of one term to that of the next, in elements
  int64_t b_term_step = 0;
  const Out* start = nullptr;           ///< a matrix to add, unless `accumulate`; or none
  int64_t start_row = 0;                ///< from row to row of it; 0: one row for all, a bias
  const Finish<Out>* finish = nullptr;  ///< by gemm (gemm_serial does not), of one term
};

/// The part of at most `rows` rows and `columns` columns of C from some on.
template <class T, class Out>
Gemm<T, Out> block_of(Gemm<T, Out> p, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  p.m = std::min(rows, p.m - row);
  p.n = std::min(columns, p.n - column);
  p.a += p.transpose_a ? row : row * p.lda;
  p.b += p.transpose_b ? column * p.ldb : column;
  p.c += row * p.ldc + column;
  if (p.start != nullptr) p.start += row * p.start_row + column;
  return p;
}

/// Term number `index` alone; all but the first are added to C.
template <class T, class Out>
Gemm<T, Out> term_of(Gemm<T, Out> product, int64_t index) {
  product.terms = 1;
  product.a += index * product.a_term_step;
  product.b += index * product.b_term_step;
  product.accumulate = product.accumulate || index > 0;
  return product;
}

/// The product that starts from C, to which it has copied its start.
template <class T, class Out>
Gemm<T, Out> started(Gemm<T, Out> product) {
  if (product.start == nullptr || product.accumulate) return product;
  for (int64_t row = 0; row < product.m; ++row)
    std::copy_n(product.start + row * product.start_row, product.n, product.c + row * product.ldc);
  product.accumulate = true;
  return product;
}

/// Whether this processor multiplies bfloat16: it has AVX512_BF16, and so had the compiler. The products of
/// bfloat16 below need it; elsewhere operands are to be converted to float. The instructions take denormal
/// numbers, also those of float32 among the sums, for 0.
bool multiplies_bfloat16();

/// Computes the product in the calling thread as one piece; made to be called from inside parallel_chunks.
void gemm_serial(const Gemm<float>& product);
void gemm_serial(const Gemm<double>& product);
void gemm_serial(const Gemm<BFloat16>& product);
void gemm_serial(const Gemm<BFloat16, float>& product);

/// Computes the product on the pool. C (and k or the terms, where C is small) is cut into blocks by its shape
/// alone, also when there is one thread or the caller is inside a parallel region: the bits do not depend on
/// the number of threads. Only blocks whose bits do not depend on the cut, those of panels, are fewer for few
/// threads.
void gemm(const Gemm<float>& product);
void gemm(const Gemm<double>& product);
void gemm(const Gemm<BFloat16>& product);
void gemm(const Gemm<BFloat16, float>& product);
/// Integers, modulo 2^64, by a plain loop.
void gemm(const Gemm<int64_t>& product);

/// `batch` products whose matrices lie at equal distances, in elements; a distance of 0 uses one matrix for
/// all. C's must not overlap.
template <class T, class Out = T>
struct GemmBatch {
  Gemm<T, Out> first;
  int64_t batch = 1;
  int64_t a_step = 0;
  int64_t b_step = 0;
  int64_t c_step = 0;
};

/// Computes the products on the CPU, with `gemm`, for whose types it is.
template <class T, class Out>
void batched_gemm(const GemmBatch<T, Out>& products);

/// The same on a GPU, with cuBLAS in the current stream. T and Out: float, double or int64_t, both the same;
/// or T Half or BFloat16, and Out the same or float. Throws what cuBLAS reports, naming `op`.
template <class T, class Out>
void cublas_gemm(const char* op, Device device, const GemmBatch<T, Out>& products);

}  // namespace pleat::ops
