// Private header: not installed.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "pleat/core/elementwise.h"
#include "pleat/core/format.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat::optim {

namespace detail {
/// The tensors of one parameter lie apart, so that iterations are independent and the loop is vectorised; `f`
/// is a copy so that its constants may stay in registers.
template <class T, class F, class... State>
void update_all(F f, int64_t n, T* p, const T* g, State*... states) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#elif defined(__GNUC__)
#pragma GCC ivdep
#endif
  for (int64_t i = 0; i < n; ++i) f(p[i], g[i], states[i]...);
}
}  // namespace detail

/// Calls `f(T& param, T grad, T& state...)` for each element, with T = float (double for a float64
/// parameter): one pass over memory a step.
template <class... State, class F>
void fused_update(const std::string& op, const F& f, const Tensor& param, const Tensor& grad,
                  const State&... states) {
  ops::dispatch_floating(op.c_str(), param.dtype(), [&]<class T>(Type<T>) {
    const std::array<Operand, 2 + sizeof...(State)> operands = {
        Operand{param, dtype_of<T>(), Access::read_write}, Operand{grad, dtype_of<T>(), Access::read},
        Operand{states, dtype_of<T>(), Access::read_write}...};
    const auto kernel = [](const void* context, std::byte* const* arrays, int64_t n) {
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        detail::update_all(*static_cast<const F*>(context), n, reinterpret_cast<T*>(arrays[0]),
                           reinterpret_cast<const T*>(arrays[1]), reinterpret_cast<T*>(arrays[I + 2])...);
      }
      (std::index_sequence_for<State...>{});
    };
    elementwise_loop(op.c_str(), operands, kernel, &f);
  });
}

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
