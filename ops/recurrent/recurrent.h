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

struct RecurrentResult {
  Tensor output;  ///< h after each step, [L, N, H]
  Tensor h;       ///< after the last step, [N, H]: of each sequence its own last one
  Tensor c;       ///< the same of lstm; else undefined
};

/// One layer of a recurrent network in one direction over all steps of its sequences.
/// `projected` [L, N, G H] is the input's part of all steps, W_ih x + b_ih, which `linear`
/// computes as one product; G is 4 for lstm, 3 for gru, else 1. Then w_hh [G H, H], b_hh [G H], and the
/// states h and c [N, H] before the first step, of which any but w_hh may be undefined (0).
///
///   RecurrentResult y = recurrent(linear(x, w_ih, b_ih), w_hh, b_hh, {}, {}, {.lengths = tensor({5, 3})});
///
/// Half types are computed in float32, but for products of bfloat16 where the CPU has them, for which states
/// and gradients are rounded; under Autocast operands are cast as those of products. nn::LSTM, nn::GRU and
/// nn::RNN are made of it. Throws ShapeError (no step, sizes that do not fit), DTypeError unless
/// all are of one floating type, IndexError for lengths outside 0 ... L, ValueError for a c without lstm,
/// DeviceError.
RecurrentResult recurrent(const Tensor& projected, const Tensor& w_hh, const Tensor& b_hh = {},
                          const Tensor& h = {}, const Tensor& c = {}, const RecurrentOptions& options = {});

}  // namespace pleat
