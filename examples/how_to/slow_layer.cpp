// Which layer takes the time, and which implementation would be faster.
#include <iostream>

#include <pleat/pleat.h>

using namespace pleat;

int main() {
  nn::Sequential net = models::small_cnn({.num_classes = 10});
  optim::SGD sgd{net.parameters(), {.lr = 0.01}};
  const Tensor x = randn({16, 3, 32, 32});
  const Tensor target = randint(0, 10, {16});

  std::cout << nn::summary(net, {16, 3, 32, 32}) << '\n';

  profile::Profiler profiler{{.schedule = profile::Schedule{.warmup = 2, .active = 3}}};
  for (int step = 0; step < 5; ++step) {
    const Tensor loss = cross_entropy(net(x), target);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    profiler.step();
  }
  profiler.stop();
  const auto by_layer = profile::GroupBy::module | profile::GroupBy::shape;
  std::cout << profiler.profile().key_averages({.group_by = by_layer}).table({.row_limit = 10}) << '\n';

  for (const train::LayerTimes& layer : train::time_layers(net, x))
    for (const auto& [implementation, milliseconds] : layer.milliseconds)
      std::cout << layer.path << "  " << layer.options << "  " << implementation << "  " << milliseconds
                << " ms\n";
}
