// Private header: not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/recurrent/options.h"

/// One layer of a recurrent network in one direction, over all steps of its sequences.

namespace pleat::ops {

/// Sizes and types of a call, with all its checks.
struct RecurrentProblem {
  RecurrentCell cell;
  bool reverse;
  int64_t steps, batch, width;   ///< L, N, H
  std::vector<int64_t> lengths;  ///< empty: all are L
  DType compute;                 ///< float32 or float64

  const char* op() const;
  /// Where the states before and after step t are among L + 1.
  int64_t before(int64_t t) const { return reverse ? t + 1 : t; }
  int64_t after(int64_t t) const { return reverse ? t : t + 1; }
  int64_t first_state() const { return reverse ? steps : 0; }
  int64_t last_state() const { return reverse ? 0 : steps; }
  /// The step that is computed as number i.
  int64_t step(int64_t i) const { return reverse ? steps - 1 - i : i; }
};

/// projected [L, N, G H] (W_ih x + b_ih), w_hh [G H, H], b_hh [G H], h [N, H], and c like h for lstm only;
/// all but the first two may be undefined. Throws ShapeError, DTypeError unless all are of one floating type,
/// DeviceError, IndexError for lengths outside 0 ... L.
RecurrentProblem recurrent_problem(const Tensor& projected, const Tensor& w_hh, const Tensor& b_hh,
                                   const Tensor& h, const Tensor& c, const RecurrentOptions& options);

/// In the type computed in. A sequence that has ended keeps its state.
struct RecurrentStates {
  Tensor h;     ///< [L + 1, N, H]; the first is the one before step 0 (reverse: after it)
  Tensor c;     ///< the same, for lstm
  Tensor kept;  ///< [L, N, K H]: for backward; undefined unless `keep`
};
RecurrentStates recurrent_forward(const RecurrentProblem& problem, const Tensor& projected,
                                  const Tensor& w_hh, const Tensor& b_hh, const Tensor& h, const Tensor& c,
                                  bool keep);

/// In the type computed in.
struct RecurrentGradients {
  Tensor projected, w_hh, b_hh, h, c;
};
/// From those of the outputs [L, N, H] and of the last states [N, H].
RecurrentGradients recurrent_backward(const RecurrentProblem& problem, const Tensor& dy, const Tensor& dh,
                                      const Tensor& dc, const Tensor& w_hh, const RecurrentStates& states);

}  // namespace pleat::ops
