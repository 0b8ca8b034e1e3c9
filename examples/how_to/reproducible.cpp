// Trains twice, with other numbers of threads and workers, and compares the bits.
#include <iostream>

#include <pleat/pleat.h>

using namespace pleat;

nn::StateDict trained(uint64_t seed, int threads, int workers) {
  set_num_threads(threads);
  manual_seed(seed);
  const data::TensorDataset pictures(randint(0, 256, {64, 3, 16, 16}).to(uint8), randint(0, 4, {64}));
  data::DataLoader loader(pictures, {.batch_size = 16,
                                     .shuffle = true,
                                     .seed = seed,
                                     .workers = workers,
                                     .transforms = {data::random_crop({.padding = 2}), data::to_float()}});
  nn::Sequential net = models::small_cnn({.num_classes = 4, .image_size = 16});
  optim::Adam adam{net.parameters()};
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const data::Batch& batch : loader) {
      const Tensor loss = cross_entropy(net(batch.inputs), batch.targets);
      adam.zero_grad();
      loss.backward();
      adam.step();
    }
  return net.state_dict();
}

bool same(const nn::StateDict& a, const nn::StateDict& b) {
  for (const auto& [name, tensor] : a)
    if (!array_equal(tensor, b.at(name))) return false;
  return true;
}

int main() {
  const nn::StateDict first = trained(1, 1, 0);
  std::cout << "2 threads, 3 workers: " << (same(first, trained(1, 2, 3)) ? "the same bits" : "other bits")
            << '\n';
  std::cout << "another seed: " << (same(first, trained(2, 1, 0)) ? "the same bits" : "other bits") << '\n';
}
