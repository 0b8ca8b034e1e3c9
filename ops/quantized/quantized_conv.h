// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pleat/core/tensor/shared_blocks.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/matmul/kernels.h"
#include "pleat/ops/quantized/u8s8_kernels.h"
#include "pleat/ops/spatial/bounds.h"

namespace pleat::ops {

/// Which numbers the bytes q of a tensor stand for: scale (q - zero) (Jacob et al., arXiv:1712.05877).
struct Quantization {
  float scale = 1;
  int32_t zero = 0;

  /// That of the least range that holds `least`, `most` and 0.
  static Quantization of(double least, double most);
};

/// What becomes of a result: limits(f(y + addend)), held as `y` says.
struct QuantizedFinish {
  std::optional<Quantization> y = {};       ///< empty: float32
  std::optional<Quantization> addend = {};  ///< of an addend that is uint8
  const ElementFunction* f = nullptr;       ///< null: none
  Bounds bounds = {};
};

/// conv1d ... 3d, or linear, of float32 weights that no longer change, computed in int8 on the CPU: weights
/// with a scale for each output channel, activations as uint8, int32 sums. Run many times, off the tape, for
/// inputs of any shape, by several threads at once. The bits do not depend on the processor or the threads,
/// but for those of f.
class QuantizedConv {
 public:
  /// A weight [out, in] is that of linear; the bias may be undefined. Throws ValueError where
  /// sums_fit(depth) is false, or a weight is not finite.
  /// What is made of the weights is one of `shared`.
  QuantizedConv(const Tensor& weight, const Tensor& bias, const ConvOptions& options, const Quantization& x,
                const QuantizedFinish& finish, SharedBlocks& shared,
                const U8S8Kernels& kernels = u8s8_kernels());

  /// Of x as uint8 or float32. The addend, if any, has the shape of the result, and is float32, or uint8
  /// where the finish says how.
  Tensor run(const Tensor& x, const Tensor& addend = {}) const;

  /// Whether int32 holds all sums of so many products.
  static bool sums_fit(int64_t depth) { return depth <= INT32_MAX / (2 * 255 * 127); }

 private:
  struct Windows;
  struct Chunk;

  void lay_out(int64_t weights);
  void pack(const Tensor& weight, const Tensor& bias, const Quantization& x, std::byte* memory) const;
  Windows windows_of(const Tensor& x, Shape& output) const;
  void run_chunk(const Chunk& chunk) const;
  void multiply(const Chunk& chunk, const std::vector<int64_t>& segments, const uint8_t* const* rows,
                int64_t count, int64_t first) const;

  const U8S8Kernels& kernels_;
  ConvOptions options_;
  Shape weight_shape_;
  Tensor like_;  ///< of the weight's type
  Quantization x_;
  QuantizedFinish finish_;
  bool is_linear_, is_depthwise_ = false;
  int64_t in_channels_ = 0, out_channels_ = 0;
  int64_t groups_ = 1;        ///< several small ones as one, with zeros
  int64_t segment_taps_ = 1;  ///< neighbours along the width that lie together
  int64_t column_step_ = 0;   ///< from group to group in what there is for each column
  int64_t taps_ = 1;
  int64_t b_size_ = 0, columns_ = 0;
  /// Of each column where sums start, scales and shifts; then the weights.
  std::shared_ptr<std::byte> packed_;

  const int32_t* start() const { return reinterpret_cast<const int32_t*>(packed_.get()); }
  const float* scale() const { return reinterpret_cast<const float*>(start() + columns_); }
  const float* shift() const { return scale() + columns_; }
  const int8_t* b() const { return reinterpret_cast<const int8_t*>(shift() + columns_); }
};

}  // namespace pleat::ops
