#include "pleat/ops/pool/pool.h"

#include <cmath>

#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/trace.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/interpolate/linear_map.h"
#include "pleat/ops/pool/kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

using ops::PoolDim;
using ops::WindowRules;

Tensor gather(const char* op, const Tensor& x, const Tensor& indices, const WindowRules& windows);

Derivative scatter_to(const char* op, const Tensor& x, const Tensor& indices, const WindowRules& windows) {
  return grad_of(
      x, [op, indices = saved(indices), windows, shape = x.shape(), format = x.memory_format()](
             const Tensor& d) { return ops::scatter_to_windows(op, d, *indices, windows, shape, format); });
}

Tensor gather(const char* op, const Tensor& x, const Tensor& indices, const WindowRules& windows) {
  return record(std::string(op) + "_gather", ops::max_pool_gather(op, x, indices),
                {scatter_to(op, x, indices, windows)});
}

/// The maxima of windows, on the tape, and where they are, if asked for or needed for a gradient.
ops::MaxPoolResult maxima(const char* op, const Tensor& x, const WindowRules& windows,
                          const std::string& implementation, bool with_indices) {
  const RecordOp range(op, x);
  const bool reference = ops::wants_reference(op, implementation);
  const ops::MaxPoolResult found =
      ops::max_pool_forward(op, x, windows, reference, with_indices || autograd::anything_to_record({x}));
  return {record(op, found.values, {scatter_to(op, x, found.indices, windows)}), found.indices};
}

template <class Options>
std::vector<PoolDim> dims_of(const char* op, const Tensor& x, const Options& options) {
  return ops::pool_dims(op, x, options.kernel_size, options.stride, options.padding, options.dilation,
                        options.ceil_mode);
}

/// The windows of a pool, for those who watch.
Attributes traced_windows(const std::vector<PoolDim>& dims) {
  const auto each = [&](int64_t PoolDim::*member) {
    std::vector<int64_t> list;
    for (const PoolDim& dim : dims) list.push_back(dim.*member);
    return list;
  };
  return {{"kernel", each(&PoolDim::kernel)},
          {"stride", each(&PoolDim::stride)},
          {"padding_low", each(&PoolDim::low)},
          {"padding_high", each(&PoolDim::high)},
          {"dilation", each(&PoolDim::dilation)}};
}

Tensor max_pool(const char* op, const Tensor& x, const MaxPoolOptions& options) {
  const std::vector<PoolDim> dims = dims_of(op, x, options);
  const Call call(op, {x}, [&] { return traced_windows(dims); });
  return call.gives(maxima(op, x, ops::windows_of(dims), options.implementation, false).values);
}
Tensor adaptive_max_pool(const char* op, const Tensor& x, const AdaptivePoolOptions& options) {
  const Call call(op, {x});
  const WindowRules windows = ops::adaptive_windows(op, x, options);
  return call.gives(maxima(op, x, windows, options.implementation, false).values);
}
Tensor avg_pool(const char* op, const Tensor& x, const AvgPoolOptions& options) {
  const std::vector<PoolDim> dims = dims_of(op, x, options);
  const Call call(op, {x}, [&] {
    Attributes attributes = traced_windows(dims);
    attributes.emplace_back("count_include_pad", Flag(options.count_include_pad));
    attributes.emplace_back("divisor", options.divisor_override.value_or(0));
    return attributes;
  });
  const ops::LinearMap map = ops::avg_pool_map(op, dims, options);
  return call.gives(linear_map(op, map, x, {.implementation = options.implementation}));
}
Tensor adaptive_avg_pool(const char* op, const Tensor& x, const AdaptivePoolOptions& options) {
  const ops::LinearMap map = ops::adaptive_avg_pool_map(op, x, options);
  const Call call(op, traced_operands(x, map));
  return call.gives(linear_map(op, map, x, {.implementation = options.implementation}));
}

