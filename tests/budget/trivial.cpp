// The smallest program of use: what it weighs is what Pleat adds to a program (figures.txt).
#include <iostream>

#include "pleat/pleat.h"

int main() {
  const pleat::Tensor x = pleat::tensor({1.0, 2.0, 3.0}).set_requires_grad();
  (x * x).backward(pleat::ones_like(x));
  std::cout << x.grad() << '\n';
}
