#include "pleat/nn/recurrent.h"

#include <cmath>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/init.h"
#include "pleat/nn/option_checks.h"
#include "pleat/nn/options_text.h"
#include "pleat/nn/record_forward.h"
#include "pleat/ops/elementwise/dropout.h"
#include "pleat/ops/recurrent/layer.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::nn {
namespace {

int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}

RecurrentModule::Part make_part(RecurrentCell cell, int64_t input_size, int64_t hidden_size, bool bias) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  const auto uniform = [&](const Shape& shape) {
    const Tensor t = parameter(empty(shape));
    init::uniform_(t, -bound, bound);
    return t;
  };
  const int64_t rows = checked_multiply(gates_of(cell), hidden_size, "hidden_size");
  RecurrentModule::Part part{.weight_ih = uniform({rows, input_size}),
                             .weight_hh = uniform({rows, hidden_size}),
                             .bias_ih = {},
                             .bias_hh = {}};
  if (bias) {
    part.bias_ih = uniform({rows});
    part.bias_hh = uniform({rows});
  }
  return part;
}

void check_sizes(const char* name, int64_t input_size, int64_t hidden_size) {
  check_at_least(name, "input_size", input_size, 1);
  check_at_least(name, "hidden_size", hidden_size, 1);
}

/// Without the dimension of the batch, where there was none.
Tensor unbatched(const Tensor& x, int64_t dim, bool had_batch) {
  return had_batch || !x.defined() ? x : squeeze(x, {dim});
}
Tensor batched(const Tensor& x, int64_t dim, bool has_batch) {
  return has_batch || !x.defined() ? x : unsqueeze(x, dim);
}

RecurrentModuleOptions common(const RNNOptions& o) {
  return {o.input_size, o.hidden_size, o.num_layers, o.bias, o.batch_first, o.dropout, o.bidirectional};
}

RecurrentCell plain_cell(bool relu) { return relu ? RecurrentCell::rnn_relu : RecurrentCell::rnn_tanh; }

}  // namespace

RecurrentModule::RecurrentModule(const char* name, RecurrentCell cell, const RecurrentModuleOptions& options)
    : name_(name), cell_(cell), options_(options) {
  check_sizes(name, options.input_size, options.hidden_size);
  check_at_least(name, "num_layers", options.num_layers, 1);
  check_share(name, "dropout", options.dropout);
  const int64_t directions = options.bidirectional ? 2 : 1;
  // Of one part at least, whatever its inputs.
  const int64_t rows = checked_multiply(gates_of(cell), options.hidden_size, name);
  check_layers(name, options.num_layers, directions * (options.bias ? 4 : 2),
               checked_multiply(rows, options.hidden_size, name));
  for (int64_t layer = 0; layer < options.num_layers; ++layer)
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t inputs = layer == 0 ? static_cast<int64_t>(options.input_size)
                                        : checked_multiply(directions, options.hidden_size, name);
      parts.push_back(make_part(cell, inputs, options.hidden_size, options.bias));
    }
}

Tensor RecurrentModule::forward(const Tensor& x) { return run(x, {}).output; }

RecurrentResult RecurrentModule::forward(const Tensor& x, const RecurrentStart& start) {
  const RecordForward range(*this, x, start.h, start.c, start.lengths);
  return range.run([&] { return run(x, start); });
}

RecurrentResult RecurrentModule::run(const Tensor& input, const RecurrentStart& start) {
  const std::string name = type_name();
  const int64_t input_size = options_.input_size, hidden_size = options_.hidden_size;
  check<ShapeError>((input.rank() == 3 || input.rank() == 2) && input.size(-1) == input_size,
                    "{}: the input must be [{}, {}] or, of one sequence, [steps, {}], got {}", name,
                    options_.batch_first ? "batch, steps" : "steps, batch", input_size, input_size, input);
  const bool has_batch = input.rank() == 3;
  Tensor x = batched(input, 1, has_batch);
  if (has_batch && options_.batch_first) x = transpose(x, 0, 1);
  const auto layers = std::ssize(parts);
  const auto states_of = [&](const Tensor& given, const char* which) {
    const Tensor states = batched(given, 1, has_batch);
    check<ShapeError>(!given.defined() || states.shape() == Shape{layers, x.size(1), hidden_size},
                      "{}: the state {} must be [{}, {}, {}]{}, got {}", name, which, layers, x.size(1),
                      hidden_size, has_batch ? "" : " without the batch", given);
    return given.defined() ? split(states, 1, 0) : std::vector<Tensor>();
  };
  check<ValueError>(!start.c.defined() || cell_ == RecurrentCell::lstm, "{}: only an LSTM has a state c",
                    name);
  const std::vector<Tensor> h = states_of(start.h, "h");
  const std::vector<Tensor> c = states_of(start.c, "c");
  const auto state = [](const std::vector<Tensor>& states, std::size_t i) {
    return states.empty() ? Tensor() : squeeze(states[i], {0});
  };
  const std::size_t directions = options_.bidirectional ? 2 : 1;
  std::vector<Tensor> last_h, last_c;
  for (std::size_t i = 0; i < parts.size(); i += directions) {
    if (i > 0 && options_.dropout > 0) x = dropout(x, options_.dropout, training());
    std::vector<Tensor> outputs;
    for (std::size_t d = 0; d < directions; ++d) {
      const Part& p = parts[i + d];
      const RecurrentResult y =
          recurrent_layer(x, p.weight_ih, p.weight_hh, p.bias_ih, p.bias_hh, state(h, i + d), state(c, i + d),
                          {.cell = cell_, .reverse = d == 1, .lengths = start.lengths});
      outputs.push_back(y.output);
      last_h.push_back(y.h);
      if (y.c.defined()) last_c.push_back(y.c);
    }
    x = directions == 1 ? outputs[0] : cat(outputs, -1);
  }
  if (has_batch && options_.batch_first) x = transpose(x, 0, 1);
  return {unbatched(x, 1, has_batch), unbatched(stack(last_h), 1, has_batch),
          last_c.empty() ? Tensor() : unbatched(stack(last_c), 1, has_batch)};
}

