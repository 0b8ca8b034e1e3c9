#include "pleat/tests/cuda_double/ptx/module.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

#include "pleat/tests/cuda_double/finding.h"
#include "pleat/tests/cuda_double/ptx/opcode.h"

namespace cuda_double::ptx {
namespace {

/// As nvcc registers it, and what that leads to: a head, then parts with a head each.
struct Registered {
  uint32_t magic, version;
  const std::byte* data;
};
struct Head {
  uint32_t magic;
  uint16_t version, bytes;
  uint64_t all;
};
struct PartHead {
  uint16_t kind, attributes;
  uint32_t bytes;  // of the head
  uint64_t size;
  uint32_t packed, unused;  // bytes, if it is packed
  uint16_t minor, major;
  uint32_t architecture, name_at, name_bytes;
  uint64_t flags;
  uint64_t reserved, plain;  // bytes that packed ones become
};
constexpr uint32_t registered_magic = 0x466243b1, head_magic = 0xba55ed50;
constexpr uint16_t ptx_kind = 1;
constexpr uint64_t packed_by_lz4 = 0x2000, packed_by_zstd = 0x8000;

template <class T>
T read(const std::byte* from) {
  T result;
  std::memcpy(&result, from, sizeof result);
  return result;
}

/// What a library for compression makes of packed text. It is loaded here: nothing but this needs it.
std::string unpacked(const PartHead& part, const char* packed) {
  const bool by_zstd = (part.flags & packed_by_zstd) != 0;
  const char* const name = by_zstd ? "libzstd.so.1" : "liblz4.so.1";
  void* const library = dlopen(name, RTLD_NOW);
  void* const found =
      library == nullptr ? nullptr : dlsym(library, by_zstd ? "ZSTD_decompress" : "LZ4_decompress_safe");
  if (found == nullptr)
    finding(std::string("PTX: nvcc has packed it, and ") + name + " is not there; give nvcc --no-compress");
  std::string text(part.plain, '\0');
  std::size_t size = 0;
  if (by_zstd)
    size = reinterpret_cast<std::size_t (*)(void*, std::size_t, const void*, std::size_t)>(found)(
        text.data(), text.size(), packed, part.packed);
  else
    size = static_cast<std::size_t>(reinterpret_cast<int (*)(const char*, char*, int, int)>(found)(
        packed, text.data(), static_cast<int>(part.packed), static_cast<int>(text.size())));
  if (size != text.size()) finding(std::string("PTX: ") + name + " cannot unpack it");
  text.resize(std::strlen(text.c_str()));
  return text;
}

/// Where variables of all modules are.
std::map<const std::byte*, std::size_t>& all_variables() {
  static auto* result = new std::map<const std::byte*, std::size_t>;
  return *result;
}

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

uint64_t number_of(std::string_view text) { return std::strtoull(std::string(text).c_str(), nullptr, 0); }
/// The bits of an element as an initial value says them.
uint64_t initial_bits(std::string_view text) {
  if (text.starts_with("0f") || text.starts_with("0F") || text.starts_with("0d") || text.starts_with("0D"))
    return std::strtoull(std::string(text.substr(2)).c_str(), nullptr, 16);
  if (!text.empty() && text[0] != '-' && std::isdigit(static_cast<unsigned char>(text[0])) == 0)
    finding("PTX: the initial value " + std::string(text) + " is not a number");
  return number_of(text);
}

}  // namespace

std::string without_comments(std::string text) {
  std::size_t at = 0;
  while ((at = text.find('/', at)) != std::string::npos) {
    std::size_t end = at + 1;
    if (text.compare(at, 2, "//") == 0)
      end = std::min(text.find('\n', at), text.size());
    else if (text.compare(at, 2, "/*") == 0)
      end = std::min(text.find("*/", at), text.size() - 2) + 2;
    if (end > at + 1)
      std::replace_if(
          text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end),
          [](char c) { return c != '\n'; }, ' ');
    at = end;
  }
  return text;
}

Declaration declaration(std::string_view text) {
  Declaration result;
  const std::size_t equals = text.find('=');
  if (equals != std::string_view::npos) {
    result.initial = trimmed(text.substr(equals + 1));
    text = text.substr(0, equals);
  }
  text = trimmed(text);
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    const std::size_t end =
        std::min(std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_space),
                 text.end()) -
        text.begin();
    const std::string_view word = text.substr(at, end - at);
    at = end;
    if (word == ".align") {
      while (is_space(text[at])) ++at;
      result.alignment = number_of(text.substr(at));
      while (at < text.size() && !is_space(text[at])) ++at;
    } else if (word[0] != '.') {
      result.name = word;
    } else if (const unsigned bytes = size_of(type_named(word.substr(1))); bytes > 0) {
      result.element = bytes;
    }
  }
  result.alignment = std::max(result.alignment, result.element);
  while (result.name.ends_with(']')) {
    const std::size_t bracket = result.name.rfind('[');
    const std::string_view inside = result.name.substr(bracket + 1, result.name.size() - bracket - 2);
    result.open = result.open || inside.empty();
    result.count *= inside.empty() ? 0 : number_of(inside);
    result.name.remove_suffix(result.name.size() - bracket);
  }
  return result;
}

