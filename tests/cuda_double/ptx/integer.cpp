// Instructions on integers and bits.
#include <limits>

#include "pleat/tests/cuda_double/ptx/opcode.h"

namespace cuda_double::ptx {
namespace {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

/// Unsigned and of at least 32 bits, so that nothing overflows.
template <class T>
using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
inline constexpr unsigned bits = 8 * sizeof(T);
template <class T>
using Double = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, Wide, UnsignedWide>>>;

template <class T>
T product(T a, T b) {
  return static_cast<T>(static_cast<Word<T>>(a) * static_cast<Word<T>>(b));
}
template <class T>
T sum(T a, T b) {
  return static_cast<T>(static_cast<Word<T>>(a) + static_cast<Word<T>>(b));
}
template <class T>
T difference(T a, T b) {
  return static_cast<T>(static_cast<Word<T>>(a) - static_cast<Word<T>>(b));
}
template <class T>
T high_product(T a, T b) {
  return static_cast<T>((static_cast<Double<T>>(a) * static_cast<Double<T>>(b)) >> bits<T>);
}

// clang-format off
struct Sum { template <class T> static T of(T a, T b) { return sum(a, b); } };
struct Difference { template <class T> static T of(T a, T b) { return difference(a, b); } };
struct LowProduct { template <class T> static T of(T a, T b) { return product(a, b); } };
struct HighProduct { template <class T> static T of(T a, T b) { return high_product(a, b); } };
struct WideProduct { template <class T> static Double<T> of(T a, T b) { return product(Double<T>{a}, Double<T>{b}); } };
struct LowProductSum { template <class T> static T of(T a, T b, T c) { return sum(product(a, b), c); } };
struct HighProductSum { template <class T> static T of(T a, T b, T c) { return sum(high_product(a, b), c); } };
struct WideProductSum {
  template <class T> static Double<T> of(T a, T b, Double<T> c) { return sum(product(Double<T>{a}, Double<T>{b}), c); }
};
struct AbsoluteDifferenceSum {
  template <class T> static T of(T a, T b, T c) { return sum(a < b ? difference(b, a) : difference(a, b), c); }
};
struct Least { template <class T> static T of(T a, T b) { return b < a ? b : a; } };
struct Greatest { template <class T> static T of(T a, T b) { return a < b ? b : a; } };
struct Negative { template <class T> static T of(T a) { return difference(T{0}, a); } };
struct Size { template <class T> static T of(T a) { return a < 0 ? difference(T{0}, a) : a; } };
struct And { template <class T> static T of(T a, T b) { return static_cast<T>(a & b); } };
struct Or { template <class T> static T of(T a, T b) { return static_cast<T>(a | b); } };
struct Xor { template <class T> static T of(T a, T b) { return static_cast<T>(a ^ b); } };
struct Not { template <class T> static T of(T a) { return static_cast<T>(~a); } };
struct IsZero { template <class T> static T of(T a) { return a == 0 ? 1 : 0; } };
struct Same { template <class T> static T of(T a) { return a; } };
struct Select { template <class T> static T of(T a, T b, bool first) { return first ? a : b; } };
struct SelectBySign { template <class T, class S> static T of(T a, T b, S c) { return c >= 0 ? a : b; } };
struct Ones { template <class T> static uint32_t of(T a) { return static_cast<uint32_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(a))); } };
struct LeadingZeros { template <class T> static uint32_t of(T a) { return static_cast<uint32_t>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(a))); } };
// clang-format on

