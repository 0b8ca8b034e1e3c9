#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace pleat {

/// An option that has no default: an aggregate in which it was left out does not compile
/// ("use of deleted function Required<...>::Required()").
template <class T>
class Required {
 public:
  Required() = delete;
  template <class U>
  requires(std::convertible_to<U, T> && !std::same_as<std::remove_cvref_t<U>, Required> &&
           !(std::integral<T> && std::floating_point<std::remove_cvref_t<U>>)) Required(U&& value)
      : value_(std::forward<U>(value)) {}
  /// `.kernel_size = {3, 5}`
  Required(std::initializer_list<int64_t> values) requires std::constructible_from<T, std::vector<int64_t>>
      : value_(std::vector<int64_t>(values)) {}

  const T& get() const { return value_; }
  operator const T&() const { return value_; }

 private:
  T value_;
};

}  // namespace pleat
