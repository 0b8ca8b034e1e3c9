#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "pleat/core/base/small_vector.h"

/// Types of arguments that are only what they say. C++ would turn a bool, a character or a pointer into a
/// number and a number into a bool, so that `softmax(x, true)` were softmax(x, 1) and `sum(x, 0, 1)` were
/// sum(x, 0, true); these refuse that when compiling.
///
/// None has a constructor that takes a std::initializer_list: with one beside it g++ 12 passes the values of
/// a designated initialiser to the other constructors, and `norm(x, {.p = 1})` were norm(x, 1).

namespace pleat {

namespace detail {
template <class T, class... U>
concept OneOf = (std::same_as<T, U> || ...);
/// Throws ValueError: the number does not fit int64.
[[noreturn]] void fail_integer(uint64_t value);
/// Throws ValueError: float64 has no such number.
[[noreturn]] void fail_real(bool negative, uint64_t size);
}  // namespace detail

/// An integer type that holds numbers; bool and the types of characters do not.
template <class T>
concept IntegerType =
    std::integral<T> && !detail::OneOf<T, bool, char, wchar_t, char8_t, char16_t, char32_t> &&
    sizeof(T) <= sizeof(int64_t);

/// A type of plain numbers.
template <class T>
concept NumberType = IntegerType<T> || std::floating_point<T>;

namespace detail {
// Classes that convert to a number, as Required<double> does. Braces refuse what converts to bool alone.
template <class T>
concept ClassOfReal = std::is_class_v<T> && requires(const T& t) {
  double{t};
};
template <class T>
concept ClassOfInteger = std::is_class_v<T> && requires(const T& t) {
  int64_t{t};
} &&(ClassOfReal<T> || !requires(const T& t) { bool{t}; });
}  // namespace detail

/// An integer: a dimension, an index, a length. Throws ValueError for one above 2^63 - 1.
class Integer {
 public:
  template <IntegerType T>
  constexpr Integer(T value) : value_(static_cast<int64_t>(value)) {
    if (!std::in_range<int64_t>(value)) detail::fail_integer(static_cast<uint64_t>(value));
  }
  template <detail::ClassOfInteger T>
  constexpr Integer(const T& value) : value_(value) {}
  constexpr operator int64_t() const { return value_; }

 private:
  int64_t value_;
};

/// A real number: a probability, a slope. Throws ValueError for an integer that float64 would round: one of
/// more than 53 bits, not counting zeros at the end.
class Real {
 public:
  template <NumberType T>
  constexpr Real(T value) : value_(static_cast<double>(value)) {
    if constexpr (std::integral<T>) {
      const uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
      if (std::bit_width(size) - (size == 0 ? 0 : std::countr_zero(size)) > 53)
        detail::fail_real(value < 0, size);
    }
  }
  template <detail::ClassOfReal T>
  constexpr Real(const T& value) : value_(value) {}
  constexpr operator double() const { return value_; }

 private:
  double value_;
};

/// Yes or no: no number, no pointer.
class Flag {
 public:
  template <std::same_as<bool> T>
  constexpr Flag(T value) : value_(value) {}
  constexpr operator bool() const { return value_; }

 private:
  bool value_;
};

/// What stands in one piece of memory and can be read as a list of T: a vector, an array, a span.
template <class R, class T>
concept ListOf = requires(R& each) {
  std::size(each);
  { *std::data(each) } -> std::convertible_to<T>;
};

/// One number or several: `1`, `{0, 2}`, a vector, array or span. Each is taken as an Argument.
template <class Argument, class Value, class Vector>
class ArgumentList : public Vector {
 public:
  ArgumentList() = default;
  template <std::convertible_to<Argument>... T>
  requires(sizeof...(T) > 0) ArgumentList(T... each) : Vector({Value{Argument(each)}...}) {}
  template <ListOf<Argument> R>
  ArgumentList(R&& each) {
    if constexpr (std::derived_from<R, Vector>) {
      Vector::operator=(std::move(each));
    } else {
      this->reserve(std::size(each));
      for (const auto value : each) this->push_back(Argument(value));
    }
  }

  const Vector& values() const { return *this; }
};

using IntegerList = ArgumentList<Integer, int64_t, SmallVector<int64_t, 6>>;
using RealList = ArgumentList<Real, double, std::vector<double>>;

}  // namespace pleat
