// Dilated causal convolutions, as in WaveNet (van den Oord et al., arXiv:1609.03499), predict the next sample
// of a signal from those before it.
//
// Expected after 600 steps: 1.29 nats a sample, where guessing needs 4.16, and a miss by 0.65 of 64 levels,
// where repeating the last has 4.0, in 4.0 s on two cores of an AMD EPYC.
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

constexpr int64_t levels = 64, channels = 24, length = 256;

/// x + 1x1(tanh(a) * sigmoid(b)), where a and b are convolutions of two taps, `dilation` samples apart.
/// Padding at the left alone: no sample sees a later one.
struct Block : nn::Module {
  explicit Block(int64_t dilation)
      : gates{{.in_channels = channels,
               .out_channels = 2 * channels,
               .kernel_size = 2,
               .padding = Padding::Sides{dilation, 0},
               .dilation = dilation}} {}

  Tensor forward(const Tensor& x) override {
    const std::vector<Tensor> parts = chunk(gates(x), 2, 1);
    return x + out(tanh(parts[0]) * sigmoid(parts[1]));
  }
  void members(nn::Members& m) override {
    m("gates", gates);
    m("out", out);
  }

  nn::Conv1d gates;
  nn::Conv1d out{{.in_channels = channels, .out_channels = channels, .kernel_size = 1}};
};

/// Levels int64 [N, L] to logits [N, levels, L] of the level after each. It sees 128 samples.
struct WaveNet : nn::Module {
  WaveNet() {
    for (int64_t dilation = 1; dilation <= 64; dilation *= 2) blocks.emplace_back(dilation);
  }

  Tensor forward(const Tensor& x) override {
    Tensor y = transpose(embedding(x), 1, 2);  // [N, channels, L]
    for (Block& block : blocks) y = block(y);
    return head(relu(y));
  }
  void members(nn::Members& m) override {
    m("embedding", embedding);
    m("blocks", blocks);
    m("head", head);
  }

  nn::Embedding embedding{{.num_embeddings = levels, .embedding_dim = channels}};
  std::vector<Block> blocks;
  nn::Conv1d head{{.in_channels = channels, .out_channels = levels, .kernel_size = 1}};
};

/// Signals of two sines of any frequency and phase, in levels: int64 [N, length + 1].
Tensor draw(int64_t count) {
  Tensor signal = zeros({count, length + 1});
  for (int sine = 0; sine < 2; ++sine) {
    const Tensor frequency = 0.1 + 0.4 * rand({count, 1}), phase = 6.2832 * rand({count, 1});
    signal = signal + 0.5 * sin(frequency * arange(length + 1) + phase);
  }
  return clamp(floor((signal + 1) / 2 * levels), 0, levels - 1).to(int64);
}

void run(const TrainingOptions& options) {
  WaveNet net;
  optim::Adam adam{net.parameters(), {.lr = 4e-3}};
  optim::Schedule schedule{adam, optim::CosineAnnealingLR{.steps = options.steps}};
  const auto inputs = [](const Tensor& signal) { return narrow(signal, 1, 0, length); };
  const auto targets = [](const Tensor& signal) { return narrow(signal, 1, 1, length); };

  const Tensor test = draw(64);
  const Tensor last = abs(inputs(test) - targets(test)).to(float32);
  print("guessing needs %.2f nats a sample; the last level misses by %.2f levels\n", std::log(levels),
        mean(last).item());
  for (int64_t step = 1; step <= options.steps; ++step) {
    const Tensor signal = draw(16);
    const Tensor loss = cross_entropy(net(inputs(signal)), targets(signal));
    adam.zero_grad();
    loss.backward();
    adam.step();
    schedule.step();
    if (step % 100 == 0 || step == options.steps) {
      const NoGrad off_the_tape;
      const Tensor logits = net(inputs(test));
      const Tensor miss = abs(argmax(logits, 1) - targets(test)).to(float32);
      print("step %4lld  loss %.2f  test %.2f nats, misses by %.2f levels\n", static_cast<long long>(step),
            loss.item(), cross_entropy(logits, targets(test)).item(), mean(miss).item());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Trains dilated causal convolutions to predict a signal.", "wavenet"};
  return run_training(app, {.steps = 600}, argc, argv, run);
}
