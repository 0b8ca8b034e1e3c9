// Calls one network from several threads, and makes networks in threads.
#include <iostream>
#include <thread>
#include <vector>

#include <pleat/pleat.h>

using namespace pleat;

nn::Sequential make_net() {
  return nn::Sequential{nn::Linear{{.in_features = 16, .out_features = 32}}, nn::ReLU{},
                        nn::Linear{{.in_features = 32, .out_features = 4}}};
}

/// What four threads say of a quarter of the batch each.
Tensor answers(nn::Module& net, const Tensor& batch) {
  const std::vector<Tensor> parts = chunk(batch, 4, 0);
  std::vector<Tensor> results(parts.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < parts.size(); ++i)
      threads.emplace_back([&, i] {
        const NoGrad off_the_tape;  // scopes are a thread's own
        const SerialScope serial;   // there are as many threads as cores already
        results[i] = net(parts[i]);
      });
  }
  return cat(results, 0);
}

/// The first weights of two networks that are made at the same time, by seeds of their own.
std::vector<Tensor> made_in_threads(uint64_t seed) {
  std::vector<Tensor> weights(2);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < weights.size(); ++i)
      threads.emplace_back([&, i] {
        manual_seed(seed + i);
        nn::Sequential net = make_net();
        weights[i] = net.parameters()[0];
      });
  }
  return weights;
}

int main() {
  manual_seed(1);
  nn::Sequential net = make_net();
  net.eval();
  const Tensor batch = randn({64, 16});
  const bool alike = allclose(answers(net, batch), net(batch), {.rtol = 1e-5});
  std::cout << "one network in four threads: " << (alike ? "the same answers" : "other answers") << '\n';

  const std::vector<Tensor> first = made_in_threads(10), again = made_in_threads(10);
  std::cout << "networks of two threads: " << (array_equal(first[0], first[1]) ? "the same" : "different")
            << '\n';
  std::cout << "made again: "
            << (array_equal(first[0], again[0]) && array_equal(first[1], again[1]) ? "the same" : "different")
            << '\n';
}
