// Private header: not installed.
#pragma once

#include <cstdint>
#include <type_traits>

#include "pleat/core/dtype.h"

/// The matrix product under everything: C = op(A) op(B) on row-major matrices with leading dimensions.

namespace pleat::ops {

/// One product: C[m,n] = alpha op(A)[m,k] op(B)[k,n] (+ C). All matrices are row-major; a leading dimension
/// is the distance of two rows in elements. op(A) is A[m,k], or the transposed of A[k,m]; op(B) is B[k,n], or
/// the transposed of B[n,k]. The leading dimensions of A and B may be less than a row, so that rows overlap;
/// C must not overlap itself, A or B. With k = 0 the product is 0. Half types are multiplied and added in
/// float and rounded, where `Out` is one, at the end.
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
};

/// Computes the product in the calling thread as one piece; made to be called from inside parallel_chunks.
void gemm_serial(const Gemm<float>& product);
void gemm_serial(const Gemm<double>& product);

/// Computes the product on the pool. C (and k, where C is small) is cut into blocks by its shape alone, also
/// when there is one thread or the caller is inside a parallel region: the bits do not depend on the number
/// of threads.
void gemm(const Gemm<float>& product);
void gemm(const Gemm<double>& product);
/// Integers, modulo 2^64, by a plain loop.
void gemm(const Gemm<int64_t>& product);

}  // namespace pleat::ops
