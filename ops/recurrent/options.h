#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// What a step of a recurrent network computes from its input x and the state h (lstm: and c) before it. Each
/// a_k below is the part of width H of W_ih x + b_ih, each u_k that of W_hh h + b_hh.
enum class RecurrentCell : unsigned char {
  lstm,      ///< i, f, o = sigmoid(a + u), g = tanh(a + u), in the order i, f, g, o; c' = f c + i g, h' = o
             ///< tanh(c')
  gru,       ///< r, z = sigmoid(a + u), n = tanh(a_n + r u_n); h' = n + z (h - n)
  rnn_tanh,  ///< h' = tanh(a + u)
  rnn_relu   ///< h' = max(a + u, 0)
};

struct RecurrentOptions {
  RecurrentCell cell = RecurrentCell::lstm;
  bool reverse = false;  ///< from the last step to the first
  /// Of each sequence, [N], integers from 0 to L. Steps from there on change no state, and their outputs are
  /// 0. Undefined: all are of length L. Those on a GPU are copied to the host, which waits for them.
  Tensor lengths = {};
};

}  // namespace pleat
