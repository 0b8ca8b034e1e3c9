#pragma once

#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/nn/module.h"
#include "pleat/ops/recurrent/recurrent.h"

/// Recurrent networks; formulas: ops/recurrent/recurrent.h. Names and layouts of parameters are PyTorch's, so
/// that state dictionaries fit.

namespace pleat::nn {

struct RecurrentModuleOptions {
  Required<int64_t> input_size;
  Required<int64_t> hidden_size;
  int64_t num_layers = 1;  ///< each takes the outputs of the one before
  bool bias = true;
  bool batch_first = false;  ///< sequences are [N, L, features], else [L, N, features]
  double dropout = 0;        ///< of the outputs of all layers but the last, in training
  bool bidirectional =
      false;  ///< a second network goes from the last step to the first; outputs lie side by side
};

struct RNNOptions {
  Required<int64_t> input_size;
  Required<int64_t> hidden_size;
  int64_t num_layers = 1;
  bool relu = false;  ///< instead of tanh
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
};

/// What a network starts from; all may be undefined.
struct RecurrentStart {
  Tensor h = {};  ///< [layers, N, H], of each layer forwards, then backwards; 0
  Tensor c = {};  ///< the same; LSTM only
  /// [N], of the sequences, 0 to L, in any order. Results are as of PyTorch's packed sequences: outputs
  /// behind the end are 0, last states those of each sequence's own last step, at which the reverse direction
  /// begins.
  Tensor lengths = {};
};

/// LSTM, GRU and RNN: x [L, N, input_size], or unbatched [L, input_size], gives outputs [L, N, H] ([L, N, 2
/// H] of two directions) and last states [layers, N, H].
///
///   nn::LSTM lstm{{.input_size = 8, .hidden_size = 16, .batch_first = true}};
///   const auto [y, h, c] = lstm.forward(x, {.lengths = tensor({5, 3})});
///   Tensor outputs = lstm(x);
///
/// Parameters weight_ih_l0 [G H, input_size], weight_hh_l0 [G H, H], bias_ih_l0, bias_hh_l0 [G H], with
/// "_reverse" behind them for the second direction, and so on for l1 ...; all start uniform on [-b, b] with b
/// = 1 / sqrt(H). Throws ValueError unless sizes and num_layers are at least 1 and 0 <= dropout <= 1; forward
/// throws what `recurrent` does.
class RecurrentModule : public Module {
 public:
  /// The outputs alone.
  Tensor forward(const Tensor& x) override;
  RecurrentResult forward(const Tensor& x, const RecurrentStart& start);
  void members(Members& m) override;
  std::string type_name() const override { return name_; }
  std::string options_text() const override;

  /// Of one layer in one direction.
  struct Part {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };
  std::vector<Part> parts;  ///< by layers, forwards before backwards

 protected:
  RecurrentModule(const char* name, RecurrentCell cell, const RecurrentModuleOptions& options);

 private:
  RecurrentResult run(const Tensor& x, const RecurrentStart& start);

  const char* name_;
  RecurrentCell cell_;
  RecurrentModuleOptions options_;
};

struct LSTM : RecurrentModule {
  explicit LSTM(const RecurrentModuleOptions& options)
      : RecurrentModule("LSTM", RecurrentCell::lstm, options) {}
};

struct GRU : RecurrentModule {
  explicit GRU(const RecurrentModuleOptions& options) : RecurrentModule("GRU", RecurrentCell::gru, options) {}
};

struct RNN : RecurrentModule {
  explicit RNN(const RNNOptions& options);
};

struct RecurrentCellOptions {
  Required<int64_t> input_size;
  Required<int64_t> hidden_size;
  bool bias = true;
};

struct RNNCellOptions {
  Required<int64_t> input_size;
  Required<int64_t> hidden_size;
  bool bias = true;
  bool relu = false;  ///< instead of tanh
};

/// The states after a step, [N, H] or [H] like the input; c of LSTMCell only.
struct RecurrentState {
  Tensor h = {}, c = {};
};

/// One step: LSTMCell, GRUCell and RNNCell take x [N, input_size] or [input_size] and a state, which may be
/// undefined (0). Parameters weight_ih, weight_hh, bias_ih, bias_hh.
///
///   nn::GRUCell cell{{.input_size = 8, .hidden_size = 16}};
///   state = cell.forward(x, state);
class RecurrentCellModule : public Module {
 public:
  /// h after a step from 0.
  Tensor forward(const Tensor& x) override;
  RecurrentState forward(const Tensor& x, const RecurrentState& state);
  void members(Members& m) override;
  std::string type_name() const override { return name_; }
  std::string options_text() const override;

  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  RecurrentCellModule(const char* name, RecurrentCell cell, const RecurrentCellOptions& options);

 private:
  RecurrentState run(const Tensor& x, const RecurrentState& state);

  const char* name_;
  RecurrentCell cell_;
};

struct LSTMCell : RecurrentCellModule {
  explicit LSTMCell(const RecurrentCellOptions& options)
      : RecurrentCellModule("LSTMCell", RecurrentCell::lstm, options) {}
};

struct GRUCell : RecurrentCellModule {
  explicit GRUCell(const RecurrentCellOptions& options)
      : RecurrentCellModule("GRUCell", RecurrentCell::gru, options) {}
};

struct RNNCell : RecurrentCellModule {
  explicit RNNCell(const RNNCellOptions& options);
};

}  // namespace pleat::nn
