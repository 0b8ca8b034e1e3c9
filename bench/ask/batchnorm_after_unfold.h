#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pleat/bench/ask/answer.h"
#include "pleat/core/tensor/tensor.h"

/// "Why does batch norm slow down when Conv2d is executed in unfolded fashion?"

namespace pleat::bench::ask::batchnorm_after_unfold {

/// The convolution as a product, in two ways that users write; stride 1. x [N, C, H, W], w [K, C, R, S] ->
/// [N, K, H', W']. The first multiplies filters by columns, the result is contiguous. The second multiplies
/// windows by filters, [N, L, C R S] x [C R S, K], and turns the result's view: nothing is said of it, but it
/// lies channels-last.
Tensor conv_by_columns(const Tensor& x, const Tensor& w, int64_t padding);
Tensor conv_by_windows(const Tensor& x, const Tensor& w, int64_t padding);

/// What batch norm cost on the result of one convolution.
struct Row {
  int64_t batch = 0;
  std::string convolution;        ///< how it was computed: "direct", "unfold, asked for contiguous"
  bool is_implementation = true;  ///< called by its name alone: neither by hand nor with another format
  MemoryFormat format = MemoryFormat::contiguous;  ///< of its result, which batch norm received
  Time conv = {};
  Time eval = {};      ///< batch norm forward by running statistics
  Time train = {};     ///< batch norm forward by the batch's
  Time backward = {};  ///< of that
};

std::vector<std::string> conclude(const std::vector<Row>& rows);

Answer ask(const AskOptions& options);

}  // namespace pleat::bench::ask::batchnorm_after_unfold
