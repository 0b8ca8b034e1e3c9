#include "number.h"

#include <cmath>
#include <limits>

namespace cuda_double {
namespace {

template <class T>
T read(const void* memory, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(memory) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void write(void* memory, int64_t index, T value) {
  std::memcpy(static_cast<char*>(memory) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

double from_half(uint16_t bits) {
  const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

uint16_t to_half(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return 0x7e00;
  const double size = std::fabs(value);
  if (size >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  if (size < std::ldexp(1, -14))
    return static_cast<uint16_t>(sign | static_cast<int>(std::nearbyint(std::ldexp(size, 24))));
  int exponent = 0;
  const double part = std::frexp(size, &exponent);  // in [0.5, 1)
  // A fraction that rounds up to 2048 carries into the exponent by itself.
  return static_cast<uint16_t>(sign + ((exponent + 13) << 10) +
                               static_cast<int>(std::nearbyint(std::ldexp(part, 11))));
}

uint16_t to_bfloat16(double value) {
  const auto single = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  if (std::isnan(single)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double from_bfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

double read_number(Type type, const void* memory, int64_t index) {
  switch (type) {
    case Type::f64:
      return read<double>(memory, index);
    case Type::f32:
      return static_cast<double>(read<float>(memory, index));
    case Type::f16:
      return from_half(read<uint16_t>(memory, index));
    case Type::bf16:
      break;
  }
  return from_bfloat16(read<uint16_t>(memory, index));
}

void write_number(Type type, void* memory, int64_t index, double value) {
  switch (type) {
    case Type::f64:
      return write(memory, index, value);
    case Type::f32:
      return write(memory, index, static_cast<float>(value));
    case Type::f16:
      return write(memory, index, to_half(value));
    case Type::bf16:
      break;
  }
  write(memory, index, to_bfloat16(value));
}

double rounded_to_bits(double value, int mantissa_bits) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  const double part = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(part, mantissa_bits + 1)), exponent - mantissa_bits - 1);
}

}  // namespace cuda_double