/// What a GPU gives for a division by 0 has all bits set.
struct Quotient {
  template <class T>
  static T of(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return difference(T{0}, a);
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T>
  static T of(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  }
};
struct ShiftLeft {
  template <class T>
  static T of(T a, uint32_t n) {
    return n >= bits<T> ? T{0} : static_cast<T>(static_cast<Word<T>>(a) << n);
  }
};
struct ShiftRight {
  template <class T>
  static T of(T a, uint32_t n) {
    if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> (n >= bits<T> ? bits<T> - 1 : n));
    return n >= bits<T> ? T{0} : static_cast<T>(a >> n);
  }
};
/// The 32 bits of high:low that lie `n` from the top, or from the bottom.
struct FunnelLeft {
  static uint32_t of(uint32_t low, uint32_t high, uint32_t n) {
    n = n > 32 ? 32 : n;
    return static_cast<uint32_t>(((static_cast<uint64_t>(high) << 32 | low) << n) >> 32);
  }
};
struct FunnelRight {
  static uint32_t of(uint32_t low, uint32_t high, uint32_t n) {
    n = n > 32 ? 32 : n;
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> n);
  }
};
template <class Shift>
struct Wrapped {
  static uint32_t of(uint32_t low, uint32_t high, uint32_t n) { return Shift::of(low, high, n & 31); }
};
struct Reversed {
  template <class T>
  static T of(T a) {
    T result = 0;
    for (unsigned i = 0; i < bits<T>; ++i)
      result = static_cast<T>(result | (a >> i & 1u) << (bits<T> - 1 - i));
    return result;
  }
};
/// The place of the highest bit that is not the sign; as a shift, how far it is from the top.
template <bool shift>
struct HighestBit {
  template <class T>
  static uint32_t of(T a) {
    auto size = static_cast<std::make_unsigned_t<T>>(a);
    if (std::is_signed_v<T> && a < 0) size = ~size;
    if (size == 0) return ~0u;
    const auto zeros = static_cast<uint32_t>(std::countl_zero(size));
    return shift ? zeros : bits<T> - 1 - zeros;
  }
};
struct Extract {
  template <class T>
  static T of(T a, uint32_t from, uint32_t n) {
    using U = std::make_unsigned_t<T>;
    from &= 255, n &= 255;
    if (n == 0) return 0;
    const uint32_t last = std::min(from + n - 1, bits<T> - 1);
    const U sign = std::is_signed_v<T> ? static_cast<U>(static_cast<U>(a) >> last & 1u) : U{0};
    const U low = ShiftRight::of(static_cast<U>(a), from);
    const U kept = n >= bits<T> ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << n) - 1);
    const U there = from >= bits<T> ? U{0} : ShiftRight::of(static_cast<U>(~U{0}), from);
    return static_cast<T>((low & kept & there) | (sign != 0 ? static_cast<U>(~(kept & there)) : U{0}));
  }
};
struct Insert {
  template <class T>
  static T of(T a, T b, uint32_t from, uint32_t n) {
    from &= 255, n &= 255;
    const T kept = n >= bits<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << n) - 1);
    const T place = ShiftLeft::of(kept, from);
    return static_cast<T>((ShiftLeft::of(a, from) & place) | (b & static_cast<T>(~place)));
  }
};
template <bool wrap>
struct BitMask {
  static uint32_t of(uint32_t from, uint32_t n) {
    if (wrap) from &= 31, n &= 31;
    return ShiftLeft::of(n >= 32 ? ~0u : (1u << n) - 1, from);
  }
};
struct Permute {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t choice) {
    const uint64_t all = static_cast<uint64_t>(b) << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const uint32_t which = choice >> (4 * i) & 15u;
      const auto byte = static_cast<uint32_t>(all >> (8 * (which & 7u)) & 255u);
      result |= ((which & 8u) == 0 ? byte : (byte & 128u) != 0 ? 255u : 0u) << (8 * i);
    }
    return result;
  }
};
/// Bit i of the table's result for three bits.
struct ByTable {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t result = 0;
    for (unsigned i = 0; i < 8; ++i)
      if ((table >> i & 1u) != 0)
        result |= ((i & 4u) != 0 ? a : ~a) & ((i & 2u) != 0 ? b : ~b) & ((i & 1u) != 0 ? c : ~c);
    return result;
  }
};

// A sum with the carry of the instruction before: what in.mode says of it.
constexpr uint8_t subtracts = 1, takes_carry = 2, gives_carry = 4, low_product = 8, high_product_part = 16;

template <class T>
void with_carry(Warp& warp, const Instruction& in) {
  const bool multiplies = (in.mode & (low_product | high_product_part)) != 0;
  const bool minus = (in.mode & subtracts) != 0;
  for_lanes(warp.mask, [&](unsigned i) {
    const auto source = [&](unsigned k) { return warp.at<T>(in.slot[k])[i]; };
    T first = source(1);
    if (multiplies)
      first = (in.mode & low_product) != 0 ? product(first, source(2)) : high_product(first, source(2));
    // a - b is a + ~b + 1, and a borrow the lack of a carry.
    const T second = minus ? static_cast<T>(~source(2)) : source(multiplies ? 3 : 2);
    const bool carried = (warp.carry >> i & 1u) != 0;
    const T one = (in.mode & takes_carry) != 0 ? carried != minus : minus;
    const auto all = static_cast<UnsignedWide>(first) + second + one;
    const bool over = (all >> bits<T>) != 0;
    warp.at<T>(in.slot[0])[i] = static_cast<T>(all);
    if ((in.mode & gives_carry) != 0)
      warp.carry = (warp.carry & ~(1u << i)) | static_cast<uint32_t>(over != minus) << i;
  });
}
Choice carry_choice(const Opcode& op, Instruction& in) {
  const std::string_view base = op.base();
  const bool multiplies = base.starts_with("mad"), takes = base.ends_with('c');
  if (multiplies && op.has("wide")) return {};
  in.mode = static_cast<uint8_t>((base.starts_with("sub") ? subtracts : 0) | (takes ? takes_carry : 0) |
                                 (op.has("cc") ? gives_carry : 0) |
                                 (!multiplies    ? 0
                                  : op.has("lo") ? low_product
                                                 : high_product_part));
  return with_integer(op.type(), [&](auto t) -> Choice {
    using T = decltype(t);
    Choice result{&with_carry<T>, {}, static_cast<uint8_t>(multiplies ? 4 : 3)};
    result.bytes.fill(sizeof(T));
    return result;
  });
}

