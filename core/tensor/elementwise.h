// Private header: not installed.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleat/core/tensor/tensor.h"

/// The one loop under every elementwise operation: operands of any strides and types, broadcast to the shape
/// of the first, are handed to a kernel as plain arrays. A kernel therefore sees neither strides nor casts,
/// only `n` elements of the type it computes in.

namespace pleat {

enum class Access : unsigned char { read, write, read_write };

struct Operand {
  Tensor tensor;
  DType as;  ///< the type the kernel sees
  Access access = Access::read;
};

/// What runs on each piece of a loop.
struct ElementwiseKernel {
  /// arrays[k] are n elements of operand k.
  void (*run)(const void* context, std::byte* const* arrays, int64_t n);
  const void* context;
  /// The same, but arrays[repeated] is one element, which counts n times: the pieces are then as long as an
  /// operand does not change, without copies of it. Null where there is no such kernel.
  void (*run_repeated)(const void* context, std::byte* const* arrays, int64_t n,
                       std::size_t repeated) = nullptr;
};

inline constexpr std::size_t max_operands = 6;

/// One dimension of a loop: its size, and the step of each operand in elements.
struct LoopDim {
  int64_t size;
  std::array<int64_t, max_operands> step;
};

/// A loop over all elements, checked: dimensions from the innermost outwards, as few as the strides allow.
struct ElementwiseLoop {
  std::span<const Operand> operands;  ///< those that would be overwritten before they are read are copies
  std::vector<LoopDim> dims;
  std::vector<Operand> own;  ///< behind `operands` when there are copies

  ElementwiseLoop() = default;
  ElementwiseLoop(ElementwiseLoop&&) = default;
  ElementwiseLoop& operator=(ElementwiseLoop&&) = default;

  int64_t numel() const { return operands[0].tensor.numel(); }
  /// Whether an operand's elements follow one another over the whole loop.
  bool is_dense(std::size_t operand) const;
  /// Whether every inner run of an operand is the same one, as of a bias in channels_last.
  bool repeats(std::size_t operand) const;
};

/// Whether two elements may lie in one place, as in an expanded tensor: no, where sorted by stride each
/// dimension steps over all of the ones inside it.
bool may_overlap(const Tensor& tensor);

/// The first operand's shape is that of the loop; written operands must have it, and no two elements of one
/// in the same place; the others must broadcast to it. Throws ShapeError otherwise, DeviceError when devices
/// differ. The loop refers to `operands`.
ElementwiseLoop make_elementwise_loop(const char* op, std::span<const Operand> operands);

/// Runs `kernel` over all elements on the CPU, in parallel. arrays[i] are n elements of operands[i].as.
/// Throws what make_elementwise_loop does, and DeviceError when the operands are not on the CPU.
void elementwise_loop(const char* op, std::span<const Operand> operands, const ElementwiseKernel& kernel);
/// The same for many loops in one parallel pass: small tensors are shared among threads as one large one is.
/// All calls are checked before any of them runs.
struct ElementwiseCall {
  std::span<const Operand> operands;
  ElementwiseKernel kernel;
};
void elementwise_loops(const char* op, std::span<const ElementwiseCall> calls);
/// The same for out and inputs that the kernel sees as the types `as`, out's first.
void elementwise_loop(const char* op, const Tensor& out, std::span<const Tensor> in,
                      std::span<const DType> as, const ElementwiseKernel& kernel);

/// An array in which one element is repeated.
template <class T>
struct Repeated {
  T value;
  T operator[](int64_t) const { return value; }
};

namespace detail {

template <class F, class Out, class... In>
ElementwiseKernel kernel_of(const F& f) {
  return {[](const void* context, std::byte* const* arrays, int64_t n) {
            [&]<std::size_t... I>(std::index_sequence<I...>) {
              (*static_cast<const F*>(context))(reinterpret_cast<Out*>(arrays[0]), n,
                                                reinterpret_cast<const In*>(arrays[I + 1])...);
            }
            (std::index_sequence_for<In...>{});
          },
          &f};
}

template <class F, class Out, class A, class B>
ElementwiseKernel kernel_of_two(const F& f) {
  ElementwiseKernel kernel = kernel_of<F, Out, A, B>(f);
  if constexpr (std::invocable<const F&, Out*, int64_t, Repeated<A>, const B*>)
    kernel.run_repeated = [](const void* context, std::byte* const* arrays, int64_t n, std::size_t repeated) {
      const F& run = *static_cast<const F*>(context);
      auto* const out = reinterpret_cast<Out*>(arrays[0]);
      const auto* const a = reinterpret_cast<const A*>(arrays[1]);
      const auto* const b = reinterpret_cast<const B*>(arrays[2]);
      if (repeated == 1)
        run(out, n, Repeated<A>{*a}, b);
      else
        run(out, n, a, Repeated<B>{*b});
    };
  return kernel;
}

}  // namespace detail

/// out[i] = f(in[i] ...): `f(Out* out, int64_t n, const In* in...)` is called on pieces. Where f of two
/// inputs can also be called with one of them `Repeated`, it is where that one does not change.
template <class Out, class... In, class F>
void elementwise(const char* op, const Tensor& out,
                 const std::type_identity_t<std::array<Tensor, sizeof...(In)>>& in, const F& f) {
  static constexpr std::array as = {dtype_of<Out>(), dtype_of<In>()...};
  if constexpr (sizeof...(In) == 2)
    elementwise_loop(op, out, in, as, detail::kernel_of_two<F, Out, In...>(f));
  else
    elementwise_loop(op, out, in, as, detail::kernel_of<F, Out, In...>(f));
}

/// A new tensor of `shape` that lies in memory as the inputs do: in the order of dimensions of the first
/// dense input that has this shape, else of the first with gaps (a part of a tensor), else row-major.
Tensor empty_as(std::span<const Tensor> inputs, const Shape& shape, DType dtype);

}  // namespace pleat
