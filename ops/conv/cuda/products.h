// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/ops/conv/cuda/pixels.h"
#include "pleat/ops/matmul/gemm.h"

/// Products of matrices by cuBLAS, and the sums of their parts.

namespace pleat::ops::cuda_conv {

/// Distances in elements between the matrices of neighbouring products.
struct Steps {
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
};

/// The products of a batch for each of `others`, which lie `steps` apart: the longer of the two is the batch
/// of a call.
template <class T, class Out>
void multiply_all(Device device, GemmBatch<T, Out> products, int64_t others, Steps steps) {
  if (others > products.batch) {
    std::swap(others, products.batch);
    std::swap(steps.a, products.a_step);
    std::swap(steps.b, products.b_step);
    std::swap(steps.c, products.c_step);
  }
  for (int64_t i = 0; i < others; ++i) {
    cublas_gemm(op, device, products);
    products.first.a += steps.a;
    products.first.b += steps.b;
    products.first.c += steps.c;
  }
}

/// total[i] = parts[0][i] + parts[1][i] + ..., in this order.
template <class From, class To>
struct SumParts {
  int64_t parts, size;
  const From* from;
  To* total;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    From sum = from[i];
    for (int64_t part = 1; part < parts; ++part) sum += from[part * size + i];
    total[i] = static_cast<To>(sum);
  }
};

/// Pixels of a chunk that are summed apart for dw, so that a small matrix of weights keeps a large GPU busy.
struct Split {
  int64_t pixels;  ///< of the chunk
  int64_t most;    ///< parts
  int64_t part;    ///< pixels of one; the last may have less

  Split(const ConvProblem& p, int64_t pixels_) : pixels(pixels_) {
    constexpr int64_t tile = 128;
    constexpr int64_t wanted = 264;  // two blocks for each multiprocessor of the largest GPUs
    constexpr int64_t fewest = 256;  // shorter sums cost more to add up than they gain
    const int64_t tiles = p.groups * ceil_div(p.group_out(), tile) * ceil_div(p.depth(), tile);
    most = std::min(ceil_div(wanted, tiles), std::max<int64_t>(1, pixels / fewest));
    part = ceil_div(pixels, most);
  }
  int64_t parts() const { return ceil_div(pixels, part); }
};

/// dw [K, depth], added up over chunks of pixels, in order.
template <class T>
class WeightSum {
 public:
  /// No chunk has more than `pixels` pixels.
  WeightSum(const ConvProblem& p, int64_t pixels)
      : p_(p),
        size_(p.out_channels * p.depth()),
        partials_(scratch_on<Sum<T>>(p.device, elements(p, pixels))) {}

  /// Of the partial sums.
  static int64_t elements(const ConvProblem& p, int64_t pixels) {
    return (Split(p, pixels).most + 1) * p.out_channels * p.depth();
  }

  /// Adds `pixels` products of dy and U. `product` is that of the first group's first pixels but for c and k;
  /// its operands are `pixel` apart for the next pixel, `group` for the next group. Writes dw with the last.
  void add(Gemm<T, Sum<T>> product, int64_t pixels, Steps pixel, Steps group, bool is_last, T* dw) {
    const Split split(p_, pixels);
    const int64_t whole = pixels / split.part;
    group.c = p_.group_out() * p_.depth();
    // The sum so far lies in front of the parts, so that one ordered sum takes all.
    product.c = partials_.template data<Sum<T>>() + size_;
    product.k = split.part;
    multiply_all(p_.device,
                 GemmBatch<T, Sum<T>>{.first = product,
                                      .batch = whole,
                                      .a_step = split.part * pixel.a,
                                      .b_step = split.part * pixel.b,
                                      .c_step = size_},
                 p_.groups, group);
    if (whole * split.part < pixels) {
      product.k = pixels - whole * split.part;
      product.a += whole * split.part * pixel.a;
      product.b += whole * split.part * pixel.b;
      product.c += whole * size_;
      multiply_all(p_.device, GemmBatch<T, Sum<T>>{.first = product}, p_.groups, group);
    }
    Sum<T>* const sums = partials_.template data<Sum<T>>();
    const Sum<T>* const from = is_first_ ? sums + size_ : sums;
    const int64_t count = split.parts() + (is_first_ ? 0 : 1);
    if (is_last)
      launch_indices(op, p_.device, size_, SumParts<Sum<T>, T>{count, size_, from, dw});
    else
      launch_indices(op, p_.device, size_, SumParts<Sum<T>, Sum<T>>{count, size_, from, sums});
    is_first_ = false;
  }

 private:
  ConvProblem p_;
  int64_t size_;
  Tensor partials_;
  bool is_first_ = true;
};

}  // namespace pleat::ops::cuda_conv
