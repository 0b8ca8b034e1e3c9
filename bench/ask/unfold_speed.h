#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pleat/bench/ask/answer.h"
#include "pleat/core/tensor/tensor.h"

/// "Speed up F.unfold and F.fold": what a convolution costs that is written as unfold, product and fold.

namespace pleat::bench::ask::unfold_speed {

/// A convolution of x [N, C, H, W] with stride 1 as users write it: windows, a product with the filters
/// [K, C * size * size], and fold, which here only makes images of columns. Same result as
/// `conv2d(x, reshape(filters, {K, C, size, size}), {.padding = padding})`.
Tensor conv_by_hand(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding);

/// Seconds between the hooks on the gradients of one backward pass.
struct Pieces {
  double unfold = 0;
  double product = 0;
  double fold = 0;
};

/// Runs conv_by_hand and its backward from the gradient `dy`, and takes the time at which each gradient is
/// there by hooks: on the result when fold's backward begins, on the product's result when that ends, and so
/// on. On a GPU each hook waits for the device. x and filters have to require gradients.
Pieces backward_pieces(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding,
                       const Tensor& dy);

/// Times of one batch size.
struct Row {
  int64_t batch = 0;
  std::string way;  ///< an implementation of conv2d, or "by hand"
  Time inference = {};
  Time forward = {};   ///< recorded on the tape
  Time backward = {};  ///< of input and filters
};

/// By hand, piece by piece, each timed alone.
struct PieceRow {
  int64_t batch = 0;
  std::string piece;  ///< "unfold", "product", "fold"
  Time forward = {};
  Time backward = {};
};

std::vector<std::string> conclude(const std::vector<Row>& rows, const std::vector<PieceRow>& pieces);

Answer ask(const AskOptions& options);

}  // namespace pleat::bench::ask::unfold_speed
