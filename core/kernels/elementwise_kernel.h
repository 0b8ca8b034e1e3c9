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

/// One element of operands with any strides and types.
template <class F, class Out, class... In>
struct MapStrided {
  static constexpr std::size_t operands = 1 + sizeof...(In);
  ElementOffsets<operands> offsets;
  std::array<std::byte*, operands> base;
  std::array<DType, operands> dtype;
  F f;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const { run(i, std::index_sequence_for<In...>{}); }

 private:
  template <std::size_t... K>
  PLEAT_HOST_DEVICE void run(int64_t i, std::index_sequence<K...>) const {
    const auto at = offsets.at(i);
    store_as<Out>(base[0], at[0], dtype[0], f(seen(load_as<In>(base[K + 1], at[K + 1], dtype[K + 1]))...));
  }
};

/// `width` neighbours, moved at once.
template <class T, std::size_t width>
struct alignas(sizeof(T) * width) Vector {
  T lane[width];
};

/// `width` elements of operands that all lie one element behind the other, stored as StoredOut and StoredIn,
/// which are the types the functor sees or the half types of these.
template <std::size_t width, class F, class Out, class StoredOut, class InTypes, class StoredIn>
struct MapDense;
template <std::size_t width, class F, class Out, class StoredOut, class... In, class... StoredIn>
struct MapDense<width, F, Out, StoredOut, std::tuple<In...>, std::tuple<StoredIn...>> {
  StoredOut* out;
  std::array<const void*, sizeof...(In)> in;  ///< of StoredIn
  int64_t n;                                  ///< elements
  F f;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const { run(i, std::index_sequence_for<In...>{}); }

 private:
  template <std::size_t... K>
  PLEAT_HOST_DEVICE void run(int64_t i, std::index_sequence<K...>) const {
    const int64_t first = i * static_cast<int64_t>(width);
    if (first + static_cast<int64_t>(width) <= n) {
      const std::tuple<Vector<StoredIn, width>...> loaded{
          static_cast<const Vector<StoredIn, width>*>(in[K])[i]...};
      Vector<StoredOut, width> result;
      for (std::size_t j = 0; j < width; ++j)
        result.lane[j] =
            convert<StoredOut>(static_cast<Out>(f(seen(convert<In>(std::get<K>(loaded).lane[j]))...)));
      reinterpret_cast<Vector<StoredOut, width>*>(out)[i] = result;
      return;
    }
    for (int64_t j = first; j < n; ++j)
      out[j] = convert<StoredOut>(
          static_cast<Out>(f(seen(convert<In>(static_cast<const StoredIn*>(in[K])[j]))...)));
  }
};

namespace detail {

/// Bytes a thread reads or writes at once.
inline constexpr std::size_t vector_bytes = 16;

template <class T, class S>
using StoredHalf = std::conditional_t<std::is_same_v<T, float>, S, T>;

/// Runs densely if all operands are stored as given; false otherwise.
template <class F, class Out, class StoredOut, class... In, class... StoredIn>
bool mapped_dense(const char* op, const ElementwiseLoop& loop, const F& f, std::type_identity<StoredOut>,
                  std::tuple<In...>*, std::tuple<StoredIn...>*) {
  constexpr std::array<DType, 1 + sizeof...(In)> stored = {dtype_of<StoredOut>(), dtype_of<StoredIn>()...};
  constexpr std::size_t largest = std::max({sizeof(StoredOut), sizeof(StoredIn)...});
  constexpr std::size_t width = vector_bytes / largest;
  for (std::size_t k = 0; k < stored.size(); ++k) {
    const Tensor& t = loop.operands[k].tensor;
    if (t.dtype() != stored[k] || !loop.is_dense(k)) return false;
    if (reinterpret_cast<std::uintptr_t>(t.raw()) % (static_cast<std::size_t>(size_of(stored[k])) * width) !=
        0)
      return false;
  }
  const int64_t n = loop.numel();
  const auto run = [&]<std::size_t... K>(std::index_sequence<K...>) {
    const MapDense<width, F, Out, StoredOut, std::tuple<In...>, std::tuple<StoredIn...>> functor{
        reinterpret_cast<StoredOut*>(loop.operands[0].tensor.raw()),
        {loop.operands[K + 1].tensor.raw()...},
        n,
        f};
    launch_indices(op, loop.operands[0].tensor.device(), ceil_div(n, static_cast<int64_t>(width)), functor);
  };
  run(std::index_sequence_for<In...>{});
  return true;
}

}  // namespace detail

/// out = f(in...) on out's GPU: f sees elements of type In and gives an Out.
/// The checks are those of elementwise_loop.
template <class Out, class... In, class F>
void elementwise_kernel(const char* op, const Tensor& out,
                        const std::type_identity_t<std::array<Tensor, sizeof...(In)>>& in, const F& f) {
  std::array<Operand, 1 + sizeof...(In)> operands;
  operands[0] = {out, dtype_of<Out>(), Access::write};
  std::size_t next = 1;
  for (const Tensor& tensor : in) operands[next++] = {tensor, dtype_of<Out>(), Access::read};
  const ElementwiseLoop loop = make_elementwise_loop(op, operands);
  if (loop.numel() == 0) return;
  out.begin_write();
  using Types = std::tuple<In...>;
  bool done = detail::mapped_dense<F, Out>(op, loop, f, std::type_identity<Out>{},
                                           static_cast<Types*>(nullptr), static_cast<Types*>(nullptr));
  if constexpr ((std::is_same_v<Out, float> || ... || std::is_same_v<In, float>)) {
    const auto try_half = [&]<class S>(Type<S>) {
      using Stored = std::tuple<detail::StoredHalf<In, S>...>;
      done =
          done || detail::mapped_dense<F, Out>(op, loop, f, std::type_identity<detail::StoredHalf<Out, S>>{},
                                               static_cast<Types*>(nullptr), static_cast<Stored*>(nullptr));
    };
    try_half(Type<Half>{});
    try_half(Type<BFloat16>{});
  }
  if (!done) {
    MapStrided<F, Out, In...> functor{ElementOffsets<1 + sizeof...(In)>(op, loop), {}, {}, f};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      functor.base[k] = loop.operands[k].tensor.raw();
      functor.dtype[k] = loop.operands[k].tensor.dtype();
    }
    launch_indices(op, out.device(), loop.numel(), functor);
  }
}

}  // namespace pleat
