#pragma once

#include <concepts>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// What a new tensor is like.
struct TensorOptions {
  DType dtype = float32;
  Device device = default_device();
  MemoryFormat format = MemoryFormat::contiguous;
};

/// Options that say one thing alone: `zeros({2, 2}, float64)`, `zeros({2, 2}, "cuda")`.
template <class T>
concept TensorOption = std::same_as<T, DType> || std::convertible_to<T, Device>;
template <TensorOption T>
TensorOptions tensor_options(T option) {
  if constexpr (std::same_as<T, DType>)
    return {.dtype = option};
  else
    return {.device = option};
}

/// Elements not initialised.
Tensor empty(Sizes shape, TensorOptions options = {});
Tensor zeros(Sizes shape, TensorOptions options = {});
Tensor ones(Sizes shape, TensorOptions options = {});
/// Throws ValueError when the type cannot hold the value: 300 or NaN in uint8, 1e6 in float16.
Tensor full(Sizes shape, Scalar value, TensorOptions options = {});
/// A new tensor with dtype, device and layout of another; `empty_like` keeps the order of its dimensions in
/// memory.
Tensor empty_like(const Tensor& like);
Tensor zeros_like(const Tensor& like);
Tensor ones_like(const Tensor& like);
Tensor full_like(const Tensor& like, Scalar value);

struct ArangeOptions {
  std::optional<DType> dtype = {};  ///< none: int64 from integers, else float32
  Device device = default_device();
};
/// Options that say one thing alone: `arange(5, "cuda")`.
template <TensorOption T>
ArangeOptions arange_options(T option) {
  if constexpr (std::same_as<T, DType>)
    return {.dtype = option};
  else
    return {.device = option};
}
/// start, start + step, ... below `end`. Throws ValueError when step is 0 or leads away from `end`, or
/// the type cannot hold an element.
Tensor arange(Number start, Number end, Number step = 1, ArangeOptions options = {});
inline Tensor arange(Number end, ArangeOptions options = {}) { return arange(0, end, 1, options); }
inline Tensor arange(Number start, Number end, ArangeOptions options) {
  return arange(start, end, 1, options);
}
/// `count` values from `start` to `end`, both included. Throws ValueError unless both are finite, fit the
/// type and count >= 1.
Tensor linspace(Real start, Real end, Integer count, TensorOptions options = {});
/// Ones on the diagonal.
Tensor eye(Integer rows, TensorOptions options = {});
Tensor eye(Integer rows, Integer columns, TensorOptions options = {});

/// Of a list, for which std::empty(list) would be as good as the first.
template <ListOf<Integer> R>
Tensor empty(const R& shape) {
  return empty(Sizes(shape), TensorOptions{});
}

// The same with one option. Templates, which `{}` does not fit.
template <TensorOption T>
Tensor empty(Sizes shape, T option) {
  return empty(std::move(shape), tensor_options(option));
}
template <TensorOption T>
Tensor zeros(Sizes shape, T option) {
  return zeros(std::move(shape), tensor_options(option));
}
template <TensorOption T>
Tensor ones(Sizes shape, T option) {
  return ones(std::move(shape), tensor_options(option));
}
template <TensorOption T>
Tensor full(Sizes shape, Scalar value, T option) {
  return full(std::move(shape), value, tensor_options(option));
}
template <TensorOption T>
Tensor arange(Number end, T option) {
  return arange(end, arange_options(option));
}
template <TensorOption T>
Tensor arange(Number start, Number end, T option) {
  return arange(start, end, arange_options(option));
}
template <TensorOption T>
Tensor arange(Number start, Number end, Number step, T option) {
  return arange(start, end, step, arange_options(option));
}
template <TensorOption T>
Tensor linspace(Real start, Real end, Integer count, T option) {
  return linspace(start, end, count, tensor_options(option));
}
template <TensorOption T>
Tensor eye(Integer rows, T option) {
  return eye(rows, tensor_options(option));
}
template <TensorOption T>
Tensor eye(Integer rows, Integer columns, T option) {
  return eye(rows, columns, tensor_options(option));
}

/// A copy of `values`, row-major.
/// Throws ShapeError when shape and number of values disagree.
template <Element T>
Tensor from_span(std::span<const T> values, Sizes shape, Device device = default_device());
template <Element T>
Tensor from_vector(const std::vector<T>& values, Sizes shape, Device device = default_device()) {
  return from_span(std::span<const T>(values), std::move(shape), device);
}
template <Element T>
Tensor from_vector(const std::vector<T>& values) {
  return from_vector(values, values.size());
}
Tensor from_vector(const std::vector<bool>& values, Sizes shape, Device device = default_device());
/// A tensor over the caller's memory, which stays valid while `owner` exists (or for ever when null).
/// Strides in elements; empty means row-major.
Tensor from_memory(void* data, Sizes shape, DType dtype, std::shared_ptr<void> owner = nullptr,
                   Strides strides = {});