std::string Module::text_of(const void* fat_binary) {
  const auto registered = read<Registered>(static_cast<const std::byte*>(fat_binary));
  const auto head = read<Head>(registered.data);
  if (registered.magic != registered_magic || head.magic != head_magic)
    finding("PTX: this is not what nvcc registers");
  for (const std::byte* at = registered.data + head.bytes; at < registered.data + head.bytes + head.all;) {
    const auto part = read<PartHead>(at);
    const auto* const text = reinterpret_cast<const char*>(at + part.bytes);
    if (part.kind == ptx_kind) {
      if ((part.flags & (packed_by_lz4 | packed_by_zstd)) != 0) return unpacked(part, text);
      return std::string(text, strnlen(text, part.size));
    }
    at += part.bytes + part.size;
  }
  finding("PTX: what nvcc registers has none");
}

Module::Module(std::string text) : text_(without_comments(std::move(text))) {
  const std::string_view all = text_;
  for (std::size_t at = 0; at < all.size();) {
    if (is_space(all[at])) {
      ++at;
      continue;
    }
    const std::string_view rest = all.substr(at);
    const auto begins = [&](std::string_view word) { return rest.starts_with(word); };
    if (begins(".version") || begins(".target") || begins(".address_size") || begins(".file")) {
      at = std::min(all.find('\n', at), all.size());
      continue;
    }
    // Up to a semicolon, or what belongs to a brace that no value follows.
    std::size_t end = std::min(all.find_first_of(";{=", at), all.size());
    std::size_t body = std::string_view::npos;
    if (end < all.size() && all[end] == '{') {
      body = end - at;
      for (int depth = 0; end < all.size(); ++end) {
        if (all[end] == '{') ++depth;
        if (all[end] == '}' && --depth == 0) break;
      }
    } else {
      end = std::min(all.find(';', end), all.size());
    }
    add_item(all.substr(at, end - at), body);
    at = end + 1;
  }
}

void Module::add_item(std::string_view text, std::size_t body) {
  const std::string_view head = text.substr(0, std::min(body, text.size()));
  const std::size_t entry = head.find(".entry"), func = head.find(".func");
  if (entry == std::string_view::npos && func == std::string_view::npos) return add_variable(text);
  // The name stands before the last list of parameters, or alone.
  std::string_view rest = trimmed(head.substr(entry != std::string_view::npos ? entry + 6 : func + 5));
  if (rest.starts_with('(')) rest = trimmed(rest.substr(rest.find(')') + 1));
  const auto name =
      rest.substr(0, static_cast<std::size_t>(std::find_if(rest.begin(), rest.end(),
                                                           [](char c) { return is_space(c) || c == '('; }) -
                                              rest.begin()));
  Item& item = functions_[name];
  if (body != std::string_view::npos || item.text.empty()) item = {text, body};
}

void Module::add_variable(std::string_view text) {
  const Declaration one = declaration(text);
  if (text.find(".shared") < text.find(one.name)) {
    shared_[one.name] = {one.bytes(), one.alignment, one.open};
    return;
  }
  if (text.find(".global") == std::string_view::npos && text.find(".const") == std::string_view::npos) return;
  auto* const memory = static_cast<std::byte*>(std::calloc(one.bytes() + 64, 1));
  std::byte* const begin = memory + (64 - reinterpret_cast<std::uintptr_t>(memory) % 64) % 64;
  std::string_view values = one.initial;
  if (values.starts_with('{')) values = values.substr(1, values.find('}') - 1);
  for (std::size_t i = 0; !values.empty(); ++i) {
    const std::size_t comma = std::min(values.find(','), values.size());
    const uint64_t word = initial_bits(trimmed(values.substr(0, comma)));
    if (i < one.count) std::memcpy(begin + i * one.element, &word, one.element);
    values.remove_prefix(std::min(comma + 1, values.size()));
  }
  variables_[one.name] = begin;
  all_variables()[begin] = one.bytes();
}

const Item* Module::function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}
const Module::Shared* Module::shared(std::string_view name) const {
  const auto found = shared_.find(name);
  return found == shared_.end() ? nullptr : &found->second;
}
std::byte* Module::variable(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second;
}

std::shared_ptr<const Program> Module::program(const std::string& symbol) {
  std::shared_ptr<const Program>& result = programs_[symbol];
  if (result == nullptr) {
    const Item* const item = function(symbol);
    if (item == nullptr || item->body == std::string_view::npos) finding("PTX: there is no kernel " + symbol);
    result = parse(*this, symbol, *item);
  }
  return result;
}

bool in_variable(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  auto after = all_variables().upper_bound(at);
  return after != all_variables().begin() && at < std::prev(after)->first + std::prev(after)->second;
}

}  // namespace cuda_double::ptx
