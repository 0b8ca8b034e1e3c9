// The same program with and without a GPU.
#include <iostream>

#include <pleat/pleat.h>

using namespace pleat;

int main() {
  const Device device = cuda::is_available() ? Device("cuda") : Device("cpu");
  if (!cuda::is_available()) std::cerr << "on the CPU: " << cuda::unavailable_reason() << '\n';

  manual_seed(1);
  const data::TensorDataset samples(randn({256, 8}), randint(0, 2, {256}));
  // On the device from the start where they fit, else batch by batch.
  data::DataLoader loader(samples.fits(device) ? samples.to(device) : samples,
                          {.batch_size = 32, .shuffle = true, .device = device});
  nn::Sequential net{nn::Linear{{.in_features = 8, .out_features = 32}}, nn::ReLU{},
                     nn::Linear{{.in_features = 32, .out_features = 2}}};
  net.to(device);
  optim::Adam adam{net.parameters(), {.lr = 1e-2}};

  for (int epoch = 1; epoch <= 3; ++epoch) {
    Tensor total = zeros({}, {.device = device});
    for (const data::Batch& batch : loader) {
      const Tensor loss = cross_entropy(net(batch.inputs), batch.targets);
      adam.zero_grad();
      loss.backward();
      adam.step();
      total += loss.detach();  // stays on the device: nothing waits
    }
    std::cout << "epoch " << epoch << "  loss " << total.item() / static_cast<double>(loader.size()) << '\n';
  }
}
