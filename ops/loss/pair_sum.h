// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block_counters.h"
#include "pleat/core/tensor/create.h"

#if PLEAT_COMPILES_KERNELS
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/load_as.h"
#endif

/// The sum of a formula of pairs of elements, in one launch on a GPU.

namespace pleat::ops {

/// y [] = share times the sum of formula(x, t) over the elements of dense tensors of the same strides,
/// computed in float32 and summed in float64. On CUDA alone.
template <class F>
void sum_of_pairs(const char* op, const Tensor& y, const Tensor& x, const Tensor& t, double share,
                  const F& formula);

#if PLEAT_COMPILES_KERNELS

/// Blocks that each add up every so many vectors of pairs; the last one adds up their sums.
template <class F>
struct PairSums {
  F formula;
  const std::byte* x;
  const std::byte* t;
  DType x_type, t_type;
  int64_t n;
  int64_t blocks;
  bool by_vectors;
  double share;
  double* sums;  ///< of each block
  unsigned* counter;
  std::byte* y;
  DType y_type;

  __device__ void operator()(int64_t b, const Block& block) const {
    const Teams all{log_block_threads, true};
    const auto add = [](double& into, double other) { into += other; };
    double sum = 0;
    const int64_t step = blocks * block_threads;
    int64_t i = b * block_threads + block.thread();
    if (by_vectors) {
      constexpr int64_t width = vector_width;
      for (; (i + 1) * width <= n; i += step) {
        float a[vector_width], c[vector_width];
        load_vector(a, x, i * width, x_type);
        load_vector(c, t, i * width, t_type);
        PLEAT_UNROLL
        for (uint32_t j = 0; j < vector_width; ++j) sum += static_cast<double>(formula(a[j], c[j]));
      }
      i = n / width * width + b * block_threads + block.thread();
    }
    for (; i < n; i += step)
      sum += static_cast<double>(formula(load_as<float>(x, i, x_type), load_as<float>(t, i, t_type)));
    block.combine(sum, all, add);
    if (block.thread() == 0) sums[b] = sum;
    if (!block.last_of(counter, blocks)) return;
    sum = 0;
    for (int64_t k = block.thread(); k < blocks; k += block_threads) sum += sums[k];
    block.combine(sum, all, add);
    if (block.thread() == 0) store_as<double>(y, 0, y_type, sum * share);
  }
};

template <class F>
void sum_of_pairs(const char* op, const Tensor& y, const Tensor& x, const Tensor& t, double share,
                  const F& formula) {
  constexpr int64_t enough_blocks = 1024, thread_elements = 32;
  const int64_t n = x.numel();
  const int64_t blocks = std::clamp<int64_t>(n / (thread_elements * block_threads), 1, enough_blocks);
  const Tensor sums = empty({blocks}, {.dtype = float64, .device = x.device()});
  const auto has_vectors = [](const Tensor& of) {
    return moves_vectors_of<float>(of.dtype()) &&
           reinterpret_cast<std::uintptr_t>(of.raw()) %
                   static_cast<std::uintptr_t>(vector_width * size_of(of.dtype())) ==
               0;
  };
  launch_blocks(op, x.device(), blocks,
                PairSums<F>{formula, x.raw(), t.raw(), x.dtype(), t.dtype(), n, blocks,
                            has_vectors(x) && has_vectors(t), share, sums.data<double>(),
                            block_counters(x.device()), y.raw(), y.dtype()});
}

#endif

}  // namespace pleat::ops
