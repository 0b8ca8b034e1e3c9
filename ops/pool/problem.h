// Private header: not installed.
#pragma once

#include <array>
#include <vector>

#include "pleat/ops/pool/pool.h"
#include "pleat/ops/spatial/linear_map.h"

/// What pools have in common: their checks, and the windows they come down to.

namespace pleat::ops {

/// The windows along one dimension: output o covers inputs begin[o], begin[o] + step ... below end[o].
struct Windows {
  int64_t inputs = 1;
  int64_t step = 1;
  std::vector<int64_t> begin;
  std::vector<int64_t> end;

  int64_t outputs() const { return static_cast<int64_t>(begin.size()); }
};

/// Those of D, H, W; dimensions that are not there have one window of one input.
using Windows3 = std::array<Windows, 3>;

Windows3 max_pool_windows(const char* op, const Tensor& x, const MaxPoolOptions& options);
Windows3 adaptive_windows(const char* op, const Tensor& x, const AdaptivePoolOptions& options);
LinearMap avg_pool_map(const char* op, const Tensor& x, const AvgPoolOptions& options);
LinearMap adaptive_avg_pool_map(const char* op, const Tensor& x, const AdaptivePoolOptions& options);

}  // namespace pleat::ops
