// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pleat/core/checked_math.h"
#include "pleat/core/convert.h"
#include "pleat/core/elementwise.h"
#include "pleat/core/error.h"
#include "pleat/core/fast_divider.h"
#include "pleat/core/grid.h"

/// Elementwise work over a grid: a functor over single elements, mapped over operands of any strides and
/// types.

namespace pleat {

/// More dimensions are left in hardly any loop once those that lie one behind the other are joined.
inline constexpr std::size_t max_grid_dims = 16;

/// Where the operands' elements of loop index i lie.
template <std::size_t N>
struct GridOffsets {
  int dims = 0;
  std::array<FastDivider, max_grid_dims> size{};
  std::array<std::array<int64_t, N>, max_grid_dims> step{};

  GridOffsets() = default;
  explicit GridOffsets(const ElementwiseLoop& loop) : dims(static_cast<int>(loop.dims.size())) {
    for (std::size_t d = 0; d < loop.dims.size(); ++d) {
      size[d] = FastDivider(loop.dims[d].size);
      for (std::size_t k = 0; k < N; ++k) step[d][k] = loop.dims[d].step[k];
    }
  }

  PLEAT_HOST_DEVICE std::array<int64_t, N> at(int64_t i) const {
    std::array<int64_t, N> offsets{};
    for (int d = 0; d < dims; ++d) {
      int64_t rest = i;
      i = d + 1 < dims ? size[static_cast<std::size_t>(d)].divide(rest) : 0;
      for (std::size_t k = 0; k < N; ++k) offsets[k] += rest * step[static_cast<std::size_t>(d)][k];
    }
    return offsets;
  }
};

/// An element of any type, read as T or written from one.
template <class T>
PLEAT_HOST_DEVICE T load_as(const std::byte* base, int64_t index, DType dtype) {
  switch (dtype) {
    case boolean:
      return convert<T>(reinterpret_cast<const bool*>(base)[index]);
    case uint8:
      return convert<T>(reinterpret_cast<const uint8_t*>(base)[index]);
    case int32:
      return convert<T>(reinterpret_cast<const int32_t*>(base)[index]);
    case int64:
      return convert<T>(reinterpret_cast<const int64_t*>(base)[index]);
    case bfloat16:
      return convert<T>(reinterpret_cast<const BFloat16*>(base)[index]);
    case float16:
      return convert<T>(reinterpret_cast<const Half*>(base)[index]);
    case float32:
      return convert<T>(reinterpret_cast<const float*>(base)[index]);
    case float64:
      break;
  }
  return convert<T>(reinterpret_cast<const double*>(base)[index]);
}
template <class T>
PLEAT_HOST_DEVICE void store_as(std::byte* base, int64_t index, DType dtype, T value) {
  switch (dtype) {
    case boolean:
      reinterpret_cast<bool*>(base)[index] = convert<bool>(value);
      return;
    case uint8:
      reinterpret_cast<uint8_t*>(base)[index] = convert<uint8_t>(value);
      return;
    case int32:
      reinterpret_cast<int32_t*>(base)[index] = convert<int32_t>(value);
      return;
    case int64:
      reinterpret_cast<int64_t*>(base)[index] = convert<int64_t>(value);
      return;
    case bfloat16:
      reinterpret_cast<BFloat16*>(base)[index] = convert<BFloat16>(value);
      return;
    case float16:
      reinterpret_cast<Half*>(base)[index] = convert<Half>(value);
      return;
    case float32:
      reinterpret_cast<float*>(base)[index] = convert<float>(value);
      return;
    case float64:
      break;
  }
  reinterpret_cast<double*>(base)[index] = convert<double>(value);
}

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
  GridOffsets<operands> offsets;
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
  int64_t n;  ///< elements
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
      out[j] = convert<StoredOut>(static_cast<Out>(f(seen(convert<In>(static_cast<const StoredIn*>(in[K])[j]))...)));
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
    grid_for(op, loop.operands[0].tensor.device(), ceil_div(n, static_cast<int64_t>(width)), functor);
  };
  run(std::index_sequence_for<In...>{});
  return true;
}

}  // namespace detail

/// out = f(in...) over the grid of out's device: f sees elements of type In and gives an Out.
/// The checks are those of elementwise_loop.
template <class Out, class... In, class F>
void grid_elementwise(const char* op, const Tensor& out,
                      const std::type_identity_t<std::array<Tensor, sizeof...(In)>>& in, const F& f) {
  std::array<Operand, 1 + sizeof...(In)> operands;
  operands[0] = {out, dtype_of<Out>(), Access::write};
  std::size_t next = 1;
  for (const Tensor& tensor : in) operands[next++] = {tensor, dtype_of<Out>(), Access::read};
  const ElementwiseLoop loop = make_elementwise_loop(op, operands);
  if (loop.numel() == 0) return;
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
    if (loop.dims.size() > max_grid_dims)
      throw ShapeError(std::string(op) + ": on " + name(out.device()) + " at most " +
                       std::to_string(max_grid_dims) + " dimensions that cannot be joined, got " +
                       std::to_string(loop.dims.size()));
    MapStrided<F, Out, In...> functor{GridOffsets<1 + sizeof...(In)>(loop), {}, {}, f};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      functor.base[k] = loop.operands[k].tensor.raw();
      functor.dtype[k] = loop.operands[k].tensor.dtype();
    }
    grid_for(op, out.device(), loop.numel(), functor);
  }
  out.bump_version();
}

}  // namespace pleat
