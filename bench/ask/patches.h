#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pleat/bench/ask/answer.h"
#include "pleat/core/tensor/tensor.h"

/// "Convolution in groups, but not grouped convolution": one filter bank [K, C, 3, 3] over each of B x N
/// small patches, x [B, N, C, H, W]. Three ways to write it, all with padding 1, all with the result [B, N,
/// K, H, W] up to the order in which it lies in memory.

namespace pleat::bench::ask::patches {

/// Patches as a batch of B * N images. `implementation` as in ConvOptions; empty: the default.
Tensor as_batch(const Tensor& x, const Tensor& filters, const std::string& implementation = {});
/// Patches as the frames of B videos [B, C, N, H, W], with (1, 3, 3) filters.
Tensor as_frames(const Tensor& x, const Tensor& filters);
/// Windows of all patches as columns, times the filters.
Tensor by_unfold(const Tensor& x, const Tensor& filters);

struct Row {
  std::string way;
  int64_t patches = 0;  ///< N; 0 for the dense image
  int64_t outputs = 0;  ///< elements of the result
  Time forward = {};
  Time backward = {};
  Time both() const { return joined(forward, backward); }
};

inline const std::string dense_way = "one dense image";

std::vector<std::string> conclude(const std::vector<Row>& rows);

Answer ask(const AskOptions& options);

}  // namespace pleat::bench::ask::patches
