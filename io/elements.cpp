#include "pleat/io/elements.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "pleat/core/base/format.h"

namespace pleat::io {
namespace {

template <class T>
void swap_bytes(std::span<std::byte> bytes) {
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + sizeof(T)));
  }
}

void swap_bytes(std::span<std::byte> bytes, std::size_t size) {
  if (size == 2) swap_bytes<uint16_t>(bytes);
  if (size == 4) swap_bytes<uint32_t>(bytes);
  if (size == 8) swap_bytes<uint64_t>(bytes);
}

// Elements of type From in the file, widened to To.
template <class From, class To>
void read_widened(ByteSource& source, const StoredType& type, std::span<To> out) {
  constexpr std::size_t piece = 1 << 14;
  std::vector<From> buffer(std::min(piece, out.size()));
  for (std::size_t done = 0; done < out.size();) {
    const auto part = std::span(buffer).first(std::min(piece, out.size() - done));
    const int64_t start = source.position();
    source.read_exactly(std::as_writable_bytes(part), "the array");
    if (type.swap) swap_bytes(std::as_writable_bytes(part), sizeof(From));
    for (std::size_t i = 0; i < part.size(); ++i, ++done) {
      if constexpr (sizeof(From) == sizeof(To) && !std::is_same_v<From, To>) {
        if (part[i] > static_cast<From>(std::numeric_limits<To>::max())) {
          source.fail_at(start + static_cast<int64_t>(i * sizeof(From)),
                         fmt::format("{} is too large for int64, the type that uint64 is read as", part[i]));
        }
      }
      out[done] = static_cast<To>(part[i]);
    }
  }
}

}  // namespace

void read_elements(ByteSource& source, const StoredType& type, std::byte* to, std::size_t count) {
  if (type.size == static_cast<std::size_t>(size_of(type.dtype)) && type.kind != 'u') {
    const std::span<std::byte> bytes(to, count * type.size);
    source.read_exactly(bytes, "the array");
    if (type.swap) swap_bytes(bytes, type.size);
    // Any byte but 0 is true; a C++ bool must not hold another one than 1.
    if (type.dtype == boolean) {
      for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
    }
    return;
  }
  const std::span<int32_t> int32s(reinterpret_cast<int32_t*>(to), count);
  const std::span<int64_t> int64s(reinterpret_cast<int64_t*>(to), count);
  switch (type.size) {
    case 1:
      if (type.kind == 'u') return source.read_exactly({to, count}, "the array");
      return read_widened<int8_t>(source, type, int32s);
    case 2:
      if (type.kind == 'u') return read_widened<uint16_t>(source, type, int32s);
      return read_widened<int16_t>(source, type, int32s);
    case 4:
      return read_widened<uint32_t>(source, type, int64s);
    default:
      return read_widened<uint64_t>(source, type, int64s);
  }
}

}  // namespace pleat::io
