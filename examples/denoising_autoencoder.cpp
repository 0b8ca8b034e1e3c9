// A denoising autoencoder (Vincent et al., 2008): a network with a narrow middle learns to take noise out of
// pictures.
//
// Expected after 1,000 steps: 23.9 dB instead of 10.5, in 4.1 s on two cores of an AMD EPYC.
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

constexpr int64_t size = 32;

/// Discs and squares of any place, size and brightness: [N, 1, 32, 32] from 0 to 1.
Tensor draw(int64_t count) {
  const auto random = [&] { return rand({count, 1, 1}); };
  const Tensor radius = 4 + 6 * random();
  const Tensor x = abs(arange(size) - (8 + 16 * random()));
  const Tensor y = abs(unsqueeze(arange(size), 1) - (8 + 16 * random()));
  const Tensor disc = x * x + y * y < square(radius);
  const Tensor box = maximum(x, y) < radius;
  const Tensor inside = where(random() < 0.5, disc, box).to(float32);
  return unsqueeze(0.2 * random() + (0.3 + 0.5 * random()) * inside, 1);
}

/// Peak signal-to-noise ratio in decibels, for pictures from 0 to 1: 20 is an error of 0.1.
double psnr(const Tensor& picture, const Tensor& clean) {
  return -10 * std::log10(mse_loss(picture, clean).item());
}

nn::Sequential autoencoder() {
  nn::Sequential net;
  for (const auto& [in, out] : {std::pair{1, 16}, {16, 32}, {32, 32}}) {  // to [N, 32, 4, 4]
    net.add(
        nn::Conv2d{{.in_channels = in, .out_channels = out, .kernel_size = 4, .stride = 2, .padding = 1}});
    net.add(nn::ReLU{});
  }
  for (const auto& [in, out] : {std::pair{32, 32}, {32, 16}, {16, 1}}) {  // and back
    net.add(nn::ConvTranspose2d{
        {.in_channels = in, .out_channels = out, .kernel_size = 4, .stride = 2, .padding = 1}});
    if (out > 1) net.add(nn::ReLU{});
  }
  return net;
}

void run(const TrainingOptions& options) {
  nn::Sequential net = autoencoder();
  optim::Adam adam{net.parameters(), {.lr = 2e-3}};
  optim::Schedule schedule{adam, optim::OneCycleLR{.max_lr = 4e-3, .total_steps = options.steps}};
  const auto noisy = [](const Tensor& clean) { return clean + 0.3 * randn(clean.shape()); };

  const Tensor test = draw(256), noisy_test = noisy(test);
  print("noisy pictures %.1f dB\n", psnr(noisy_test, test));
  for (int64_t step = 1; step <= options.steps; ++step) {
    const Tensor clean = draw(64);
    const Tensor loss = mse_loss(net(noisy(clean)), clean);
    adam.zero_grad();
    loss.backward();
    adam.step();
    schedule.step();
    if (step % 250 == 0 || step == options.steps) {
      const NoGrad off_the_tape;
      print("step %4lld  loss %.4f  denoised test pictures %.1f dB\n", static_cast<long long>(step),
            loss.item(), psnr(net(noisy_test), test));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Trains an autoencoder that takes noise out of pictures.", "denoising_autoencoder"};
  return run_training(app, {.steps = 1000}, argc, argv, run);
}
