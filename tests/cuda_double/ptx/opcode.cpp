// Names of instructions and types.
#include "pleat/tests/cuda_double/ptx/opcode.h"

#include <iterator>
#include <map>
#include <set>
#include <sstream>

namespace cuda_double::ptx {

Type type_named(std::string_view name) {
  static const std::map<std::string_view, Type> types = {
      {"pred", Type::pred}, {"u8", Type::u8},       {"u16", Type::u16},      {"u32", Type::u32},
      {"u64", Type::u64},   {"s8", Type::s8},       {"s16", Type::s16},      {"s32", Type::s32},
      {"s64", Type::s64},   {"b8", Type::b8},       {"b16", Type::b16},      {"b32", Type::b32},
      {"b64", Type::b64},   {"f16", Type::f16},     {"bf16", Type::bf16},    {"f32", Type::f32},
      {"f64", Type::f64},   {"f16x2", Type::f16x2}, {"bf16x2", Type::bf16x2}};
  const auto found = types.find(name);
  return found == types.end() ? Type::none : found->second;
}

unsigned size_of(Type type) {
  switch (type) {
    case Type::u8:
    case Type::s8:
    case Type::b8:
      return 1;
    case Type::u16:
    case Type::s16:
    case Type::b16:
    case Type::f16:
    case Type::bf16:
      return 2;
    case Type::u32:
    case Type::s32:
    case Type::b32:
    case Type::f32:
    case Type::f16x2:
    case Type::bf16x2:
      return 4;
    case Type::u64:
    case Type::s64:
    case Type::b64:
    case Type::f64:
      return 8;
    default:
      return 0;
  }
}

Type Opcode::type(unsigned from_end) const {
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    if (const Type type = type_named(*part); type != Type::none && from_end-- == 0) return type;
  return Type::none;
}

namespace {

/// What may stand in an instruction's name beside types; the meaning of anything else is not known.
bool is_known_part(const std::string& part) {
  static const std::set<std::string> known = [] {
    std::istringstream words(
        "lo hi wide rn rz rm rp rni rzi rmi rpi ftz sat approx full NaN noftz eq ne lt le gt ge ls "
        "hs equ neu ltu leu gtu geu nan num and or xor add min max inc dec exch cas popc global "
        "shared local param const to volatile relaxed acquire release acq_rel sc weak gpu cta sys "
        "cluster gl nc ca cg cs cv wb wt v2 v4 cc l r clamp wrap shiftamt uni idx sync warp red "
        "aligned up down bfly all any ballot finite infinite number notanumber normal subnormal L1 "
        "L2 L1::no_allocate L1::evict_last L1::evict_first L1::evict_normal L2::64B L2::128B "
        "L2::256B proxy alias");
    return std::set<std::string>(std::istream_iterator<std::string>(words), {});
  }();
  return known.contains(part) || type_named(part) != Type::none;
}

}  // namespace

Opcode opcode_of(std::string_view text) {
  Opcode result{text, {}};
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t dot = std::min(text.find('.', at), text.size());
    std::string_view part = text.substr(at, dot - at);
    if (part == "shared::cta") part = "shared";
    if (!result.parts.empty() && !is_known_part(std::string(part)))
      throw Unsupported{"." + std::string(part)};
    result.parts.push_back(part);
    at = dot + 1;
  }
  return result;
}

}  // namespace cuda_double::ptx