void RecurrentModule::members(Members& m) {
  const std::size_t directions = options_.bidirectional ? 2 : 1;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string end = fmt::format("_l{}{}", i / directions, i % directions == 1 ? "_reverse" : "");
    m("weight_ih" + end, parts[i].weight_ih);
    m("weight_hh" + end, parts[i].weight_hh);
    m("bias_ih" + end, parts[i].bias_ih);
    m("bias_hh" + end, parts[i].bias_hh);
  }
}

std::string RecurrentModule::options_text() const {
  return OptionsText()(options_.input_size)(options_.hidden_size)("num_layers", options_.num_layers, 1)(
      "relu", cell_ == RecurrentCell::rnn_relu, false)("bias", options_.bias, true)(
      "batch_first", options_.batch_first, false)("dropout", options_.dropout, 0)(
      "bidirectional", options_.bidirectional, false);
}

RNN::RNN(const RNNOptions& options) : RecurrentModule("RNN", plain_cell(options.relu), common(options)) {}

RecurrentCellModule::RecurrentCellModule(const char* name, RecurrentCell cell,
                                         const RecurrentCellOptions& options)
    : name_(name), cell_(cell) {
  check_sizes(name, options.input_size, options.hidden_size);
  const RecurrentModule::Part part = make_part(cell, options.input_size, options.hidden_size, options.bias);
  weight_ih = part.weight_ih;
  weight_hh = part.weight_hh;
  bias_ih = part.bias_ih;
  bias_hh = part.bias_hh;
}

Tensor RecurrentCellModule::forward(const Tensor& x) { return run(x, {}).h; }

RecurrentState RecurrentCellModule::forward(const Tensor& x, const RecurrentState& state) {
  const RecordForward range(*this, x, state.h, state.c);
  return range.run([&] { return run(x, state); });
}

RecurrentState RecurrentCellModule::run(const Tensor& input, const RecurrentState& state) {
  check<ShapeError>((input.rank() == 2 || input.rank() == 1) && input.size(-1) == weight_ih.size(1),
                    "{}: the input must be [batch, {}] or [{}], got {}", [&] { return type_name(); },
                    weight_ih.size(1), weight_ih.size(1), input);
  const bool has_batch = input.rank() == 2;
  const RecurrentResult y =
      recurrent_layer(unsqueeze(batched(input, 0, has_batch), 0), weight_ih, weight_hh, bias_ih, bias_hh,
                      batched(state.h, 0, has_batch), batched(state.c, 0, has_batch), {.cell = cell_});
  return {unbatched(y.h, 0, has_batch), unbatched(y.c, 0, has_batch)};
}

void RecurrentCellModule::members(Members& m) {
  m("weight_ih", weight_ih);
  m("weight_hh", weight_hh);
  m("bias_ih", bias_ih);
  m("bias_hh", bias_hh);
}

std::string RecurrentCellModule::options_text() const {
  return OptionsText()(weight_ih.size(1))(weight_hh.size(1))("relu", cell_ == RecurrentCell::rnn_relu, false)(
      "bias", bias_ih.defined(), true);
}

RNNCell::RNNCell(const RNNCellOptions& options)
    : RecurrentCellModule("RNNCell", plain_cell(options.relu),
                          {options.input_size, options.hidden_size, options.bias}) {}

}  // namespace pleat::nn
