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

/// Reads the fields of a message from outside the program one after the other:
///
///   for (Reader field(bytes, where); field.next();)
///     if (field.number() == 1) name = field.bytes();
///
/// Throws FileError, beginning with `where`, for a message that is cut off or of no valid form, and for a
/// field that is read as what it is not.
class Reader {
 public:
  Reader(std::string_view message, std::string where) : rest_(message), where_(std::move(where)) {}

  /// Goes to the next field; false at the end.
  bool next();
  int number() const { return number_; }
  int64_t integer() const;
  float float_number() const;
  /// A text, bytes or a message.
  std::string_view bytes() const;
  /// Appends a repeated field: numbers, packed or one alone.
  void append(std::vector<int64_t>& values) const;
  void append(std::vector<float>& values) const;
  void append(std::vector<double>& values) const;

  [[noreturn]] void fail(const std::string& cause) const;

 private:
  enum Kind : int { varint = 0, eight_bytes = 1, length = 2, four_bytes = 5 };
  uint64_t take_varint(std::string_view& from) const;
  template <class Number>
  void append_fixed(std::vector<Number>& values, Kind alone) const;

  std::string_view rest_;
  std::string where_;
  int number_ = 0;
  int kind_ = varint;
  uint64_t value_ = 0;      ///< of a varint
  std::string_view bytes_;  ///< of the others
};

}  // namespace pleat::protobuf
