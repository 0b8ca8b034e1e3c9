#include <cerrno>
#include <cstdint>
#include <cstring>
#include <cwchar>

/// What programs with Pleat call as mbrtowc (cmake/system.cmake): in std::string it finds UTF-8. libstdc++
/// makes std::filesystem::path of one by this function, and of the path a std::string of UTF-8 again; that of
/// Windows' older C library takes each byte for a character.
extern "C" std::size_t __wrap_mbrtowc(wchar_t* to, const char* from, std::size_t size,
                                      std::mbstate_t* state) {
  constexpr std::size_t wrong = -1, part = -2;
  static thread_local std::mbstate_t own{};
  if (state == nullptr) state = &own;
  if (from == nullptr) return 0;
  if (size == 0) return part;
  wchar_t ignored = 0;
  wchar_t& unit = to != nullptr ? *to : ignored;
  const auto byte = [&](std::size_t i) { return static_cast<uint8_t>(from[i]); };
  // A character outside of the first 65,536 is two units; the second comes with the last byte.
  uint16_t second = 0;
  std::memcpy(&second, state, sizeof second);
  std::memset(state, 0, sizeof *state);
  if (second != 0) {
    unit = second;
    return 1;
  }
  if (byte(0) < 0x80) {
    unit = byte(0);
    return unit != 0 ? 1 : 0;
  }
  const std::size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  uint32_t code = byte(0) & (0xFF >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (i == size) return part;
    if ((byte(i) & 0xC0) != 0x80) code = UINT32_MAX;
    if (code != UINT32_MAX) code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t least[] = {0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (byte(0) < 0xC0 || byte(0) >= 0xF8 || code < least[length - 2] || code > 0x10FFFF || surrogate) {
    errno = EILSEQ;
    return wrong;
  }
  if (length < 4) {
    unit = static_cast<wchar_t>(code);
    return length;
  }
  code -= 0x10000;
  unit = static_cast<wchar_t>(0xD800 | code >> 10);
  second = static_cast<uint16_t>(0xDC00 | (code & 0x3FF));
  std::memcpy(state, &second, sizeof second);
  return length - 1;
}