namespace detail {
Tensor from_numbers(std::span<const double> values, Shape shape, DType dtype);
Tensor from_numbers(std::span<const int64_t> values, Shape shape, DType dtype);

/// What can be read one after another, but for what consists of its like, as a path does.
template <class T>
concept List = requires(const T& list) {
  std::end(list);
  requires !std::same_as<std::remove_cvref_t<decltype(*std::begin(list))>, T>;
};
template <class T>
concept NoNumbers = !List<T> && !std::convertible_to<T, Scalar>;
/// What a list is made of, at its innermost level.
template <class T>
struct Innermost {
  using type = T;
};
template <List T>
struct Innermost<T> : Innermost<std::remove_cvref_t<decltype(*std::begin(std::declval<const T&>()))>> {};

/// Appends the elements of nested lists to `values` and finds the shape; throws ShapeError on uneven lists.
template <class T, class V>
void flatten(const T& value, std::size_t level, Shape& shape, std::vector<V>& values) {
  if constexpr (List<T>) {
    const auto length = static_cast<int64_t>(std::distance(std::begin(value), std::end(value)));
    if (shape.size() == level) shape.push_back(length);
    if (shape[level] != length)
      throw ShapeError("tensor: lists of one level must be equally long, got " +
                       std::to_string(shape[level]) + " and " + std::to_string(length));
    for (const auto& item : value) flatten(item, level + 1, shape, values);
  } else if constexpr (IntegerType<T>) {
    values.push_back(Integer(value));
  } else if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>) {
    values.push_back(static_cast<float>(value));
  } else {
    values.push_back(static_cast<V>(value));
  }
}
template <class Values>
Tensor from_lists(const Values& list, std::optional<DType> dtype) {
  using T = typename Innermost<Values>::type;
  constexpr bool known = NumberType<T> || Element<T>;
  static_assert(known,
                "tensor: takes numbers and bools, and lists of them in any depth; several tensors are joined "
                "by stack or cat, and one is copied by clone");
  if constexpr (known) {
    constexpr DType natural = !std::integral<T> ? float32 : std::same_as<T, bool> ? boolean : int64;
    Shape shape;
    std::vector<std::conditional_t<std::integral<T>, int64_t, double>> values;
    flatten(list, 0, shape, values);
    return from_numbers(values, std::move(shape), dtype.value_or(natural));
  } else {
    return {};
  }
}
}  // namespace detail

/// Tensors of numbers that are there: `tensor({1.5, 2.5})`, `tensor({{1, 2}, {3, 4}})`, up to four levels, or
/// a std::vector, std::array, std::span ... of numbers, or one of such lists, in any depth. Floating numbers
/// give float32, integers int64 and bools bool, unless a dtype is given (`from_vector` keeps their type);
/// braces may mix integers and floating numbers in up to two levels. Throws ShapeError when lists of one
/// level differ in length, ValueError when the type cannot hold a value.
// Written out, because Clang 14 deduces no T through an alias of std::initializer_list.
template <class T>
Tensor tensor(std::initializer_list<T> values, std::optional<DType> dtype = {}) {
  return detail::from_lists(values, dtype);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, std::optional<DType> dtype = {}) {
  return detail::from_lists(rows, dtype);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes,
              std::optional<DType> dtype = {}) {
  return detail::from_lists(planes, dtype);
}
template <class T>
Tensor tensor(
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>> blocks,
    std::optional<DType> dtype = {}) {
  return detail::from_lists(blocks, dtype);
}

template <detail::List T>
Tensor tensor(const T& values, std::optional<DType> dtype = {}) {
  return detail::from_lists(values, dtype);
}
Tensor tensor(std::initializer_list<Number> values, std::optional<DType> dtype = {});
Tensor tensor(std::initializer_list<std::initializer_list<Number>> rows, std::optional<DType> dtype = {});

/// A tensor of rank 0: bool, int64 or float32 by the category of the number, unless a dtype is given.
Tensor scalar(Scalar value);
Tensor scalar(Scalar value, DType dtype);
/// The same: `tensor(3.0)`, `tensor(true)`.
template <class T>
requires std::convertible_to<T, Scalar> Tensor tensor(T value) { return scalar(value); }
template <class T>
requires std::convertible_to<T, Scalar> Tensor tensor(T value, DType dtype) { return scalar(value, dtype); }
/// Nothing else: says so, where g++ would list all of the above.
template <detail::NoNumbers T, class... Rest>
Tensor tensor(const T& value, const Rest&...) {
  return detail::from_lists(value, {});
}

}  // namespace pleat
