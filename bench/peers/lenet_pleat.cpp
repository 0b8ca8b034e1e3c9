// LeNet-5 trained with SGD on random digits: compare.py times it beside the same in other frameworks.
// lenet_pleat STEPS: milliseconds of a step, the average of STEPS after 20 that are not counted.
#include <chrono>
#include <cstdlib>
#include <iostream>

#include <pleat/pleat.h>

using namespace pleat;

int main(int, char** arguments) {
  const int steps = std::atoi(arguments[1]);
  set_num_threads(2);
  nn::Sequential net = models::lenet({.num_classes = 10, .in_channels = 1, .image_size = 28});
  optim::SGD sgd{net.parameters(), {.lr = 0.01}};
  const Tensor images = randn({128, 1, 28, 28}), labels = randint(0, 10, {128});
  std::chrono::steady_clock::time_point start;
  for (int step = -20; step < steps; ++step) {
    if (step == 0) start = std::chrono::steady_clock::now();
    const Tensor loss = cross_entropy(net(images), labels);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
  std::cout << all.count() / steps << '\n';
}
