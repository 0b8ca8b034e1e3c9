// Private header: not installed.
#pragma once

#include <array>
#include <cstddef>

#include "pleat/core/tensor/elementwise.h"
#include "pleat/ops/update/step_count.h"

namespace pleat::ops {

/// A functor with the tensors whose elements it is called for: `f(p, g, states...)` with references to an
/// element of each of `F::operands` tensors, of which the second, if there is one, is only read. On the CPU
/// `f.update_array(n, p, g...)`, if there is one, is called for arrays instead.
template <class F>
struct Update {
  F f;
  std::array<Tensor, F::operands> tensors;
  StepCount count = {};
};

/// Whether a functor has constants that go by the number of the step, from 1, and are to be worked out first.
template <class F>
concept GoesByStep = requires(F f) {
  f.at_step(int64_t{1});
};

/// The tensors as operands whose elements the functor sees as T.
template <class T, class F>
std::array<Operand, F::operands> update_operands(const Update<F>& update) {
  std::array<Operand, F::operands> operands;
  for (std::size_t k = 0; k < F::operands; ++k)
    operands[k] = {update.tensors[k], dtype_of<T>(), k == 1 ? Access::read : Access::read_write};
  return operands;
}

}  // namespace pleat::ops
