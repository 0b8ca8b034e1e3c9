// Private header: not installed.
#pragma once

#include <array>

#include "pleat/core/tensor.h"
#include "pleat/ops/reduce/plan.h"

namespace pleat::ops::reduction {

/// What a state becomes where it gives two results.
template <class A, class B>
struct Two {
  A first;
  B second;
};

/// Reduces over the grid of x's device: results[i] = what `finish` makes of a result's state, or of the
/// state's part in a Two, converted to the type of results[i]; a second result may be undefined.
///
///   struct Operation {
///     using In = float;        // the type of the elements it sees
///     using Running = ...;     // what a thread knows of the elements it has read
///     Running begin() const;
///     // n elements, number index, index + step ...
///     void add<n>(Running&, const std::array<In, n>& x, int64_t index, int64_t step) const;
///     using State = double;    // what is known of some elements
///     State state(const Running&) const;
///     State empty() const;     // of none
///     void merge(State& into, const State& other) const;
///   };
///
/// The elements of a result are read by a team of neighbouring threads, or of threads that read beside the
/// teams of neighbouring results, each thread every so many; their states are merged as a binary tree. Where
/// results are few, their elements are cut into parts, one a block, and a second launch merges the parts. All
/// this depends on shape and strides only, and there are no atomics: the same input gives the same bits.
template <class Operation, class Finish>
void grid_reduce(const char* op, const Operation& operation, const Finish& finish, const Plan& plan,
                 const Tensor& x, const std::array<Tensor, 2>& results);

}  // namespace pleat::ops::reduction
