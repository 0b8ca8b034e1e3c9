#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "pleat/core/tensor/tensor.h"

/// Calls with integers from all over int64. Whatever they are, a call gives a result or a pleat::Error: no
/// other exception, no crash, no more memory than small tensors take, no long run.
/// tests/limits/complete.cmake sees to it that every public function that takes an integer is swept.

namespace pleat_test {

using Integers = std::vector<int64_t>;
/// A call with integers; what it gives is differentiated where that is possible.
using SweptCall = std::function<pleat::Tensor(const Integers&)>;

/// Calls with the usual integers, then with each one replaced by every extreme, then each pair of them.
void sweep_calls(const std::string& name, const Integers& usual, const SweptCall& call);

/// `call(arguments)` or `call(tensor, arguments)`; it may return nothing, or anything. A tensor that it
/// returns is looked at, and differentiated where it can be.
template <class F>
void sweep(const std::string& name, const Integers& usual, const F& call) {
  sweep_calls(name, usual, [&call](const Integers& i) {
    if constexpr (std::is_same_v<std::invoke_result_t<F, const Integers&>, pleat::Tensor>) return call(i);
    (void)call(i);
    return pleat::Tensor();
  });
}

/// Small tensors of a rank: what is usual, of an integer type, channels-last, empty with a large dimension,
/// and one element repeated very often.
std::vector<pleat::Tensor> small_tensors(int64_t rank);

template <class F>
void sweep_tensors(const std::string& name, int64_t rank, const Integers& usual, const F& call) {
  for (const pleat::Tensor& x : small_tensors(rank))
    sweep(name + " of " + x.describe(), usual, [&](const Integers& i) { return call(x, i); });
}

}  // namespace pleat_test
