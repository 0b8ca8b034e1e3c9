// Private header: not installed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/matmul/frozen_linear.h"
#include "pleat/ops/recurrent/recurrent.h"

/// One layer of a recurrent network in one direction, over all steps of its sequences; off the tape.

namespace pleat::ops {

/// Sizes and types of a call.
struct RecurrentProblem {
  const char* op;
  RecurrentCell cell;
  bool reverse;
  int64_t steps, batch, width;   ///< L, N, H
  std::vector<int64_t> lengths;  ///< empty: all are L
  DType compute;                 ///< float32 or float64

  /// Where the states before and after step t are among L + 1.
  int64_t before(int64_t t) const { return reverse ? t + 1 : t; }
  int64_t after(int64_t t) const { return reverse ? t : t + 1; }
  int64_t first_state() const { return reverse ? steps : 0; }
  int64_t last_state() const { return reverse ? 0 : steps; }
  /// The step that is computed as number i.
  int64_t step(int64_t i) const { return reverse ? steps - 1 - i : i; }
};

/// projected, w_hh, b_hh, h, c, or their gradients; the last three may be undefined.
using RecurrentOperands = std::array<Tensor, 5>;

/// In the type computed in. A sequence that has ended keeps its state.
struct RecurrentStates {
  Tensor h;        ///< [L + 1, N, H]; the first is the one before step 0 (reverse: after it)
  Tensor c;        ///< the same, for lstm
  Tensor kept;     ///< [L, N, K H]: for backward; undefined unless `keep`
  Tensor rounded;  ///< h as bfloat16, where products are of bfloat16
};
/// A CPU that multiplies bfloat16 does so with w_hh and the states of that type; the rest is computed in
/// float32. `packed`: w_hh, if it is packed already; of a batch that is not empty.
RecurrentStates recurrent_forward(const RecurrentProblem& p, const RecurrentOperands& x, bool keep,
                                  const FrozenLinear* packed = nullptr);

/// `recurrent` off the tape on the CPU, with its w_hh packed.
RecurrentResult recurrent(const RecurrentOperands& x, const RecurrentOptions& options,
                          const FrozenLinear& packed);

/// From the gradients of the outputs [L, N, H] and of the last states [N, H]: in the type computed in, or
/// what was multiplied as bfloat16.
RecurrentOperands recurrent_backward(const RecurrentProblem& p, const Tensor& dy, const Tensor& dh,
                                     const Tensor& dc, const Tensor& w_hh, const RecurrentStates& states);

/// Some of the sequences, and of the width.
struct RecurrentPart {
  int64_t row, rows, first, units;
};

/// The part of step t that goes over elements (steps.cpp), all tensors dense; on the CPU those of `part`
/// alone, in the calling thread, on a GPU all. `lengths`, on the device, says which sequences have ended;
/// none: none has.
void forward_elements(const RecurrentProblem& p, int64_t t, const RecurrentPart& part, const int64_t* lengths,
                      const Tensor& projected, const Tensor& product, const Tensor& bias,
                      const RecurrentStates& states);
/// dh and dc, of the states after the step, become those of the states before it, but for what goes through
/// the product. `d_product` may be `d_projected` where a cell's two gradients are the same.
void backward_elements(const RecurrentProblem& p, int64_t t, const RecurrentPart& part,
                       const int64_t* lengths, const RecurrentStates& states, const Tensor& dy,
                       const Tensor& dh, const Tensor& dc, const Tensor& d_projected,
                       const Tensor& d_product);

}  // namespace pleat::ops
