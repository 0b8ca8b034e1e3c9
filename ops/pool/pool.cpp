#include "pleat/ops/pool/pool.h"

#include <cmath>

#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/interpolate/linear_map.h"
#include "pleat/ops/pool/problem.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

Tensor gather(const char* op, const Tensor& x, const Tensor& indices, const ops::WindowRules& windows);

/// Scattering by indices and gathering by them are each other's adjoint.
Tensor scatter(const char* op, const Tensor& dy, const Tensor& indices, const ops::WindowRules& windows,
               const Shape& shape, MemoryFormat format) {
  return record(std::string(op) + "_backward",
                ops::max_pool_backward(dy, indices, windows, shape, format, op),
                {grad_of(dy, [op, indices = saved(indices), windows](const Tensor& d) {
                  return gather(op, d, *indices, windows);
                })});
}

Tensor gather(const char* op, const Tensor& x, const Tensor& indices, const ops::WindowRules& windows) {
  return record(
      std::string(op) + "_gather", ops::max_pool_gather(x, indices, op),
      {grad_of(x, [op, indices = saved(indices), windows, shape = x.shape(), format = x.memory_format()](
                      const Tensor& d) { return scatter(op, d, *indices, windows, shape, format); })});
}

Tensor record_max(const char* op, const Tensor& x, const ops::MaxPoolResult& result,
                  const ops::WindowRules& windows) {
  return record(op, result.values,
                {grad_of(x, [op, indices = saved(result.indices), windows, shape = x.shape(),
                             format = x.memory_format()](const Tensor& dy) {
                  return scatter(op, dy, *indices, windows, shape, format);
                })});
}

/// The windows of a pool, for whoever listens.
template <class Options>
Attributes traced_windows(const char* op, const Tensor& x, const Options& options, const PerDim& dilations) {
  const int64_t dims = x.rank() - 2;
  const std::vector<int64_t> kernel = options.kernel_size.get().expand(dims, op, "kernel_size");
  const std::vector<int64_t> stride =
      options.stride.values().empty() ? kernel : options.stride.expand(dims, op, "stride");
  const std::vector<int64_t> dilation = dilations.expand(dims, op, "dilation");
  std::vector<int64_t> low, high;
  for (const auto& [before, after] : ops::resolve_padding(op, options.padding, kernel, stride, dilation))
    low.push_back(before), high.push_back(after);
  return {{"kernel", kernel},
          {"stride", stride},
          {"padding_low", low},
          {"padding_high", high},
          {"dilation", dilation}};
}

Tensor max_pool(const char* op, const Tensor& x, const MaxPoolOptions& options) {
  const bool backwards = autograd::anything_to_record({x});
  const Call call(op, {x}, [&] { return traced_windows(op, x, options, options.dilation); });
  return call.gives(
      record_max(op, x, ops::max_pool(x, options, op, backwards), ops::max_pool_windows(op, x, options)));
}
Tensor adaptive_max_pool(const char* op, const Tensor& x, const AdaptivePoolOptions& options) {
  const bool backwards = autograd::anything_to_record({x});
  const Call call(op, {x});
  return call.gives(record_max(op, x, ops::adaptive_max_pool(x, options, op, backwards),
                               ops::adaptive_windows(op, x, options)));
}
Tensor avg_pool(const char* op, const Tensor& x, const AvgPoolOptions& options) {
  const ops::LinearMap map = ops::avg_pool_map(op, x, options);
  const Call call(op, {x}, [&] {
    Attributes attributes = traced_windows(op, x, options, options.dilation);
    attributes.emplace_back("count_include_pad", Flag(options.count_include_pad));
    attributes.emplace_back("divisor", options.divisor_override.value_or(0));
    return attributes;
  });
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
  const AvgPoolOptions sum{.kernel_size = options.kernel_size,
                           .stride = options.stride,
                           .padding = options.padding,
                           .dilation = options.dilation,
                           .ceil_mode = options.ceil_mode,
                           .divisor_override = 1,
                           .implementation = options.implementation};
  ops::avg_pool_map(op, input, sum);  // throws by this function's name
  const Tensor x = input.to(compute_dtype(input.dtype()));
  const Tensor sums = pleat::avg_pool(p == 1 ? x : p == 2 ? square(x) : pow(x, p), sum);
  if (p == 1) return sums.to(input.dtype());
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
  Shape batched = x.shape();
  batched.insert(batched.begin(), 1);
  const Tensor y = pool(op, reshape(x, batched), options);
  return reshape(y, Shape(y.shape().begin() + 1, y.shape().end()));
}

}  // namespace

