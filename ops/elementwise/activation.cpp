#include "pleat/ops/elementwise/activation.h"

#include <cmath>

#include "pleat/ops/elementwise/kernels.h"

namespace pleat::ops {
namespace {

constexpr auto rectified = []<class T>(T a) { return a < T(0) ? T(0) : a; };

}  // namespace

Tensor relu(const Tensor& x) { return unary_number("relu", x, rectified); }
void relu_into(const Tensor& out, const Tensor& x) { unary_number_into("relu", out, x, rectified); }
Tensor relu_backward(const Tensor& dy, const Tensor& y) {
  return binary_floating("relu", dy, y, []<class T>(T g, T r) { return r > T(0) ? g : T(0); });
}

Tensor sigmoid(const Tensor& x) {
  return unary_floating("sigmoid", x, [](auto a) { return 1 / (1 + std::exp(-a)); });
}
Tensor sigmoid_backward(const Tensor& dy, const Tensor& y) {
  return binary_floating("sigmoid", dy, y, [](auto g, auto s) { return g * s * (1 - s); });
}

}  // namespace pleat::ops
