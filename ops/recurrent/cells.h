// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/host_device.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/recurrent/recurrent.h"

/// The formulas of recurrent cells, for numbers and, so that they can be recorded, for tensors: T is float,
/// double or Tensor. Hochreiter and Schmidhuber, "Long short-term memory" (1997), with the forget gate of
/// Gers, Schmidhuber and Cummins (2000); Cho et al., "Learning phrase representations ..." (2014), with the
/// reset gate behind the product, as in cuDNN and PyTorch.

namespace pleat::ops {

/// What a step makes: the states after it, and what backward keeps of it.
template <class T>
struct CellStep {
  T h, c;
  T kept[4];
};

/// The gradients of what a step took.
template <class T>
struct CellGradients {
  T projected[4];  ///< of the projected input
  T product_last;  ///< of the last part of the product with h; its other parts have those of the input
  T h;             ///< beside what goes through the product
  T c;
};

struct LstmCell {
  static constexpr int64_t gates = 4;
  static constexpr int64_t kept = 4;
  static constexpr bool has_cell = true;

  /// x, u: the parts of the projected input and of the product.
  template <class T>
  PLEAT_HOST_DEVICE static CellStep<T> step(const T* x, const T* u, const T&, const T& c) {
    using vmath::sigmoid, vmath::tanh;
    const T i = sigmoid(x[0] + u[0]);
    const T f = sigmoid(x[1] + u[1]);
    const T g = tanh(x[2] + u[2]);
    const T o = sigmoid(x[3] + u[3]);
    const T after = f * c + i * g;
    return {o * tanh(after), after, {i, f, g, o}};
  }

  template <class T>
  PLEAT_HOST_DEVICE static CellGradients<T> backward(T dh, T dc, const T* k, T, T, T c_before, T c_after) {
    const T i = k[0], f = k[1], g = k[2], o = k[3];
    const T t = vmath::tanh(c_after);
    const T d = dc + dh * o * (1 - t * t);
    const T last = dh * t * o * (1 - o);
    return {{d * g * i * (1 - i), d * c_before * f * (1 - f), d * i * (1 - g * g), last}, last, T(0), d * f};
  }
};

struct GruCell {
  static constexpr int64_t gates = 3;
  static constexpr int64_t kept = 4;
  static constexpr bool has_cell = false;

  template <class T>
  PLEAT_HOST_DEVICE static CellStep<T> step(const T* x, const T* u, const T& h, const T&) {
    using vmath::sigmoid, vmath::tanh;
    const T r = sigmoid(x[0] + u[0]);
    const T z = sigmoid(x[1] + u[1]);
    const T n = tanh(x[2] + r * u[2]);
    return {n + z * (h - n), T(), {r, z, n, u[2]}};
  }

  template <class T>
  PLEAT_HOST_DEVICE static CellGradients<T> backward(T dh, T, const T* k, T h_before, T, T, T) {
    const T r = k[0], z = k[1], n = k[2], u = k[3];
    const T dn = dh * (1 - z) * (1 - n * n);
    return {{dn * u * r * (1 - r), dh * (h_before - n) * z * (1 - z), dn, T(0)}, dn * r, dh * z, T(0)};
  }
};

template <RecurrentCell activation>
struct PlainCell {
  static constexpr int64_t gates = 1;
  static constexpr int64_t kept = 0;
  static constexpr bool has_cell = false;

  template <class T>
  PLEAT_HOST_DEVICE static CellStep<T> step(const T* x, const T* u, const T&, const T&) {
    using vmath::tanh, vmath::where;
    if constexpr (activation == RecurrentCell::rnn_tanh) {
      return {tanh(x[0] + u[0]), T(), {}};
    } else {
      const T sum = x[0] + u[0];
      return {where(sum <= 0, 0, sum), T(), {}};  // NaN stays
    }
  }

  template <class T>
  PLEAT_HOST_DEVICE static CellGradients<T> backward(T dh, T, const T*, T, T h_after, T, T) {
    const T d =
        activation == RecurrentCell::rnn_tanh ? dh * (1 - h_after * h_after) : (h_after > 0 ? dh : T(0));
    return {{d, T(0), T(0), T(0)}, d, T(0), T(0)};
  }
};

/// Calls f with a value of the cell's class.
template <class F>
decltype(auto) with_cell(RecurrentCell cell, F&& f) {
  switch (cell) {
    case RecurrentCell::lstm:
      return f(LstmCell{});
    case RecurrentCell::gru:
      return f(GruCell{});
    case RecurrentCell::rnn_tanh:
      return f(PlainCell<RecurrentCell::rnn_tanh>{});
    default:
      return f(PlainCell<RecurrentCell::rnn_relu>{});
  }
}

}  // namespace pleat::ops
