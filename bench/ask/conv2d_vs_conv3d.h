#pragma once

#include <string>
#include <vector>

#include "pleat/bench/ask/answer.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/options.h"

/// "Why is the backward of Conv2d faster than that of Conv3d?", asked of one computation written in two ways:
/// frames [N D, C, H, W] with 3x3 filters, or videos [N, C, D, H, W] with (1, 3, 3) filters.

namespace pleat::bench::ask::conv2d_vs_conv3d {

/// Videos [N, C, D, H, W] as frames [N * D, C, H, W]: a copy unless they are channels-last.
Tensor frames_of(const Tensor& videos);

/// One pass of a three-dimensional convolution exactly as it is stated, in three dimensions, by a named
/// implementation. A call of conv3d solves the simplest problem with the same elements instead
/// (ops/conv/simplify.h). Operands are as ops::conv_forward and its kin take them: `a` is x, or dy in
/// backward passes; `b` is w in forward and backward_input, x in backward_weight; `shape` is that of the
/// result. Throws ValueError when the implementation cannot do it.
Tensor unreduced_pass(ops::ConvPass pass, const std::string& implementation, const Tensor& a, const Tensor& b,
                      const Shape& shape, const ConvOptions& options);

/// One line of the table.
struct Row {
  std::string implementation;
  std::string way;  ///< "conv2d", "conv3d", "conv3d, not reduced"
  Time forward = {};
  Time backward = {};
};

/// What somebody would believe who measures carelessly.
struct NaiveRow {
  std::string how;           ///< "no warm-up, conv2d first"
  bool synchronised = true;  ///< whether the clock was read when the device was done
  Time conv2d = {};          ///< of one backward
  Time conv3d = {};
};

/// `equal`: that conv2d and conv3d gave the same bits; else by how much they differed, relatively.
struct Agreement {
  bool equal = false;
  double difference = 0;
};

std::vector<std::string> conclude(const std::vector<Row>& rows, const std::vector<NaiveRow>& naive,
                                  const Agreement& agreement, Device device);

Answer ask(const AskOptions& options);

}  // namespace pleat::bench::ask::conv2d_vs_conv3d
