// Private header: not installed.
#pragma once

#include <tuple>
#include <utility>

#include "pleat/core/grid_elementwise.h"
#include "pleat/ops/elementwise/grid_map.h"

/// For the .cu files: what grid_map does, and the way to make it for functors.

namespace pleat::ops {

template <class Types, class Result, class F, std::size_t N>
void grid_map(const char* op, DType dtype, const Tensor& out, const std::array<Tensor, N>& in, const F& f) {
  Types::dispatch(dtype, [&]<class T>(Type<T>) {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      grid_elementwise<OutputOf<Result, T>, InputOf<F, T, K>...>(op, out, in, f);
    }
    (std::make_index_sequence<N>{});
  });
}

/// `template struct GridMaps<Floating, Same, 1, Exp, Log>;` makes grid_map for functors of one input.
template <class Types, class Result, std::size_t inputs, class... F>
struct GridMaps {
  static constexpr auto functions = std::make_tuple(&grid_map<Types, Result, F, inputs>...);
};

}  // namespace pleat::ops
