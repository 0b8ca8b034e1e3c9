// cvt: numbers of one type from those of another.
#include "pleat/tests/cuda_double/ptx/opcode.h"

namespace cuda_double::ptx {
namespace {

template <class T>
inline constexpr bool is_real = std::is_floating_point_v<T> || std::is_class_v<T>;

/// The integer nearest to x within what T holds; `whole` is x without its fraction.
template <class T, class F>
T integer_of(F whole) {
  constexpr F least = static_cast<F>(std::numeric_limits<T>::min());
  constexpr F past = static_cast<F>(std::numeric_limits<T>::max() / 2 + 1) * 2;
  constexpr bool large = sizeof(F) == 8 || sizeof(T) == 8;  // what becomes of a NaN
  constexpr T none = large ? static_cast<T>(uint64_t{1} << (8 * sizeof(T) - 1)) : T{0};
  return whole != whole   ? none
         : whole <= least ? std::numeric_limits<T>::min()
         : whole >= past  ? std::numeric_limits<T>::max()
                          : static_cast<T>(whole);
}
template <Mode mode, class F>
F whole_part(F x) {
  return mode == Mode::nearest ? std::nearbyint(x)
         : mode == Mode::zero  ? std::trunc(x)
         : mode == Mode::down  ? std::floor(x)
                               : std::ceil(x);
}

/// To the nearest, or between integers.
template <class To>
struct Plain {
  template <class From>
  static To of(From x) {
    if constexpr (std::is_class_v<From>)
      return Plain::of(as_float(x));
    else if constexpr (std::is_same_v<To, Half> && std::is_same_v<From, float>)
      return nearest_half(x);
    else if constexpr (std::is_same_v<To, Brain> && std::is_same_v<From, float>)
      return nearest_brain(x);
    else if constexpr (std::is_class_v<To>)
      return rounded<To>(static_cast<double>(x), Mode::nearest);
    else
      return static_cast<To>(x);
  }
};
template <class To, Mode mode>
struct Whole {
  template <class From>
  static To of(From x) {
    if constexpr (std::is_class_v<From>)
      return Whole::of(as_float(x));
    else if constexpr (is_real<To>)
      return Plain<To>::of(whole_part<mode>(x));
    else
      return integer_of<To>(whole_part<mode>(x));
  }
};

/// A number as it goes from one type to another: an integer or a real one.
struct Number {
  bool real;
  double x;
  int64_t whole;
  bool is_unsigned;
};

template <class T>
Number number_from(uint64_t word) {
  if constexpr (std::is_class_v<T>)
    return {true, as_double(T{static_cast<uint16_t>(word)}), 0, false};
  else if constexpr (std::is_same_v<T, float>)
    return {true, static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(word))), 0, false};
  else if constexpr (std::is_same_v<T, double>)
    return {true, std::bit_cast<double>(word), 0, false};
  else
    return {false, 0, static_cast<int64_t>(static_cast<T>(word)), std::is_unsigned_v<T>};
}

