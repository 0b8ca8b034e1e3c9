#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "pleat/core/base/format.h"
#include "pleat/io/safetensors_header.h"

namespace pleat::io {
namespace {

using As = SafetensorsType::As;

// The codes of a small floating type that are not finite numbers.
enum class Special {
  none,       // all are finite (F4)
  ieee,       // the largest exponent: infinities and NaN
  last,       // NaN where exponent and mantissa are all ones ("fn")
  minus_zero  // NaN in the place of -0 ("fnuz")
};

template <int exponent_bits, int mantissa_bits, int bias, Special special>
std::array<float, 1 << (1 + exponent_bits + mantissa_bits)> float_values() {
  std::array<float, 1 << (1 + exponent_bits + mantissa_bits)> values{};
  constexpr int most_exponent = (1 << exponent_bits) - 1, most_mantissa = (1 << mantissa_bits) - 1;
  for (int code = 0; code < static_cast<int>(values.size()); ++code) {
    const int mantissa = code & most_mantissa, exponent = code >> mantissa_bits & most_exponent;
    const bool negative = code >> (mantissa_bits + exponent_bits) != 0;
    // An exponent of 0 means subnormal numbers.
    float value = std::ldexp(static_cast<float>(mantissa + (exponent > 0 ? most_mantissa + 1 : 0)),
                             std::max(exponent, 1) - bias - mantissa_bits);
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    if (special == Special::ieee && exponent == most_exponent)
      value = mantissa == 0 ? std::numeric_limits<float>::infinity() : nan;
    if (special == Special::last && exponent == most_exponent && mantissa == most_mantissa) value = nan;
    if (special == Special::minus_zero && negative && exponent == 0 && mantissa == 0) value = nan;
    values[static_cast<std::size_t>(code)] = negative ? -value : value;
  }
  return values;
}

// Powers of two, the scales of block formats.
std::array<float, 256> power_values() {
  std::array<float, 256> values{};
  for (int code = 0; code < 255; ++code)
    values[static_cast<std::size_t>(code)] = std::ldexp(1.0F, code - 127);
  values[255] = std::numeric_limits<float>::quiet_NaN();
  return values;
}

SafetensorsType plain(std::string_view name, char kind, int bytes, DType dtype) {
  return {name, 8 * bytes, As::stored, {kind, static_cast<std::size_t>(bytes), false, dtype}};
}

SafetensorsType small_float(std::string_view name, int bits, const float* values) {
  return {name, bits, As::float_code, {'f', 0, false, float32}, values};
}

const auto& types() {
  // OCP 8-bit floating point and microscaling formats; the fnuz types as in ONNX and PyTorch.
  static const auto e4m3 = float_values<4, 3, 7, Special::last>();
  static const auto e5m2 = float_values<5, 2, 15, Special::ieee>();
  static const auto e4m3fnuz = float_values<4, 3, 8, Special::minus_zero>();
  static const auto e5m2fnuz = float_values<5, 2, 16, Special::minus_zero>();
  static const auto e2m1 = float_values<2, 1, 1, Special::none>();
  static const auto e8m0 = power_values();
  static const std::array all = {
      plain("BOOL", 'b', 1, boolean), plain("U8", 'u', 1, uint8), plain("I8", 'i', 1, int32),
      plain("U16", 'u', 2, int32), plain("I16", 'i', 2, int32), plain("U32", 'u', 4, int64),
      plain("I32", 'i', 4, int32), plain("U64", 'u', 8, int64), plain("I64", 'i', 8, int64),
      plain("F16", 'f', 2, float16), plain("BF16", 'f', 2, bfloat16), plain("F32", 'f', 4, float32),
      plain("F64", 'f', 8, float64), small_float("F8_E4M3", 8, e4m3.data()),
      small_float("F8_E5M2", 8, e5m2.data()), small_float("F8_E8M0", 8, e8m0.data()),
      small_float("F8_E4M3FNUZ", 8, e4m3fnuz.data()), small_float("F8_E5M2FNUZ", 8, e5m2fnuz.data()),
      small_float("F4", 4, e2m1.data()), SafetensorsType{"C64", 64, As::complex, {'f', 4, false, float32}},
      // The format does not define how six bits are packed into bytes.
      SafetensorsType{"F6_E2M3", 6, As::bytes, {'u', 1, false, uint8}},
      SafetensorsType{"F6_E3M2", 6, As::bytes, {'u', 1, false, uint8}}};
  return all;
}

}  // namespace

DType SafetensorsType::dtype() const { return stored.dtype; }

std::string SafetensorsType::conversion() const {
  if (as == As::complex)
    return fmt::format("{} to float32, with a last dimension of 2 for real and imaginary parts", name);
  if (as == As::bytes)
    return fmt::format("{} to uint8: its packed bytes in one dimension, since nothing here computes with it",
                       name);
  const bool kept = as == As::stored && stored.size == static_cast<std::size_t>(size_of(stored.dtype)) &&
                    (stored.kind != 'u' || stored.dtype == uint8);
  return kept ? "" : fmt::format("{} to {}", name, dtype());
}

const SafetensorsType* find_safetensors_type(std::string_view name) {
  const auto found = std::ranges::find(types(), name, &SafetensorsType::name);
  return found == types().end() ? nullptr : &*found;
}

std::string_view safetensors_type_name(DType dtype) {
  return std::ranges::find_if(types(),
                              [&](const SafetensorsType& type) {
                                return type.as == As::stored && type.dtype() == dtype &&
                                       type.conversion().empty();
                              })
      ->name;
}

Shape SafetensorsEntry::result_shape() const {
  if (type->as == As::bytes) return {static_cast<int64_t>(end - begin)};
  Shape result = shape;
  if (type->as == As::complex) result.push_back(2);
  return result;
}

int64_t SafetensorsEntry::result_bytes() const { return count(result_shape()) * size_of(type->dtype()); }

}  // namespace pleat::io
