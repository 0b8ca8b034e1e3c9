// What a tensor is, and what the tape does.
#include <iostream>

#include <pleat/pleat.h>

using namespace pleat;

int main() {
  const Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  std::cout << x << '\n' << x.describe() << '\n';

  const Tensor row = tensor({10.0, 20.0, 30.0});
  const Tensor column = tensor({{1.0}, {2.0}});
  std::cout << x + row << '\n' << x * column << '\n';
  std::cout << mean(x, 1) << '\n' << matmul(x, transpose(x, 0, 1)) << '\n';

  const Tensor first = x[0];
  fill_(first, 0);
  std::cout << x << '\n';

  const Tensor w = tensor({1.0, -2.0, 0.5});
  w.set_requires_grad();
  const Tensor loss = sum(square(matmul(x, w)));
  loss.backward();
  std::cout << "loss " << loss.item() << ", gradient " << w.grad() << '\n';
}
