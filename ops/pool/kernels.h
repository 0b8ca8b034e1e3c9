// Private header: not installed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pleat/core/base/host_device.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/spatial/linear_map.h"

/// What pools have in common: their checks, and the windows they come down to. `op` names the function in
/// errors.

namespace pleat::ops {

/// Where the windows of a pool lie along one dimension: output o covers inputs begin(o), begin(o) + step ...
/// below end(o). A window that starts in the padding begins with its first place behind it.
struct WindowRule {
  int64_t inputs = 1;
  int64_t outputs = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;    ///< before the first input
  int64_t step = 1;       ///< the dilation
  bool adaptive = false;  ///< windows from floor(o inputs / outputs) to ceil((o + 1) inputs / outputs)

  PLEAT_HOST_DEVICE int64_t begin(int64_t o) const {
    if (adaptive) return scaled(o);
    const int64_t start = o * stride - padding;
    if (start >= 0) return start < inputs ? start : inputs;
    const int64_t moved = start + (step - 1 - start) / step * step;
    return moved < inputs ? moved : inputs;
  }
  PLEAT_HOST_DEVICE int64_t end(int64_t o) const {
    if (adaptive) return scaled(o + 1) + (inputs % outputs * (o + 1) % outputs != 0 ? 1 : 0);
    // No overflow: the start lies before the end of the padding, and inputs + padding + reach was checked.
    const int64_t after = o * stride - padding + step * (kernel - 1) + 1;
    return after < inputs ? after : inputs;
  }

 private:
  /// floor(o * inputs / outputs), without its product.
  PLEAT_HOST_DEVICE int64_t scaled(int64_t o) const {
    return inputs / outputs * o + inputs % outputs * o / outputs;
  }
};

/// Those of D, H, W; dimensions that are not there have one window of one input.
using WindowRules = std::array<WindowRule, 3>;

/// One spatial dimension of a pool; low, high: its padding.
struct PoolDim {
  int64_t input, kernel, stride, low, high, dilation, output;
};
std::vector<PoolDim> pool_dims(const char* op, const Tensor& x, const PerDim& kernel_size,
                               const PerDim& stride, const Padding& padding, const PerDim& dilation,
                               bool ceil_mode);

WindowRules windows_of(const std::vector<PoolDim>& dims);
WindowRules adaptive_windows(const char* op, const Tensor& x, const AdaptivePoolOptions& options);
LinearMap avg_pool_map(const char* op, const std::vector<PoolDim>& dims, const AvgPoolOptions& options);
LinearMap adaptive_avg_pool_map(const char* op, const Tensor& x, const AdaptivePoolOptions& options);

/// The root of the sum of squares over windows, `sums` being the map that adds up: on the tape, in one launch
/// on a GPU, of float32 and half types. Undefined where apply_by_rows cannot do it.
Tensor norm_pool(const char* op, const LinearMap& sums, const Tensor& x);

struct MaxPoolResult {
  Tensor values;
  /// int32 (int64 where images are larger, and where kernels count by no other), like `values`: the place of
  /// the maximum in its plane, row-major; of equal ones the first. -1 where a window has no element.
  Tensor indices;
};

// Off the tape.
/// Without `with_indices` there may be none, which is faster.
MaxPoolResult max_pool_forward(const char* op, const Tensor& x, const WindowRules& windows, bool reference,
                               bool with_indices);
/// The gradient of `values` with respect to x [input_shape], in the given format: each dy goes where its
/// index points to.
Tensor max_pool_backward(const char* op, const Tensor& dy, const Tensor& indices, const WindowRules& windows,
                         const Shape& input_shape, MemoryFormat format);
/// Its adjoint: the elements of x [N, C, spatial...] that the indices name, in x's format; 0 where an index
/// is -1.
Tensor max_pool_gather(const char* op, const Tensor& x, const Tensor& indices);

/// Indices [N, C, spatial...], one for each window, as max_pool_backward takes them, dense in
/// `format`: where windows do not overlap and each index lies in its own, so that no two name one place.
/// Undefined elsewhere, and always on the CPU, which has no use for it. The host waits for the GPU.
Tensor places_in_windows(const char* op, const Tensor& indices, const WindowRules& windows,
                         MemoryFormat format);

/// max_pool_backward on the tape: scattering by indices and gathering by them are each other's adjoint.
Tensor scatter_to_windows(const char* op, const Tensor& x, const Tensor& indices, const WindowRules& windows,
                          const Shape& shape, MemoryFormat format);

}  // namespace pleat::ops
