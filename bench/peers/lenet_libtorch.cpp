// lenet_pleat.cpp with libtorch.
#include <chrono>
#include <cstdlib>
#include <iostream>

#include <torch/torch.h>

int main(int, char** arguments) {
  const int steps = std::atoi(arguments[1]);
  torch::set_num_threads(2);
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 5).padding(2)),
                            torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Conv2d(6, 16, 5),
                            torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
                            torch::nn::Linear(400, 120), torch::nn::ReLU(), torch::nn::Linear(120, 84),
                            torch::nn::ReLU(), torch::nn::Linear(84, 10));
  torch::optim::SGD sgd(net->parameters(), 0.01);
  const auto images = torch::randn({128, 1, 28, 28}), labels = torch::randint(10, {128});
  std::chrono::steady_clock::time_point start;
  for (int step = -20; step < steps; ++step) {
    if (step == 0) start = std::chrono::steady_clock::now();
    const auto loss = torch::cross_entropy_loss(net->forward(images), labels);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
  std::cout << all.count() / steps << '\n';
}
