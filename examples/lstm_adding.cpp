// The adding problem (Hochreiter and Schmidhuber, "Long short-term memory", 1997): of a sequence of random
// numbers, two are marked, and the network says their sum after the last. It has to remember over tens of
// steps what it saw.
//
// Expected after 2,000 steps: mean squared error 0.002, where always saying 1 has 0.176, in 5.9 s on two
// cores of an AMD EPYC.
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

constexpr int64_t length = 50, batch_size = 64;

/// The last output of an LSTM, then a linear layer: [N, L, 2] to [N].
struct Adder : nn::Module {
  nn::LSTM lstm{{.input_size = 2, .hidden_size = 48, .batch_first = true}};
  nn::Linear head{{.in_features = 48, .out_features = 1}};

  Tensor forward(const Tensor& x) override { return squeeze(head(select(lstm(x), 1, -1)), {1}); }
  void members(nn::Members& m) override {
    m("lstm", lstm);
    m("head", head);
  }
};

/// Sequences [N, L, 2] of numbers from 0 to 1 and marks, and the sums [N] of the two marked numbers: one in
/// the first half, one in the second.
data::Batch draw(int64_t count) {
  const Tensor numbers = rand({count, length});
  const Tensor first = randint(0, length / 2, {count}), second = randint(length / 2, length, {count});
  const Tensor marks = one_hot(first, length) + one_hot(second, length);
  return {stack({numbers, marks.to(float32)}, 2), sum(numbers * marks, 1)};
}

void run(const TrainingOptions& options) {
  Adder net;
  optim::Adam adam{net.parameters(), {.lr = 2e-3}};
  const data::Batch test = draw(500);
  print("mean squared error of always saying 1: %.4f\n",
        mse_loss(ones_like(test.targets), test.targets).item());
  double total = 0;
  for (int64_t step = 1; step <= options.steps; ++step) {
    const data::Batch batch = draw(batch_size);
    const Tensor loss = mse_loss(net(batch.inputs), batch.targets);
    adam.zero_grad();
    loss.backward();
    optim::clip_grad_norm_(net.parameters(), {.max_norm = 1});
    adam.step();
    total += loss.item();
    if (step % 250 == 0 || step == options.steps) {
      const NoGrad off_the_tape;
      print("step %4lld  loss %.4f  test error %.4f\n", static_cast<long long>(step),
            total / static_cast<double>((step - 1) % 250 + 1),
            mse_loss(net(test.inputs), test.targets).item());
      total = 0;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Trains an LSTM on the adding problem.", "lstm_adding"};
  return run_training(app, {.steps = 2000}, argc, argv, run);
}
