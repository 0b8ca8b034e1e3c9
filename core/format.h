// Private header: not installed.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "pleat/core/error.h"
#include "pleat/core/shape.h"
#include "pleat/core/tensor.h"

/// Messages: `fail<ShapeError>("conv2d: input has {} channels", c)` and `check<ShapeError>(ok, "...", ...)`.

template <>
struct fmt::formatter<pleat::DType> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(pleat::DType dtype, Context& context) const {
    return fmt::formatter<std::string_view>::format(pleat::name(dtype), context);
  }
};

template <>
struct fmt::formatter<pleat::Device> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const pleat::Device& device, Context& context) const {
    return fmt::formatter<std::string_view>::format(pleat::name(device), context);
  }
};

template <>
struct fmt::formatter<pleat::Shape> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const pleat::Shape& shape, Context& context) const {
    return fmt::formatter<std::string_view>::format(pleat::to_string(shape), context);
  }
};

/// A tensor as `describe()` tells it. Give `check` the tensor itself: the text is then made only when it is needed.
template <>
struct fmt::formatter<pleat::Tensor> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const pleat::Tensor& tensor, Context& context) const {
    return fmt::formatter<std::string_view>::format(tensor.describe(), context);
  }
};

namespace pleat {

template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> message, Args&&... args) {
  throw E(fmt::format(message, std::forward<Args>(args)...));
}

template <class E, class... Args>
void check(bool holds, fmt::format_string<Args...> message, Args&&... args) {
  if (!holds) [[unlikely]]
    fail<E>(message, std::forward<Args>(args)...);
}

}  // namespace pleat
