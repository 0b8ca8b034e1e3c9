#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "pleat/core/base/argument.h"

namespace pleat {

/// An option that has no default: an aggregate in which it was left out does not compile
/// ("use of deleted function Required<...>::Required()").
template <class T>
class Required {
  /// What a value of T is given as.
  using Argument = std::conditional_t<
      std::same_as<T, bool>, Flag,
      std::conditional_t<std::integral<T>, Integer, std::conditional_t<std::floating_point<T>, Real, T>>>;

 public:
  Required() = delete;  // the call leaves out an option that has no default: name it
  template <class U>
  requires(std::convertible_to<U, Argument> && !std::same_as<std::remove_cvref_t<U>, Required>)
      Required(U&& value)
      : value_(Argument(std::forward<U>(value))) {}
  /// `.kernel_size = {3, 5}`
  template <std::convertible_to<Integer>... U>
  requires(sizeof...(U) > 1 && std::constructible_from<Argument, U...>) Required(U... each)
      : value_(Argument(each...)) {}

  const T& get() const { return value_; }
  operator const T&() const { return value_; }

 private:
  T value_;
};

}  // namespace pleat
