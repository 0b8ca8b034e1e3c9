#include "pleat/ops/pool/pool.h"
#include "pleat/ops/pool/problem.h"

namespace pleat::ops {

Tensor avg_pool(const Tensor& x, const AvgPoolOptions& options, const char* op) {
  return apply_linear_map(op, avg_pool_map(op, x, options), x, {.implementation = options.implementation});
}

Tensor adaptive_avg_pool(const Tensor& x, const AdaptivePoolOptions& options, const char* op) {
  return apply_linear_map(op, adaptive_avg_pool_map(op, x, options), x,
                          {.implementation = options.implementation});
}

}  // namespace pleat::ops
