// The smallest training loop: a network of one hidden layer learns the sine.
//
// Expected after 1,000 steps: loss 4e-5, in a twentieth of a second.
#include <iostream>

#include <pleat/pleat.h>

using namespace pleat;

int main() {
  manual_seed(1);
  const Tensor x = reshape(linspace(-3, 3, 256), {256, 1});
  const Tensor y = sin(x);

  nn::Sequential net{nn::Linear{{.in_features = 1, .out_features = 64}}, nn::Tanh{},
                     nn::Linear{{.in_features = 64, .out_features = 1}}};
  optim::Adam adam{net.parameters(), {.lr = 0.01}};

  for (int step = 0; step <= 1000; ++step) {
    const Tensor loss = mse_loss(net(x), y);
    adam.zero_grad();
    loss.backward();
    adam.step();
    if (step % 200 == 0) std::cout << "step " << step << "  loss " << loss.item() << '\n';
  }
}
