#pragma once

#include <optional>
#include <string>

#include "pleat/core/base/required.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/options.h"

namespace pleat {

/// Windows of `kernel_size` at distance `stride` over an input with `padding`, given as that of a
/// convolution: a number, a list, {low, high} pairs, "same" (the result has the input's size; needs `.stride
/// = 1`) or "valid". The result has
///   floor((input + low + high - dilation (kernel_size - 1) - 1) / stride) + 1
/// elements in each spatial dimension; `ceil_mode` rounds up, but for a window that would start behind the
/// input and its low padding. Each side's padding is at most half of what a window reaches over,
/// dilation (kernel_size - 1) + 1.
struct MaxPoolOptions {
  Required<PerDim> kernel_size;
  PerDim stride = {};   ///< empty: kernel_size
  Padding padding = 0;  ///< never the maximum
  PerDim dilation = 1;
  bool ceil_mode = false;
  std::string implementation = {};  ///< "native", "reference"; empty: native
};

struct AvgPoolOptions {
  Required<PerDim> kernel_size;
  PerDim stride = {};   ///< empty: kernel_size
  Padding padding = 0;  ///< zeros
  PerDim dilation = 1;
  bool ceil_mode = false;
  /// Divide by the window's size with the padding in it, at both sides (but not what ceil_mode lets it reach
  /// beyond); else by the number of elements of the input in it. A window without any gives 0.
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = {};  ///< divide by this instead
  std::string implementation = {};               ///< "native", "reference"; empty: native
};

/// Output o of n covers inputs floor(o size / n) to ceil((o + 1) size / n) - 1.
struct AdaptivePoolOptions {
  PerDim output_size = 1;
  std::string implementation = {};  ///< "native", "reference"; empty: native
};

namespace ops {

struct MaxPoolResult {
  Tensor values;
  /// int32 (int64 where planes are larger), like `values`: the place of the maximum in its plane, row-major;
  /// of equal ones the first. -1 where a window has no element.
  Tensor indices;
};

/// Pooling of x [N, C, spatial...] of 1 to 3 spatial dimensions, floating; results keep type and memory
/// format. A NaN is larger than any number; a window that dilation leads around the input altogether gives
/// -infinity. All throw ShapeError (rank, an output without elements),
/// ValueError (kernel size, stride or dilation below 1, padding above half of the window, "same" with a
/// stride, divisor 0), DTypeError, DeviceError; `op` names the function in the message.
/// Without `with_indices` there may be none, which is faster.
MaxPoolResult max_pool(const Tensor& x, const MaxPoolOptions& options, const char* op = "max_pool",
                       bool with_indices = true);
MaxPoolResult adaptive_max_pool(const Tensor& x, const AdaptivePoolOptions& options,
                                const char* op = "adaptive_max_pool", bool with_indices = true);

/// The gradient of `values` with respect to x [input_shape], in the given format: each dy goes where its
/// index points to. Throws IndexError when an index is outside.
Tensor max_pool_backward(const Tensor& dy, const Tensor& indices, const Sizes& input_shape,
                         MemoryFormat format, const char* op = "max_pool");
/// Its adjoint: the elements of x [N, C, spatial...] that the indices name, in x's format; 0 where an index
/// is -1.
Tensor max_pool_gather(const Tensor& x, const Tensor& indices, const char* op = "max_pool");

}  // namespace ops
}  // namespace pleat
