#include <iostream>

#include <pleat/pleat.h>

// d(x * x)/dx = 2 x through the installed headers and library.
int main() {
  pleat::Tensor x = pleat::tensor({1.0, 2.0, 3.0});
  x.set_requires_grad(true);
  pleat::Tensor y = x * x;
  y.backward(pleat::ones_like(y));
  std::cout << x.grad() << '\n';
}