Tensor lp_pool(const char* op, const Tensor& input, const LpPoolOptions& options) {
  const RecordOp range(op, input);
  const double p = options.norm_type;
  check<ValueError>(p > 0 && std::isfinite(p), "{}: norm_type must be above 0 and finite, got {}{}", op, p,
                    p > 0 ? "; that is max_pool of abs(x)" : "");
  check<DTypeError>(is_floating(input.dtype()),
                    "{}: needs floating numbers, got {}; convert it with to(float32)", op, input);
  const std::vector<PoolDim> dims = dims_of(op, input, options);  // throws by this function's name
  const AvgPoolOptions sum{.kernel_size = options.kernel_size,
                           .stride = options.stride,
                           .padding = options.padding,
                           .dilation = options.dilation,
                           .ceil_mode = options.ceil_mode,
                           .divisor_override = 1,
                           .implementation = options.implementation};
  if (p == 1) return pleat::avg_pool(input, sum);
  // Those who watch are told of functions that they know.
  if (p == 2 && input.device().is_cuda() && input.dtype() != float64 && detail::call_observer == nullptr &&
      !ops::wants_reference(op, options.implementation))
    if (const Tensor y = ops::norm_pool(op, ops::avg_pool_map(op, dims, sum), input); y.defined()) return y;
  const Tensor x = input.to(compute_dtype(input.dtype()));
  const Tensor sums = pleat::avg_pool(p == 2 ? square(x) : pow(x, p), sum);
  const Tensor is_zero = sums == 0;
  const Tensor root = pow(masked_fill(sums, is_zero, 1), 1 / p);
  return masked_fill(root, is_zero, 0).to(input.dtype());
}

/// `pool` for input of `dims` spatial dimensions, with or without a batch.
template <class Options>
Tensor with_rank(const char* op, int64_t dims, Tensor (*pool)(const char*, const Tensor&, const Options&),
                 const Tensor& x, const Options& options) {
  if (x.rank() == dims + 2) return pool(op, x, options);
  check<ShapeError>(x.rank() == dims + 1,
                    "{}: input must be [N, C, and {} spatial dimensions] or without N, got {}", op, dims, x);
  return squeeze(pool(op, unsqueeze(x, 0), options), 0);
}

}  // namespace

Tensor ops::scatter_to_windows(const char* op, const Tensor& x, const Tensor& indices,
                               const WindowRules& windows, const Shape& shape, MemoryFormat format) {
  return record(std::string(op) + "_backward", max_pool_backward(op, x, indices, windows, shape, format),
                {grad_of(x, [op, indices = saved(indices), windows](const Tensor& d) {
                  return gather(op, d, *indices, windows);
                })});
}

MaxPoolWithIndices max_pool_with_indices(const Tensor& x, const MaxPoolOptions& options) {
  const std::vector<PoolDim> dims = dims_of("max_pool", x, options);
  const Call call("max_pool_with_indices", {x}, [&] { return traced_windows(dims); });
  const auto [values, indices] = maxima("max_pool", x, ops::windows_of(dims), options.implementation, true);
  const auto traced = call.gives(std::vector{values, ops::cast(indices, int64)});
  return {traced[0], traced[1]};
}

#define PLEAT_POOL(name, Options)                                                          \
  Tensor name(const Tensor& x, const Options& options) { return name(#name, x, options); } \
  Tensor name##1d(const Tensor& x, const Options& options) {                               \
    return with_rank(#name "1d", 1, name, x, options);                                     \
  }                                                                                        \
  Tensor name##2d(const Tensor& x, const Options& options) {                               \
    return with_rank(#name "2d", 2, name, x, options);                                     \
  }                                                                                        \
  Tensor name##3d(const Tensor& x, const Options& options) {                               \
    return with_rank(#name "3d", 3, name, x, options);                                     \
  }
PLEAT_POOL(max_pool, MaxPoolOptions)
PLEAT_POOL(avg_pool, AvgPoolOptions)
PLEAT_POOL(lp_pool, LpPoolOptions)
PLEAT_POOL(adaptive_max_pool, AdaptivePoolOptions)
PLEAT_POOL(adaptive_avg_pool, AdaptivePoolOptions)
#undef PLEAT_POOL

}  // namespace pleat
