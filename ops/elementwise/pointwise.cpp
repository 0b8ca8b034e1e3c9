// Host and device.
#include "pleat/ops/elementwise/pointwise.h"

#include <utility>

#include "pleat/core/tensor/create.h"

namespace pleat {
namespace {

struct OneMinusSquare {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return one_minus_square(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * x * -2;
  }
};

}  // namespace

Tensor one_minus_square(const Tensor& x) { return pointwise("one_minus_square", x, OneMinusSquare{}); }

namespace detail {

Tensor gradient_like(std::span<const Tensor> dy_and_kept) {
  DType dtype = ops::floating_result(dy_and_kept[0].dtype());
  for (const Tensor& tensor : dy_and_kept) dtype = promote(dtype, tensor.dtype());
  // What a sum has a single number of belongs to each element.
  const Tensor& like = dy_and_kept[0].rank() == 0 ? dy_and_kept.back() : dy_and_kept[0];
  return empty_as(dy_and_kept, like.shape(), dtype);
}

Derivative unary_derivative(const Tensor& x, const Tensor& kept, UnaryBackward backward) {
  return grad_of(x, [backward = std::move(backward), kept = saved(kept)](const Tensor& dy) {
    return backward(dy, *kept);
  });
}

Derivative zero_derivative(const Tensor& x) {
  return grad_of(x, [](const Tensor& dy) { return zeros_like(dy); });
}

std::vector<Derivative> binary_derivatives(const Tensor& a, const Tensor& b, BinaryBackward first,
                                           BinaryBackward second) {
  const auto gradient_of = [&](const Tensor& input, BinaryBackward backward) {
    return grad_of(input, [backward = std::move(backward), a = saved(a), b = saved(b)](const Tensor& dy) {
      return backward(dy, *a, *b);
    });
  };
  std::vector<Derivative> both;
  both.reserve(2);
  both.push_back(gradient_of(a, std::move(first)));
  both.push_back(gradient_of(b, std::move(second)));
  return both;
}

}  // namespace detail
}  // namespace pleat
