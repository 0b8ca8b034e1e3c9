// Private header: not installed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Fields of messages in protobuf's wire format (https://protobuf.dev/programming-guides/encoding). A message
/// is its fields one after the other.

namespace pleat::protobuf {

/// The bytes of a number, the lowest first.
template <class Number>
std::string little_endian(Number value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

std::string integer_field(int field, int64_t value);
std::string double_field(int field, double value);
std::string float_field(int field, float value);
/// A text, bytes or a message.
std::string bytes_field(int field, std::string_view value);
/// Repeated numbers, packed.
std::string doubles_field(int field, const std::vector<double>& values);
std::string integers_field(int field, const std::vector<int64_t>& values);

}  // namespace pleat::protobuf
