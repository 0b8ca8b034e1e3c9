// A U-Net (Ronneberger et al., arXiv:1505.04597) says for each pixel of a noisy picture whether it belongs to
// a disc, to a square or to the ground.
//
// Expected after 500 steps: mean IoU 0.91, where calling all pixels ground has 0.27, in 9.4 s on two cores of
// an AMD EPYC.
#include "program.h"
#include <CLI/CLI.hpp>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

constexpr int64_t size = 64, classes = 3;

/// Pictures [N, 1, 64, 64] with a disc and a square, which may cover it, in noise as strong as they are; and
/// the class of each pixel [N, 64, 64].
data::Batch draw(int64_t count) {
  Tensor picture = zeros({count, size, size});
  Tensor target = zeros({count, size, size}, int64);
  for (const int64_t kind : {1, 2}) {
    const auto random = [&] { return rand({count, 1, 1}); };
    const Tensor radius = 6 + 9 * random();
    const Tensor x = abs(arange(size) - (10 + 44 * random()));
    const Tensor y = abs(unsqueeze(arange(size), 1) - (10 + 44 * random()));
    const Tensor inside = kind == 1 ? x * x + y * y < square(radius) : maximum(x, y) < radius;
    picture = where(inside, 0.6 + 0.4 * random(), picture);
    target = where(inside, kind, target);
  }
  return {unsqueeze(picture + 0.5 * randn({count, size, size}), 1), target};
}

/// The mean over the classes of |predicted and true| / |predicted or true|.
double mean_iou(const Tensor& logits, const Tensor& target) {
  const Tensor predicted = argmax(logits, 1);
  double total = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const double both = sum(predicted == c && target == c).item();
    const double any = sum(predicted == c || target == c).item();
    total += any > 0 ? both / any : 1;
  }
  return total / classes;
}

void run(const TrainingOptions& options) {
  nn::Sequential net = models::unet({.num_classes = classes, .in_channels = 1, .widths = {8, 16, 32}});
  optim::Adam adam{net.parameters(), {.lr = 3e-3}};
  optim::Schedule schedule{adam, optim::CosineAnnealingLR{.steps = options.steps}};
  const data::Batch test = draw(100);
  print("mean IoU of calling all pixels ground: %.3f\n",
        mean_iou(permute(one_hot(zeros_like(test.targets), classes), {0, 3, 1, 2}), test.targets));
  for (int64_t step = 1; step <= options.steps; ++step) {
    const data::Batch batch = draw(16);
    const Tensor loss = cross_entropy(net(batch.inputs), batch.targets);
    adam.zero_grad();
    loss.backward();
    adam.step();
    schedule.step();
    if (step % 100 == 0 || step == options.steps) {
      const NoGrad off_the_tape;
      const nn::ModeScope scope(net, nn::Mode::evaluation);
      print("step %4lld  loss %.3f  test mean IoU %.3f\n", static_cast<long long>(step), loss.item(),
            mean_iou(net(test.inputs), test.targets));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Trains a U-Net that segments drawn shapes.", "unet_segmentation"};
  return run_training(app, {.steps = 500}, argc, argv, run);
}
