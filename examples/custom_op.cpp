// A new differentiable function and a new module, without macros or registration.
//
// Expected: gradcheck and gradgradcheck pass, and the slope grows to 3.4 in training.
#include <iostream>

#include "program.h"
#include <pleat/pleat.h>

using namespace pleat;

/// Swish with a slope: y = x * sigmoid(b x). (Ramachandran et al., arXiv:1710.05941.)
///
/// A function is computed off the tape and recorded with one closure for each input. Closures use
/// differentiable functions, so that gradients of gradients work, and keep tensors by `saved`, which
/// throws when they are changed in between.
Tensor swish(const Tensor& x, const Tensor& b) {
  const Tensor y = no_grad([&] { return x * sigmoid(b * x); });
  return record("swish", y,
                {grad_of(x,
                         [x = saved(x), b = saved(b)](const Tensor& dy) {
                           const Tensor s = sigmoid(*b * *x);
                           return dy * (s + *b * *x * s * (1 - s));
                         }),
                 grad_of(b, [x = saved(x), b = saved(b)](const Tensor& dy) {
                   const Tensor s = sigmoid(*b * *x);
                   return dy * *x * *x * s * (1 - s);
                 })});
}

/// A module lists what is inside it once; parameters(), to(), saving and printing follow from that.
struct Swish : nn::Module {
  Tensor slope = ones({1});

  Tensor forward(const Tensor& x) override { return swish(x, slope); }
  void members(nn::Members& m) override { m("slope", slope); }
};

void run() {
  manual_seed(1);
  const auto function = [](const std::vector<Tensor>& in) { return swish(in[0], in[1]); };
  const Tensor x = randn({4, 5}, {.dtype = float64});
  const Tensor b = randn({1}, {.dtype = float64});
  std::cout << "gradcheck      " << (gradcheck(function, {x, b}) ? "passed" : "") << '\n';
  std::cout << "gradgradcheck  " << (gradgradcheck(function, {x, b}) ? "passed" : "") << '\n';

  // It trains like any other: which slope makes swish look most like ReLU on [-2, 2]?
  Swish activation;
  optim::SGD sgd{activation.parameters(), {.lr = 2.0}};
  const Tensor points = linspace(-2, 2, 101);
  for (int step = 0; step < 200; ++step) {
    const Tensor loss = mse_loss(activation(points), relu(points));
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
  std::cout << "slope after training: " << activation.slope.item()
            << " (ReLU is the limit of large slopes)\n";
}

int main(int argc, char** argv) {
  return run_program("custom_op", "Checks and trains a differentiable function of one's own.", argc, argv,
                     run);
}
