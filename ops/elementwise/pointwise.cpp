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
  return empty_as(dy_and_kept, dy_and_kept[0].shape(), dtype);
}

Tensor record_unary(const char* op, const Tensor& y, const Tensor& x, const Tensor& kept,
                    UnaryBackward backward) {
  return record(op, y, {grad_of(x, [backward = std::move(backward), kept = saved(kept)](const Tensor& dy) {
                  return backward(dy, *kept);
                })});
}

Tensor record_binary(const char* op, const Tensor& y, const Tensor& a, const Tensor& b, BinaryBackward first,
                     BinaryBackward second) {
  const auto gradient_of = [&](const Tensor& input, BinaryBackward backward) {
    return grad_of(input, [backward = std::move(backward), a = saved(a), b = saved(b)](const Tensor& dy) {
      return backward(dy, *a, *b);
    });
  };
  return record(op, y, {gradient_of(a, std::move(first)), gradient_of(b, std::move(second))});
}

Tensor record_constant(const char* op, const Tensor& y, const Tensor& x) {
  return record(op, y, {grad_of(x, [](const Tensor& dy) { return zeros_like(dy); })});
}

}  // namespace detail
}  // namespace pleat