template <class Whole, class Part>
void unpack(Warp& warp, const Instruction& in) {
  std::array<Whole, warp_size> words{};
  std::copy_n(warp.at<Whole>(in.slot[in.count]), warp_size, words.begin());
  for (unsigned k = 0; k < in.count; ++k)
    write_lanes<Part>(warp, in.slot[k],
                      [&](unsigned i) { return static_cast<Part>(words[i] >> (k * bits<Part>)); });
}
template <class Whole, class Part>
void pack(Warp& warp, const Instruction& in) {
  std::array<Whole, warp_size> words{};
  for (unsigned k = 0; k < in.count; ++k) {
    const Part* const part = warp.at<Part>(in.slot[k + 1]);
    for (unsigned i = 0; i < warp_size; ++i)
      words[i] |= static_cast<Whole>(static_cast<Whole>(part[i]) << (k * bits<Part>));
  }
  write_lanes<Whole>(warp, in.slot[0], [&](unsigned i) { return words[i]; });
}

template <class F>
Choice same_type(Type type, unsigned sources) {
  return with_integer(type, [&](auto t) -> Choice {
    using T = decltype(t);
    if constexpr (requires { F::of(t); })
      if (sources == 1) return lane_by_lane<F, T, T>();
    if constexpr (requires { F::of(t, t); })
      if (sources == 2) return lane_by_lane<F, T, T, T>();
    if constexpr (requires { F::of(t, t, t); })
      if (sources == 3) return lane_by_lane<F, T, T, T, T>();
    return {};
  });
}
template <class Low, class High, class WideF>
Choice multiplied(const Opcode& op, bool adds) {
  const unsigned sources = adds ? 3 : 2;
  if (op.has("lo")) return same_type<Low>(op.type(), sources);
  if (op.has("hi")) return same_type<High>(op.type(), sources);
  if (!op.has("wide")) return {};
  return with_integer(op.type(), [&](auto t) -> Choice {
    using T = decltype(t);
    if constexpr (sizeof(T) < 8) {
      if constexpr (requires { WideF::of(t, t); }) return lane_by_lane<WideF, Double<T>, T, T>();
      if constexpr (requires { WideF::of(t, t, Double<T>{}); })
        return lane_by_lane<WideF, Double<T>, T, T, Double<T>>();
    }
    return {};
  });
}
/// The same for predicates, which are masks.
template <class F>
void map_predicates(Warp& warp, const Instruction& in) {
  const uint32_t a = warp.predicate(in.slot[1]);
  if constexpr (requires { F::of(a); })
    write_mask(warp, in.slot[0], F::of(a));
  else
    write_mask(warp, in.slot[0], F::of(a, warp.predicate(in.slot[2])));
}
template <class F>
Choice of_bits(Type type, unsigned sources) {
  if (type != Type::pred) return same_type<F>(type, sources);
  return {&map_predicates<F>, {}, static_cast<uint8_t>(1 + sources)};
}
/// A 32-bit result from a number of any size.
template <class F>
Choice counted_bits(Type type) {
  return with_integer(type, [](auto t) -> Choice {
    using T = decltype(t);
    if constexpr (requires { F::of(t); }) return lane_by_lane<F, uint32_t, T>();
    return {};
  });
}

Choice shift_choice(const Opcode& op) {
  const auto shifted = [&]<class F>(F) {
    return with_integer(op.type(), [](auto t) {
      using T = decltype(t);
      return lane_by_lane<F, T, T, uint32_t>();
    });
  };
  if (op.base() == "shl") return shifted(ShiftLeft{});
  if (op.base() == "shr") return shifted(ShiftRight{});
  if (op.base() != "shf") return {};
  const auto funnel = []<class F>(F) { return lane_by_lane<F, uint32_t, uint32_t, uint32_t, uint32_t>(); };
  if (op.has("l")) return op.has("wrap") ? funnel(Wrapped<FunnelLeft>{}) : funnel(FunnelLeft{});
  return op.has("wrap") ? funnel(Wrapped<FunnelRight>{}) : funnel(FunnelRight{});
}

