// Looks into the trained network: its layers, its mistakes, and where the time of a step goes.
#include <iostream>

#include "shapes.h"

int main() {
  ShapeNet net;
  net.load_state_dict(io::read_safetensors("run/weights.safetensors").tensors);
  std::cout << nn::summary(net, {1, 1, 32, 32}) << '\n';

  data::DataLoader test_loader = make_loader("test", false);
  const train::Predictions predictions = train::predict_classes(net, test_loader);
  std::cout << "accuracy " << predictions.accuracy() << '\n';
  for (const train::Prediction& p : predictions.worst(3))
    std::cout << "shapes/test/" << p.sample << ".png is a " << name_of(p.target) << ", taken for a "
              << name_of(p.predicted) << " with probability " << p.probability << '\n';

  optim::SGD sgd{net.parameters(), {.lr = 1e-3}};
  const data::Batch batch = *test_loader.begin();
  profile::Profiler profiler{{.schedule = profile::Schedule{.warmup = 2, .active = 5}}};
  for (int step = 0; step < 7; ++step) {
    const Tensor loss = cross_entropy(net(batch.inputs), batch.targets);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    profiler.step();
  }
  profiler.stop();
  std::cout << profiler.profile().key_averages().table({.row_limit = 8}) << '\n';
  profiler.profile().export_chrome_trace("run/trace.json");
}