Tensor max_pool(const Tensor& x, const MaxPoolOptions& options) { return max_pool("max_pool", x, options); }
Tensor max_pool1d(const Tensor& x, const MaxPoolOptions& options) {
  return with_rank("max_pool1d", 1, max_pool, x, options);
}
Tensor max_pool2d(const Tensor& x, const MaxPoolOptions& options) {
  return with_rank("max_pool2d", 2, max_pool, x, options);
}
Tensor max_pool3d(const Tensor& x, const MaxPoolOptions& options) {
  return with_rank("max_pool3d", 3, max_pool, x, options);
}

MaxPoolWithIndices max_pool_with_indices(const Tensor& x, const MaxPoolOptions& options) {
  const Call call("max_pool_with_indices", {x},
                  [&] { return traced_windows("max_pool", x, options, options.dilation); });
  const ops::MaxPoolResult result = ops::max_pool(x, options);
  const Tensor values = record_max("max_pool", x, result, ops::max_pool_windows("max_pool", x, options));
  const auto traced = call.gives(std::vector{values, ops::cast(result.indices, int64)});
  return {traced[0], traced[1]};
}

Tensor avg_pool(const Tensor& x, const AvgPoolOptions& options) { return avg_pool("avg_pool", x, options); }
Tensor avg_pool1d(const Tensor& x, const AvgPoolOptions& options) {
  return with_rank("avg_pool1d", 1, avg_pool, x, options);
}
Tensor avg_pool2d(const Tensor& x, const AvgPoolOptions& options) {
  return with_rank("avg_pool2d", 2, avg_pool, x, options);
}
Tensor avg_pool3d(const Tensor& x, const AvgPoolOptions& options) {
  return with_rank("avg_pool3d", 3, avg_pool, x, options);
}

Tensor lp_pool(const Tensor& x, const LpPoolOptions& options) { return lp_pool("lp_pool", x, options); }
Tensor lp_pool1d(const Tensor& x, const LpPoolOptions& options) {
  return with_rank("lp_pool1d", 1, lp_pool, x, options);
}
Tensor lp_pool2d(const Tensor& x, const LpPoolOptions& options) {
  return with_rank("lp_pool2d", 2, lp_pool, x, options);
}
Tensor lp_pool3d(const Tensor& x, const LpPoolOptions& options) {
  return with_rank("lp_pool3d", 3, lp_pool, x, options);
}

Tensor adaptive_max_pool(const Tensor& x, const AdaptivePoolOptions& options) {
  return adaptive_max_pool("adaptive_max_pool", x, options);
}
Tensor adaptive_max_pool1d(const Tensor& x, const AdaptivePoolOptions& options) {
  return with_rank("adaptive_max_pool1d", 1, adaptive_max_pool, x, options);
}
Tensor adaptive_max_pool2d(const Tensor& x, const AdaptivePoolOptions& options) {
  return with_rank("adaptive_max_pool2d", 2, adaptive_max_pool, x, options);
}
Tensor adaptive_max_pool3d(const Tensor& x, const AdaptivePoolOptions& options) {
  return with_rank("adaptive_max_pool3d", 3, adaptive_max_pool, x, options);
}

Tensor adaptive_avg_pool(const Tensor& x, const AdaptivePoolOptions& options) {
  return adaptive_avg_pool("adaptive_avg_pool", x, options);
}
Tensor adaptive_avg_pool1d(const Tensor& x, const AdaptivePoolOptions& options) {
  return with_rank("adaptive_avg_pool1d", 1, adaptive_avg_pool, x, options);
}
Tensor adaptive_avg_pool2d(const Tensor& x, const AdaptivePoolOptions& options) {
  return with_rank("adaptive_avg_pool2d", 2, adaptive_avg_pool, x, options);
}
Tensor adaptive_avg_pool3d(const Tensor& x, const AdaptivePoolOptions& options) {
  return with_rank("adaptive_avg_pool3d", 3, adaptive_avg_pool, x, options);
}

}  // namespace pleat
