#include "pleat/core/tensor/fits.h"

#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "pleat/core/base/format.h"

namespace pleat {
namespace {

template <class T>
constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T>
bool fits_type(const Number& number) {
  if constexpr (std::is_same_v<T, bool>) {
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (number.kind() != float64) {
      const auto value = number.to<int64_t>();
      return value >= int64_t{Limits::min()} && value <= int64_t{Limits::max()};
    }
    // Ends as powers of two, which doubles have exactly; the upper one is one above the largest.
    const double whole = std::trunc(number.to<double>());
    return whole >= static_cast<double>(Limits::min()) &&
           whole < 2 * static_cast<double>(Limits::max() / 2 + 1);
  } else {
    const auto value = number.to<double>();
    double stored;
    if constexpr (is_half_type<T>)
      stored = static_cast<double>(static_cast<float>(T(static_cast<float>(value))));
    else
      stored = static_cast<double>(static_cast<T>(value));
    return std::isfinite(stored) || !std::isfinite(value);
  }
}

std::string range_of(DType dtype) {
  switch (dtype) {
    case uint8:
      return "0 to 255";
    case int32:
      return "-2^31 to 2^31 - 1";
    case int64:
      return "-2^63 to 2^63 - 1";
    case float16:
      return "up to 65504";
    default:
      return "up to about 3.4e38";
  }
}

}  // namespace

std::string text_of(const Number& value) {
  return value.kind() == float64 ? fmt::format("{}", value.to<double>())
                                 : fmt::format("{}", value.to<int64_t>());
}

bool fits(const Number& number, DType dtype) {
  return dispatch(dtype, [&]<class T>(Type<T>) { return fits_type<T>(number); });
}

void check_fits(const char* op, const Number& number, DType dtype) {
  if (fits(number, dtype)) return;
  fail<ValueError>("{}: {} does not fit {} ({}); use a type that holds it, for instance {}", op, number,
                   dtype, range_of(dtype),
                   number.kind() != float64 ? "int64: x.to(int64)"
                   : is_floating(dtype)     ? "float64: x.to(float64)"
                                            : "float32: x.to(float32)");
}

}  // namespace pleat
