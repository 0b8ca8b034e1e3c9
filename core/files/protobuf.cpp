#include "pleat/core/files/protobuf.h"

#include <bit>
#include <cstring>

#include "pleat/core/base/error.h"

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

void Reader::fail(const std::string& cause) const { throw FileError(where_ + ": " + cause); }

uint64_t Reader::take_varint(std::string_view& from) const {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (from.empty()) fail("a number is cut off");
    const auto byte = static_cast<uint8_t>(from.front());
    from.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail("a number has more than 64 bits");
}

bool Reader::next() {
  if (rest_.empty()) return false;
  const uint64_t key = take_varint(rest_);
  kind_ = static_cast<int>(key & 7);
  if (key >> 3 == 0 || key >> 3 > 0x1FFFFFFF) fail("a field has no valid number");
  number_ = static_cast<int>(key >> 3);
  uint64_t size = 0;
  if (kind_ == varint)
    value_ = take_varint(rest_);
  else if (kind_ == length)
    size = take_varint(rest_);
  else if (kind_ == eight_bytes || kind_ == four_bytes)
    size = kind_ == eight_bytes ? 8 : 4;
  else
    fail("a field has a type that is not known");
  if (size > rest_.size()) fail("a field is cut off");
  bytes_ = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

int64_t Reader::integer() const {
  if (kind_ != varint) fail("field " + std::to_string(number_) + " should be an integer");
  return std::bit_cast<int64_t>(value_);
}

float Reader::float_number() const {
  if (kind_ != four_bytes) fail("field " + std::to_string(number_) + " should be a float");
  float value = 0;
  std::memcpy(&value, bytes_.data(), sizeof value);
  return value;
}

std::string_view Reader::bytes() const {
  if (kind_ != length) fail("field " + std::to_string(number_) + " should be a text or a message");
  return bytes_;
}

void Reader::append(std::vector<int64_t>& values) const {
  if (kind_ == varint) return values.push_back(integer());
  for (std::string_view rest = bytes(); !rest.empty();)
    values.push_back(std::bit_cast<int64_t>(take_varint(rest)));
}

template <class Number>
void Reader::append_fixed(std::vector<Number>& values, Kind alone) const {
  if ((kind_ != alone && kind_ != length) || bytes_.size() % sizeof(Number) != 0)
    fail("field " + std::to_string(number_) + " should be a list of numbers");
  const std::size_t before = values.size();
  values.resize(before + bytes_.size() / sizeof(Number));
  if (!bytes_.empty()) std::memcpy(values.data() + before, bytes_.data(), bytes_.size());
}

void Reader::append(std::vector<float>& values) const { append_fixed(values, four_bytes); }
void Reader::append(std::vector<double>& values) const { append_fixed(values, eight_bytes); }

}  // namespace pleat::protobuf
