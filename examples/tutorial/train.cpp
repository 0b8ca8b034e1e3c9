// The plain training loop.
#include <iostream>

#include "shapes.h"

double test_accuracy(ShapeNet& net, data::DataLoader& loader) {
  const NoGrad off_the_tape;
  net.eval();
  int64_t right = 0, all = 0;
  for (const data::Batch& batch : loader) {
    right += sum(argmax(net(batch.inputs), 1) == batch.targets).item<int64_t>();
    all += batch.size();
  }
  net.train();
  return static_cast<double>(right) / static_cast<double>(all);
}

int main() {
  manual_seed(1);
  data::DataLoader train_loader = make_loader("train", true);
  data::DataLoader test_loader = make_loader("test", false);
  ShapeNet net;
  optim::Adam adam{net.parameters(), {.lr = 3e-3}};

  for (int epoch = 1; epoch <= 10; ++epoch) {
    double total = 0;
    for (const data::Batch& batch : train_loader) {
      const Tensor loss = cross_entropy(net(batch.inputs), batch.targets);
      adam.zero_grad();
      loss.backward();
      adam.step();
      total += loss.item();
    }
    std::cout << "epoch " << epoch << "  loss " << total / static_cast<double>(train_loader.size())
              << "  test accuracy " << test_accuracy(net, test_loader) << std::endl;
  }
}
