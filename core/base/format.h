// Private header: not installed.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "pleat/core/base/argument.h"
#include "pleat/core/base/device.h"
#include "pleat/core/base/error.h"

/// Messages: `fail<ShapeError>("conv2d: input has {} channels", c)` and `check<ShapeError>(ok, "...", ...)`.

namespace pleat {

enum class DType : uint8_t;
class Dims;
class Number;
class PerDim;
class Scalar;
class Shape;
class Sizes;
class Tensor;

std::string text_of(DType dtype);
inline std::string text_of(const Device& device) { return name(device); }
std::string text_of(std::span<const int64_t> shape);
inline std::string text_of(Integer value) { return std::to_string(int64_t{value}); }
inline std::string text_of(Real value) { return fmt::format("{}", double{value}); }
/// An integer with all its digits.
std::string text_of(const Number& value);
/// As `describe()` tells it.
std::string text_of(const Tensor& tensor);
/// What a function returns. Give `check` the tensor, the shape or a function rather than a text, which would
/// be made at each call though nothing is wrong.
template <std::invocable F>
std::string text_of(const F& text) {
  return text();
}

/// Writes `text_of(value)` for a plain "{}". By hand, since fmt's own way to do so takes a header that is
/// twice as slow to compile as the one included here.
struct TextFormatter {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class T, class Context>
  auto format(const T& value, Context& context) const {
    const auto text = text_of(value);
    return std::copy(text.begin(), text.end(), context.out());
  }
};

}  // namespace pleat

template <>
struct fmt::formatter<pleat::DType> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::Device> : pleat::TextFormatter {};
template <>
struct fmt::formatter<std::vector<int64_t>> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::IntegerList> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::Dims> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::Shape> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::Sizes> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::PerDim> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::Integer> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::Real> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::Number> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::Scalar> : pleat::TextFormatter {};
template <>
struct fmt::formatter<pleat::Tensor> : pleat::TextFormatter {};
template <std::invocable F>
struct fmt::formatter<F> : pleat::TextFormatter {};

namespace pleat {

template <class E, class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void fail(fmt::format_string<Args...> message, Args&&... args) {
  throw E(fmt::format(message, std::forward<Args>(args)...));
}

template <class E, class... Args>
void check(bool holds, fmt::format_string<Args...> message, Args&&... args) {
  if (!holds) [[unlikely]]
    fail<E>(message, std::forward<Args>(args)...);
}

}  // namespace pleat