template <class T>
T clamped(const Number& from) {
  const bool above =
      from.is_unsigned
          ? static_cast<uint64_t>(from.whole) > static_cast<uint64_t>(std::numeric_limits<T>::max())
          : from.whole > 0 &&
                static_cast<uint64_t>(from.whole) > static_cast<uint64_t>(std::numeric_limits<T>::max());
  if (above) return std::numeric_limits<T>::max();
  if (!from.is_unsigned && std::is_unsigned_v<T> && from.whole < 0) return 0;
  if (!from.is_unsigned && std::is_signed_v<T> &&
      from.whole < static_cast<int64_t>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(from.whole);
}

/// Without its fraction, by the rounding that ends in i.
double without_fraction(double x, Mode mode) {
  switch (mode) {
    case Mode::zero:
      return whole_part<Mode::zero>(x);
    case Mode::down:
      return whole_part<Mode::down>(x);
    case Mode::up:
      return whole_part<Mode::up>(x);
    case Mode::nearest:
      break;
  }
  return whole_part<Mode::nearest>(x);
}

/// An integer as a T, rounded once.
template <class T>
double real_from(const Number& from, Mode mode) {
  const double high = from.is_unsigned ? static_cast<double>(static_cast<uint64_t>(from.whole) >> 32)
                                       : static_cast<double>(from.whole >> 32);
  return exactly<Add, T>(mode, high * 0x1p32, static_cast<double>(static_cast<uint32_t>(from.whole)));
}

template <class T>
uint64_t word_of(T x) {
  if constexpr (std::is_class_v<T>)
    return x.bits;
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(x);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(x);
  else
    return static_cast<uint64_t>(static_cast<int64_t>(x));  // with its sign, should the register be larger
}

/// How a conversion that is not one of the plain ones is made.
struct Making {
  Mode mode;
  bool whole, flush, saturate;
};

template <class To, class From>
uint64_t converted(uint64_t word, const Making& how) {
  Number from = number_from<From>(word);
  if constexpr (is_real<From>) {
    if (how.flush) from.x = flushed<From>(from.x);
    if (how.whole) from.x = without_fraction(from.x, how.mode);
    if constexpr (!is_real<To>) {
      if (std::is_same_v<From, double>) return word_of(integer_of<To>(from.x));
      return word_of(integer_of<To>(static_cast<float>(from.x)));
    }
  }
  if constexpr (!is_real<To>) {
    return word_of(how.saturate ? clamped<To>(from) : static_cast<To>(from.whole));
  } else {
    const Mode mode = how.whole ? Mode::nearest : how.mode;
    double x = from.real ? as_double(rounded<To>(from.x, mode)) : real_from<To>(from, mode);
    if (how.flush) x = flushed<To>(x);
    if (how.saturate) x = saturated(x);
    return word_of(rounded<To>(x, Mode::nearest));
  }
}

uint64_t read_word(const Warp& warp, uint32_t slot, unsigned bytes, unsigned lane) {
  uint64_t word = 0;
  std::memcpy(&word, warp.file + slot + lane * bytes, bytes);
  return word;
}
/// Registers may be larger than their numbers: in.element is the size of the one read, in.count of the other.
template <class To, class From>
void convert_lanes(Warp& warp, const Instruction& in) {
  const Making how{static_cast<Mode>(in.mode), in.number != 0, in.flush, in.saturate};
  for_lanes(warp.mask, [&](unsigned i) {
    const uint64_t word = converted<To, From>(read_word(warp, in.slot[1], in.element, i), how);
    std::memcpy(warp.file + in.slot[0] + i * in.count, &word, in.count);
  });
}

template <class To, class From>
Handler fast_conversion(const Opcode& op) {
  const bool whole = op.has("rzi") || op.has("rni") || op.has("rmi") || op.has("rpi");
  if (!is_real<From> || !whole)
    return !is_real<From> || is_real<To> ? &map_lanes<Plain<To>, To, From> : nullptr;
  if constexpr (is_real<From>) {
    switch (op.mode()) {
      case Mode::nearest:
        return &map_lanes<Whole<To, Mode::nearest>, To, From>;
      case Mode::zero:
        return &map_lanes<Whole<To, Mode::zero>, To, From>;
      case Mode::down:
        return &map_lanes<Whole<To, Mode::down>, To, From>;
      case Mode::up:
        return &map_lanes<Whole<To, Mode::up>, To, From>;
    }
  }
  return nullptr;
}

template <class Function>
Choice with_any(Type type, const Function& function) {
  switch (type) {
    case Type::u8:
      return function(uint8_t{});
    case Type::s8:
      return function(int8_t{});
    case Type::f16:
      return function(Half{});
    case Type::bf16:
      return function(Brain{});
    case Type::f32:
      return function(float{});
    case Type::f64:
      return function(double{});
    default:
      return with_integer(type, function);
  }
}

/// Two float32 become the halves of a register.
template <class T>
struct Packed {
  static uint32_t of(float high, float low) {
    return static_cast<uint32_t>(Plain<T>::of(high).bits) << 16 | Plain<T>::of(low).bits;
  }
};

}  // namespace

Choice conversion_choice(const Opcode& op, Instruction& in, unsigned to_register, unsigned from_register) {
  if (op.base() != "cvt" || op.has("relu") || op.has("satfinite")) return {};
  in.kind = Kind::conversion;
  const Type to = op.type(1);
  if (to == Type::f16x2 || to == Type::bf16x2) {
    if (!op.has("rn") || op.type() != Type::f32) return {};
    return to == Type::f16x2 ? lane_by_lane<Packed<Half>, uint32_t, float, float>()
                             : lane_by_lane<Packed<Brain>, uint32_t, float, float>();
  }
  in.flush = op.has("ftz");
  in.saturate = op.has("sat");
  in.mode = static_cast<uint8_t>(op.mode());
  in.number = op.has("rni") || op.has("rzi") || op.has("rmi") || op.has("rpi") ? 1 : 0;
  in.element = static_cast<uint8_t>(from_register);
  in.count = static_cast<uint8_t>(to_register);
  return with_any(to, [&](auto t) {
    return with_any(op.type(), [&](auto f) -> Choice {
      using To = decltype(t);
      using From = decltype(f);
      const bool plain = sizeof(To) == to_register && sizeof(From) == from_register && !in.flush &&
                         !in.saturate && (in.mode == 0 || in.number != 0);
      Handler handler = plain ? fast_conversion<To, From>(op) : nullptr;
      if (handler == nullptr) handler = &convert_lanes<To, From>;
      return {handler, {in.count, in.element}, 2};
    });
  });
}

}  // namespace cuda_double::ptx