Choice bits_choice(const Opcode& op) {
  const Type type = op.type();
  const std::string_view base = op.base();
  if (base == "and") return of_bits<And>(type, 2);
  if (base == "or") return of_bits<Or>(type, 2);
  if (base == "xor") return of_bits<Xor>(type, 2);
  if (base == "not") return of_bits<Not>(type, 1);
  if (base == "cnot") return same_type<IsZero>(type, 1);
  if (base == "popc") return counted_bits<Ones>(type);
  if (base == "clz") return counted_bits<LeadingZeros>(type);
  if (base == "bfind")
    return op.has("shiftamt") ? counted_bits<HighestBit<true>>(type) : counted_bits<HighestBit<false>>(type);
  if (base == "brev")
    return with_bits(size_of(type),
                     [](auto t) { return lane_by_lane<Reversed, decltype(t), decltype(t)>(); });
  if (base == "bmsk")
    return op.has("wrap") ? lane_by_lane<BitMask<true>, uint32_t, uint32_t, uint32_t>()
                          : lane_by_lane<BitMask<false>, uint32_t, uint32_t, uint32_t>();
  if (base == "bfe")
    return with_integer(type, [](auto t) {
      using T = decltype(t);
      return lane_by_lane<Extract, T, T, uint32_t, uint32_t>();
    });
  if (base == "bfi")
    return with_bits(size_of(type), [](auto t) {
      using T = decltype(t);
      return lane_by_lane<Insert, T, T, T, uint32_t, uint32_t>();
    });
  if (base == "prmt" && op.parts.size() == 2)
    return lane_by_lane<Permute, uint32_t, uint32_t, uint32_t, uint32_t>();
  if (base == "lop3" && op.parts.size() == 2)
    return lane_by_lane<ByTable, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>();
  return {};
}

Choice select_choice(const Opcode& op) {
  const Type type = op.type(op.base() == "slct" ? 1 : 0);
  if (op.base() == "selp" && type == Type::pred) return {};
  return with_bits(size_of(type), [&](auto t) -> Choice {
    using T = decltype(t);
    if (op.base() == "selp") return lane_by_lane<Select, T, T, T, bool>();
    return op.type() == Type::f32 ? lane_by_lane<SelectBySign, T, T, T, float>()
                                  : lane_by_lane<SelectBySign, T, T, T, int32_t>();
  });
}

}  // namespace

Choice packing_choice(unsigned bytes, unsigned parts, bool unpacks, Instruction& in) {
  in.count = static_cast<uint8_t>(parts);
  return with_bits(bytes, [&](auto w) {
    return with_bits(bytes / parts, [&](auto p) -> Choice {
      using Whole = decltype(w);
      using Part = decltype(p);
      if constexpr (sizeof(Part) >= sizeof(Whole)) {
        return {};
      } else {
        Choice result{unpacks ? &unpack<Whole, Part> : &pack<Whole, Part>,
                      {},
                      static_cast<uint8_t>(parts + 1),
                      static_cast<uint8_t>(unpacks ? parts : 1)};
        result.bytes.fill(sizeof(Part));
        result.bytes[unpacks ? parts : 0] = sizeof(Whole);
        return result;
      }
    });
  });
}

Choice integer_choice(const Opcode& op, Instruction& in) {
  const std::string_view base = op.base();
  const Type type = op.type();
  in.kind = Kind::move;
  if (base == "mov" || base == "cvta") {
    if (type == Type::pred) return of_bits<Same>(type, 1);
    return with_bits(size_of(type), [](auto t) { return lane_by_lane<Same, decltype(t), decltype(t)>(); });
  }
  if (base == "selp" || base == "slct") return select_choice(op);
  in.kind = Kind::integer;
  if (const Choice choice = bits_choice(op); choice.run != nullptr) return choice;
  if (op.has("sat")) return {};  // of a sum
  if (op.has("cc") || base == "addc" || base == "subc" || base == "madc") return carry_choice(op, in);
  if (base == "add") return same_type<Sum>(type, 2);
  if (base == "sub") return same_type<Difference>(type, 2);
  if (base == "mul") return multiplied<LowProduct, HighProduct, WideProduct>(op, false);
  if (base == "mad" && !op.has("cc"))
    return multiplied<LowProductSum, HighProductSum, WideProductSum>(op, true);
  if (base == "sad") return same_type<AbsoluteDifferenceSum>(type, 3);
  if (base == "div") return same_type<Quotient>(type, 2);
  if (base == "rem") return same_type<Remainder>(type, 2);
  if (base == "min") return same_type<Least>(type, 2);
  if (base == "max") return same_type<Greatest>(type, 2);
  if (base == "neg") return same_type<Negative>(type, 1);
  if (base == "abs") return same_type<Size>(type, 1);
  return shift_choice(op);
}

}  // namespace cuda_double::ptx
