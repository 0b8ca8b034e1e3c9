// Private header: not installed.
#pragma once

#include <Eigen/Core>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "pleat/core/elementwise.h"
#include "pleat/core/format.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat::optim {

/// Elements updated at a time: parameter, gradient and state of a block stay in the first-level cache while
/// several array expressions go over them, so that each byte is read from memory once a step.
constexpr int64_t fused_block = 512;

/// A block of temporaries, on the stack.
template <class T>
using Block = Eigen::Array<T, Eigen::Dynamic, 1, Eigen::ColMajor, fused_block, 1>;

/// Plain memory as an Eigen array.
template <class T>
auto array(T* data, int64_t n) {
  return Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>(data, n);
}
template <class T>
auto array(const T* data, int64_t n) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(data, n);
}

/// Calls `f(param, grad, states...)` with Eigen arrays of float (of double for a float64 parameter), block by
/// block; all but the gradient may be written.
template <class... State, class F>
void fused_update(const std::string& op, const F& f, const Tensor& param, const Tensor& grad,
                  const State&... states) {
  ops::dispatch_floating(op.c_str(), param.dtype(), [&]<class T>(Type<T>) {
    const std::array<Operand, 2 + sizeof...(State)> operands = {
        Operand{param, dtype_of<T>(), Access::read_write}, Operand{grad, dtype_of<T>(), Access::read},
        Operand{states, dtype_of<T>(), Access::read_write}...};
    const auto kernel = [](const void* context, std::byte* const* arrays, int64_t n) {
      const F& update = *static_cast<const F*>(context);
      for (int64_t first = 0; first < n; first += fused_block) {
        const int64_t length = std::min(fused_block, n - first);
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          update(array(reinterpret_cast<T*>(arrays[0]) + first, length),
                 array(reinterpret_cast<const T*>(arrays[1]) + first, length),
                 array(reinterpret_cast<T*>(arrays[I + 2]) + first, length)...);
        }
        (std::index_sequence_for<State...>{});
      }
    };
    elementwise_loop(op.c_str(), operands, kernel, &f);
  });
}

/// The element type of an Eigen array.
template <class Array>
using ScalarOf = typename std::remove_cvref_t<Array>::Scalar;

/// Throws ValueError "SGD: lr must be at least 0 and finite, got -1".
inline void check_at_least_0(const std::string& op, const char* what, double value) {
  check<ValueError>(std::isfinite(value) && value >= 0, "{}: {} must be at least 0 and finite, got {}", op,
                    what, value);
}
/// Throws ValueError unless 0 <= value < 1.
inline void check_fraction(const std::string& op, const char* what, double value) {
  check<ValueError>(value >= 0 && value < 1, "{}: {} must be in [0, 1), got {}", op, what, value);
}

}  // namespace pleat::optim
