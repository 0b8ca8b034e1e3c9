// Private header: not installed.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "pleat/core/elementwise.h"
#include "pleat/ops/update/step_count.h"

namespace pleat::ops {

/// A functor of update_functors.h with the tensors whose elements it is called for.
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

/// Makes the updates, whose first tensors are floating, in one launch for each device and type computed in.
template <class F>
void update_on_grid(const char* op, std::vector<const Update<F>*> updates);

}  // namespace pleat::ops
