// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/core/kernels/offsets.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/core/tensor/elementwise.h"

/// A functor over single elements, mapped over operands of any strides and types on a GPU. For files with
/// kernels only.

namespace pleat {

/// Functors see bools as the bytes they are, as kernels on the CPU do.
template <class T>
using Seen = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
template <class T>
PLEAT_HOST_DEVICE Seen<T> seen(T value) {
  return static_cast<Seen<T>>(value);
}

/// How an operand gives a thread its elements.
enum class Lanes : unsigned char {
  vector,    ///< neighbours of the type that the functor sees
  half,      ///< neighbours of another type of load_vector
  repeated,  ///< one element, of any type
  apart      ///< not at once
};

/// Elements of operands with any strides and types: `width` a thread, which is 1 where an operand's lie
/// apart.
template <class F, class Out, class... In>
struct MapElements {
  static constexpr std::size_t operands = 1 + sizeof...(In);
  template <class T>
  static constexpr bool is_float = std::is_same_v<T, float>;
  /// Whether there may be half types alone, and bytes.
  static constexpr bool has_half_width =
      (is_float<Out> || ... || is_float<In>)&&(is_float<Out> || sizeof(Out) == 1) &&
      ((is_float<In> || sizeof(In) == 1) && ...);
  static constexpr bool keeps_registers = has_half_width;
  ElementOffsets<operands, uint32_t> offsets;
  std::array<std::byte*, operands> base;
  std::array<DType, operands> dtype;
  std::array<Lanes, operands> lanes;
  uint32_t n;      ///< elements
  uint32_t width;  ///< half_width, vector_width or 1
  F f;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    constexpr std::index_sequence_for<In...> all;
    uint32_t first = static_cast<uint32_t>(i) * width, end = first + width;
    if (end <= n && width > 1) {
      if constexpr (has_half_width)
        if (width == half_width) return vector<half_width>(first, all);
      return vector<vector_width>(first, all);
    }
    if (end > n) end = n;
    PLEAT_ROLLED
    for (; first < end; ++first) element(first, all);
  }

 private:
  template <std::size_t... K>
  PLEAT_HOST_DEVICE void element(uint32_t i, std::index_sequence<K...>) const {
    const auto at = offsets.at(i);
    store_as<Out>(base[0], at[0], dtype[0], f(seen(load_as<In>(base[K + 1], at[K + 1], dtype[K + 1]))...));
  }

  template <std::size_t count, std::size_t... K>
  PLEAT_HOST_DEVICE void vector(uint32_t first, std::index_sequence<K...>) const {
    const auto at = offsets.at(first);
    std::tuple<std::array<In, count>...> in;
    (load<count>(std::get<K>(in).data(), K + 1, at[K + 1]), ...);
    Out out[count];
    PLEAT_UNROLL
    for (std::size_t j = 0; j < count; ++j) out[j] = static_cast<Out>(f(seen(std::get<K>(in)[j])...));
    store_vector<count>(out, base[0], at[0], dtype[0]);
  }
  template <std::size_t count, class T>
  PLEAT_HOST_DEVICE void load(T* to, std::size_t k, int32_t at) const {
    if (count == vector_width && lanes[k] == Lanes::vector)
      return load_vector(to, base[k], at, dtype_of<T>());
    if (lanes[k] != Lanes::repeated) return load_vector<count>(to, base[k], at, dtype[k]);
    const T value = load_as<T>(base[k], at, dtype[k]);
    PLEAT_UNROLL
    for (std::size_t j = 0; j < count; ++j) to[j] = value;
  }
};

namespace detail {

/// `start`: where the first element of a loop's part lies. Vectors, of `width`, have to lie at multiples of
/// their bytes.
template <class T>
Lanes lanes_of(const Operand& operand, std::size_t k, int64_t start, const std::vector<LoopDim>& dims,
               uint32_t width) {
  const DType dtype = operand.tensor.dtype();
  const int64_t step = dims.empty() ? 1 : dims[0].step[k];
  if (step == 0 && k > 0) return Lanes::repeated;
  if (step != 1 || !moves_vectors_of<T>(dtype)) return Lanes::apart;
  if (width == half_width && dtype == float32) return Lanes::apart;
  for (std::size_t d = 1; d < dims.size(); ++d)
    if (dims[d].step[k] % width != 0) return Lanes::apart;
  const std::byte* const first = operand.tensor.raw() + start * size_of(dtype);
  const auto bytes = static_cast<std::uintptr_t>(width * size_of(dtype));
  if (reinterpret_cast<std::uintptr_t>(first) % bytes != 0) return Lanes::apart;
  return dtype == dtype_of<T>() ? Lanes::vector : Lanes::half;
}

}  // namespace detail

/// out = f(in...) on out's GPU: f sees elements of type In and gives an Out. The checks are those of
/// elementwise_loop. Parts of `small` elements each are launched by themselves.
template <class Out, class... In, class F>
void elementwise_kernel(const char* op, const Tensor& out,
                        const std::type_identity_t<std::array<Tensor, sizeof...(In)>>& in, const F& f,
                        int64_t small = small_loop) {
  constexpr std::size_t count = 1 + sizeof...(In);
  std::array<Operand, count> operands;
  operands[0] = {out, dtype_of<Out>(), Access::write};
  std::size_t next = 1;
  for (const Tensor& tensor : in) operands[next++] = {tensor, dtype_of<Out>(), Access::read};
  const ElementwiseLoop loop = make_elementwise_loop(op, operands);
  if (loop.numel() == 0) return;
  out.begin_write();
  for_small_parts<count>(loop.dims, small, [&](const std::vector<LoopDim>& dims, const auto& starts) {
    int64_t n = 1;
    for (const LoopDim& dim : dims) n *= dim.size;
    MapElements<F, Out, In...> functor{{op, dims}, {}, {}, {}, static_cast<uint32_t>(n), half_width, f};
    const auto fits = [&](uint32_t width) {
      functor.width = width;
      bool all = dims.size() <= 1 || dims[0].size % width == 0;
      const auto set = [&]<class T>(Type<T>, std::size_t k) {
        const Tensor& t = loop.operands[k].tensor;
        functor.base[k] = t.raw() + starts[k] * size_of(t.dtype());
        functor.dtype[k] = t.dtype();
        functor.lanes[k] = detail::lanes_of<T>(loop.operands[k], k, starts[k], dims, width);
        all = all && functor.lanes[k] != Lanes::apart;
      };
      std::size_t k = 0;
      set(Type<Out>{}, k++);
      (set(Type<In>{}, k++), ...);
      return all;
    };
    const bool by_halves = functor.has_half_width && fits(half_width);
    if (!by_halves && !fits(vector_width)) functor.width = 1;
    launch_indices(op, out.device(), ceil_div(n, int64_t{functor.width}), functor);
  });
}

}  // namespace pleat
