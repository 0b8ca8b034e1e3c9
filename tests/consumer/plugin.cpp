#include <cstdio>
#include <sstream>

#include <pleat/pleat.h>

// A shared library with a static Pleat in it: d(x * x)/dx = 2 x, and loops of several threads.
extern "C" void plugin_run() {
  pleat::set_num_threads(3);
  pleat::Tensor x = pleat::tensor({1.0, 2.0, 3.0});
  x.set_requires_grad(true);
  pleat::Tensor y = x * x;
  y.backward(pleat::ones_like(y));
  std::ostringstream text;
  text << x.grad();
  const pleat::Tensor a = pleat::ones({300, 200}), b = pleat::ones({200, 300});
  std::printf("%s %g\n", text.str().c_str(), pleat::sum(pleat::matmul(a, b)).item<double>());
}
