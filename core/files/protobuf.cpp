#include "pleat/core/files/protobuf.h"

#include <bit>

namespace pleat::protobuf {
namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(int field, int wire_type) { return varint(static_cast<uint64_t>(field << 3 | wire_type)); }

}  // namespace

std::string integer_field(int field, int64_t value) {
  return key(field, 0) + varint(std::bit_cast<uint64_t>(value));
}

std::string double_field(int field, double value) {
  return key(field, 1) + little_endian(std::bit_cast<uint64_t>(value));
}

std::string float_field(int field, float value) {
  return key(field, 5) + little_endian(std::bit_cast<uint32_t>(value));
}

std::string bytes_field(int field, std::string_view value) {
  std::string bytes = key(field, 2) + varint(value.size());
  bytes.reserve(bytes.size() + value.size());
  return bytes.append(value);
}

std::string doubles_field(int field, const std::vector<double>& values) {
  std::string packed;
  for (const double value : values) packed += little_endian(std::bit_cast<uint64_t>(value));
  return bytes_field(field, packed);
}

std::string integers_field(int field, const std::vector<int64_t>& values) {
  std::string packed;
  for (const int64_t value : values) packed += varint(std::bit_cast<uint64_t>(value));
  return bytes_field(field, packed);
}

}  // namespace pleat::protobuf
