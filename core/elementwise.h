// Private header: not installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "pleat/core/tensor.h"

/// The one loop under every elementwise operation: operands of any strides and types, broadcast to the shape of the
/// first, are handed to a kernel as plain arrays. A kernel therefore sees neither strides nor casts, only
/// `n` elements of the type it computes in.

namespace pleat {

enum class Access : unsigned char { read, write, read_write };

struct Operand {
  Tensor tensor;
  DType as;  ///< the type the kernel sees
  Access access = Access::read;
};

using ElementwiseKernel = void (*)(const void* context, std::byte* const* arrays, int64_t n);

/// Runs `kernel` over all elements, in parallel. arrays[i] are n elements of operands[i].as.
/// The first operand's shape is that of the loop; written operands must have it, and no two elements of one in the
/// same place; the others must broadcast to it. Throws ShapeError otherwise, DeviceError when devices differ.
/// Operands that overlap a written one in another layout are copied first.
void elementwise_loop(const char* op, std::span<const Operand> operands, ElementwiseKernel kernel,
                      const void* context);

namespace detail {

template <class Out, class... In, std::size_t... I, class F>
void call_kernel(const F& f, std::byte* const* arrays, int64_t n, std::index_sequence<I...>) {
  f(reinterpret_cast<Out*>(arrays[0]), reinterpret_cast<const In*>(arrays[I + 1])..., n);
}
}  // namespace detail

/// out[i] = f(in[i] ...): `f(Out* out, const In* in..., int64_t n)` is called on pieces.
template <class Out, class... In, class F>
void elementwise(const char* op, const Tensor& out, const std::type_identity_t<std::array<Tensor, sizeof...(In)>>& in,
                 const F& f) {
  std::array<Operand, sizeof...(In) + 1> operands;
  operands[0] = {out, dtype_of<Out>(), Access::write};
  std::size_t i = 0;
  ((operands[i + 1] = {in[i], dtype_of<In>(), Access::read}, ++i), ...);
  elementwise_loop(
      op, operands,
      [](const void* context, std::byte* const* arrays, int64_t n) {
        detail::call_kernel<Out, In...>(*static_cast<const F*>(context), arrays, n,
                                        std::index_sequence_for<In...>{});
      },
      &f);
}

/// A new tensor of `shape` that lies in memory as the inputs do: in the order of dimensions of the first dense input
/// that has this shape, else row-major.
Tensor empty_as(std::span<const Tensor> inputs, const Shape& shape, DType dtype);

}  // namespace pleat
