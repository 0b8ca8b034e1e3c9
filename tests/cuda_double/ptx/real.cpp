// Arithmetic on floating-point numbers, and comparisons of all numbers.
#include "pleat/tests/cuda_double/ptx/opcode.h"

namespace cuda_double::ptx {
namespace {

template <class T>
T nan_number() {
  return sizeof(T) == 4 ? static_cast<T>(std::bit_cast<float>(0x7fffffffu))
                        : static_cast<T>(std::numeric_limits<double>::quiet_NaN());
}

/// The lesser or greater of two; a NaN counts only where `keeps_nan` says so.
template <bool least, bool keeps_nan>
struct Extreme {
  template <class T>
  static T of(T a, T b) {
    const bool a_nan = a != a, b_nan = b != b;
    const T ordered = a == b ? (std::signbit(a) == least ? a : b) : (a < b) == least ? a : b;
    const T one = a_nan ? b : a;
    const bool no_number = keeps_nan ? a_nan || b_nan : a_nan && b_nan;
    return no_number ? nan_number<T>() : a_nan || b_nan ? one : ordered;
  }
};
struct Negated {
  template <class T>
  static T of(T a) {
    return -a;
  }
};
struct Magnitude {
  template <class T>
  static T of(T a) {
    return std::fabs(a);
  }
};
struct SignOfFirst {
  template <class T>
  static T of(T a, T b) {
    return std::copysign(b, a);
  }
};

// Functions that a GPU approximates: of how many digits are right, a test here says nothing.
// clang-format off
struct PowerOfTwo { static double of(double a) { return std::exp2(a); } };
struct LogOfTwo { static double of(double a) { return std::log2(a); } };
struct Sine { static double of(double a) { return std::sin(a); } };
struct Cosine { static double of(double a) { return std::cos(a); } };
struct Tangent { static double of(double a) { return std::tanh(a); } };
struct ReciprocalRoot { static double of(double a) { return 1 / std::sqrt(a); } };
// clang-format on

template <class T, class Compute>
void compute_lanes(Warp& warp, const Instruction& in, const Compute& compute, unsigned sources) {
  T* const to = warp.at<T>(in.slot[0]);
  for_lanes(warp.mask, [&](unsigned i) {
    std::array<double, 3> x{};
    for (unsigned k = 0; k < sources; ++k) {
      x[k] = as_double(warp.at<T>(in.slot[k + 1])[i]);
      if (in.flush) x[k] = flushed<T>(x[k]);
    }
    double result = compute(x);
    if (in.flush) result = flushed<T>(result);
    if (in.saturate) result = saturated(result);
    to[i] = rounded<T>(result, Mode::nearest);
  });
}
template <class F>
double exact_result(const std::array<double, 3>& x, Mode mode, auto type) {
  using T = decltype(type);
  if constexpr (requires { F::rest(0.0, 0.0); }) return exactly<F, T>(mode, x[0]);
  if constexpr (requires { F::rest(0.0, 0.0, 0.0); }) return exactly<F, T>(mode, x[0], x[1]);
  if constexpr (requires { F::rest(0.0, 0.0, 0.0, 0.0); }) return exactly<F, T>(mode, x[0], x[1], x[2]);
}

/// With every rounding, .ftz and .sat, of any type.
template <class F, class T>
void exact_lanes(Warp& warp, const Instruction& in) {
  compute_lanes<T>(
      warp, in, [&](const auto& x) { return exact_result<F>(x, static_cast<Mode>(in.mode), T{}); },
      in.used - 1u);
}
/// Of functions that are not rounded, or not exactly.
template <class F, class T>
void double_lanes(Warp& warp, const Instruction& in) {
  compute_lanes<T>(
      warp, in,
      [&](const auto& x) {
        if constexpr (requires { F::of(x[0]); })
          return F::of(x[0]);
        else
          return F::of(x[0], x[1]);
      },
      in.used - 1u);
}
/// Of two numbers in each lane.
template <Handler one, class T>
void pair_lanes(Warp& warp, const Instruction& in) {
  std::array<std::array<T, warp_size>, 4> parts{};
  for (unsigned half = 0; half < 2; ++half) {
    std::array<T, 4 * warp_size> file{};
    Warp narrow = warp;
    Instruction part = in;
    narrow.file = reinterpret_cast<std::byte*>(file.data());
    for (unsigned k = 0; k < in.used; ++k) {
      part.slot[k] = static_cast<uint32_t>(k * warp_size * sizeof(T));
      for (unsigned i = 0; i < warp_size; ++i) file[k * warp_size + i] = warp.at<T>(in.slot[k])[2 * i + half];
    }
    one(narrow, part);
    std::copy_n(file.begin(), warp_size, parts[half].begin());
  }
  for_lanes(warp.mask, [&](unsigned i) {
    for (unsigned half = 0; half < 2; ++half) warp.at<T>(in.slot[0])[2 * i + half] = parts[half][i];
  });
}

template <class T>
Choice choice_of(Handler handler, unsigned sources) {
  Choice result{handler, {}, static_cast<uint8_t>(1 + sources)};
  result.bytes.fill(sizeof(T));
  return result;
}

template <template <class, class> class Lanes, class F>
Choice small_choice(Type type, unsigned sources) {
  switch (type) {
    case Type::f16:
      return choice_of<Half>(&Lanes<F, Half>::run, sources);
    case Type::bf16:
      return choice_of<Brain>(&Lanes<F, Brain>::run, sources);
    case Type::f16x2:
      return choice_of<uint32_t>(&pair_lanes<&Lanes<F, Half>::run, Half>, sources);
    case Type::bf16x2:
      return choice_of<uint32_t>(&pair_lanes<&Lanes<F, Brain>::run, Brain>, sources);
    case Type::f32:
      return choice_of<float>(&Lanes<F, float>::run, sources);
    case Type::f64:
      return choice_of<double>(&Lanes<F, double>::run, sources);
    default:
      return {};
  }
}
template <class F, class T>
struct Exact {
  static void run(Warp& warp, const Instruction& in) { exact_lanes<F, T>(warp, in); }
};
template <class F, class T>
struct InDouble {
  static void run(Warp& warp, const Instruction& in) { double_lanes<F, T>(warp, in); }
};

/// `F` for float32 and float64 rounded to the nearest; what has options or other types goes the slow way.
template <template <class, class> class Slow, class F>
Choice real(const Opcode& op, const Instruction& in, unsigned sources) {
  const Type type = op.type();
  if (in.flush || in.saturate || in.mode != 0 || (type != Type::f32 && type != Type::f64))
    return small_choice<Slow, F>(type, sources);
  const auto fast = [&](auto t) -> Choice {
    using T = decltype(t);
    if constexpr (requires { F::of(t); }) return lane_by_lane<F, T, T>();
    if constexpr (requires { F::of(t, t); }) return lane_by_lane<F, T, T, T>();
    if constexpr (requires { F::of(t, t, t); }) return lane_by_lane<F, T, T, T, T>();
  };
  return type == Type::f32 ? fast(float{}) : fast(double{});
}

/// Of rcp.approx.ftz.f64 and its like only the upper half of the bits has a value.
template <class F>
struct UpperHalf {
  static double of(double a) { return std::bit_cast<double>(std::bit_cast<uint64_t>(F::of(a)) >> 32 << 32); }
};
template <class F>
Choice approximate(const Opcode& op) {
  if (op.type() == Type::f64) return small_choice<InDouble, UpperHalf<F>>(Type::f64, 1);
  return small_choice<InDouble, F>(op.type(), 1);
}

Choice function_choice(const Opcode& op, const Instruction& in) {
  const std::string_view base = op.base();
  if (base == "ex2") return approximate<PowerOfTwo>(op);
  if (base == "lg2") return approximate<LogOfTwo>(op);
  if (base == "sin") return approximate<Sine>(op);
  if (base == "cos") return approximate<Cosine>(op);
  if (base == "tanh") return approximate<Tangent>(op);
  if (base == "rsqrt") return approximate<ReciprocalRoot>(op);
  if (base == "rcp")
    return op.has("approx") && op.type() == Type::f64 ? approximate<Reciprocal>(op)
                                                      : real<Exact, Reciprocal>(op, in, 1);
  if (base == "sqrt") return real<Exact, SquareRoot>(op, in, 1);
  return {};
}

// Comparisons. Numbers of small types are compared as float32.

struct FlushedSingle {
  float x;
};
float as_float(FlushedSingle a) { return static_cast<float>(flushed<float>(static_cast<double>(a.x))); }
template <class T>
auto comparable(T x) {
  if constexpr (std::is_class_v<T>)
    return as_float(x);
  else
    return x;
}

// clang-format off
template <class T> bool unordered(T a, T b) { return a != a || b != b; }
struct Equal { template <class T> static bool of(T a, T b) { return a == b; } };
struct NotEqual { template <class T> static bool of(T a, T b) { return a < b || a > b; } };
struct Less { template <class T> static bool of(T a, T b) { return a < b; } };
struct LessEqual { template <class T> static bool of(T a, T b) { return a <= b; } };
struct Greater { template <class T> static bool of(T a, T b) { return a > b; } };
struct GreaterEqual { template <class T> static bool of(T a, T b) { return a >= b; } };
template <class C> struct OrUnordered { template <class T> static bool of(T a, T b) { return C::of(a, b) || unordered(a, b); } };
struct Unordered { template <class T> static bool of(T a, T b) { return unordered(a, b); } };
struct Ordered { template <class T> static bool of(T a, T b) { return !unordered(a, b); } };
// clang-format on

template <class C, class T>
uint32_t compared(const Warp& warp, uint32_t a_slot, uint32_t b_slot) {
  const T* const a = warp.at<T>(a_slot);
  const T* const b = warp.at<T>(b_slot);
  uint32_t bits = 0;
  for (unsigned i = 0; i < warp_size; ++i)
    bits |= static_cast<uint32_t>(C::of(comparable(a[i]), comparable(b[i]))) << i;
  return bits;
}
template <class C, class T>
void set_predicate(Warp& warp, const Instruction& in) {
  write_mask(warp, in.slot[0], compared<C, T>(warp, in.slot[1], in.slot[2]));
}
/// With a third operand, and a second result for the opposite.
template <class C, class T>
void set_predicates(Warp& warp, const Instruction& in) {
  const uint32_t bits = compared<C, T>(warp, in.slot[2], in.slot[3]);
  const uint32_t other = warp.predicate(in.slot[4]) ^ static_cast<uint32_t>(in.number);
  const auto combined = [&](uint32_t x) {
    return in.mode == 'a' ? x & other : in.mode == 'o' ? x | other : x ^ other;
  };
  write_mask(warp, in.slot[0], combined(bits));
  write_mask(warp, in.slot[1], combined(~bits));
}
/// set: 1.0, or all bits, where it is true.
template <class C, class T>
void set_number(Warp& warp, const Instruction& in) {
  const uint32_t bits = compared<C, T>(warp, in.slot[1], in.slot[2]);
  const uint32_t yes = in.mode != 0 ? std::bit_cast<uint32_t>(1.0f) : ~0u;
  write_lanes<uint32_t>(warp, in.slot[0], [&](unsigned i) { return (bits >> i & 1u) != 0 ? yes : 0u; });
}

template <class C, class T>
Choice comparison(const Opcode& op, Instruction& in) {
  const uint8_t n = sizeof(T);
  if (op.base() == "set") {
    in.mode = op.type(1) == Type::f32 ? 1 : 0;
    return {&set_number<C, T>, {4, n, n}, 3};
  }
  if (in.mode == 0) return {&set_predicate<C, T>, {0, n, n}, 3};
  return {&set_predicates<C, T>, {0, 0, n, n, 0}, 5, 2};
}
template <class C>
Choice comparison_of(const Opcode& op, Instruction& in) {
  switch (op.type()) {
    case Type::f16:
      return comparison<C, Half>(op, in);
    case Type::bf16:
      return comparison<C, Brain>(op, in);
    case Type::f32:
      return op.has("ftz") ? comparison<C, FlushedSingle>(op, in) : comparison<C, float>(op, in);
    case Type::f64:
      return comparison<C, double>(op, in);
    default:
      return with_integer(op.type(), [&](auto t) { return comparison<C, decltype(t)>(op, in); });
  }
}

// clang-format off
struct IsFinite { template <class T> static bool of(T a) { return std::isfinite(a); } };
struct IsInfinite { template <class T> static bool of(T a) { return std::isinf(a); } };
struct IsNumber { template <class T> static bool of(T a) { return !std::isnan(a); } };
struct IsNotNumber { template <class T> static bool of(T a) { return std::isnan(a); } };
struct IsNormal { template <class T> static bool of(T a) { return std::isnormal(a); } };
struct IsSubnormal { template <class T> static bool of(T a) { return std::fpclassify(a) == FP_SUBNORMAL; } };
// clang-format on
template <class F>
Choice property(Type type) {
  return type == Type::f32 ? lane_by_lane<F, bool, float>() : lane_by_lane<F, bool, double>();
}
Choice property_choice(const Opcode& op) {
  if (op.has("finite")) return property<IsFinite>(op.type());
  if (op.has("infinite")) return property<IsInfinite>(op.type());
  if (op.has("number")) return property<IsNumber>(op.type());
  if (op.has("notanumber")) return property<IsNotNumber>(op.type());
  if (op.has("normal")) return property<IsNormal>(op.type());
  if (op.has("subnormal")) return property<IsSubnormal>(op.type());
  return {};
}

}  // namespace

Choice real_choice(const Opcode& op, Instruction& in) {
  const std::string_view base = op.base();
  const Type type = op.type();
  if (type < Type::f16) return {};
  in.kind = Kind::real;
  in.flush = op.has("ftz");
  in.saturate = op.has("sat");
  in.mode = static_cast<uint8_t>(op.mode());
  if (op.has("relu") || op.has("oob") || op.has("abs") || op.has("xorsign")) return {};
  if (base == "add") return real<Exact, Add>(op, in, 2);
  if (base == "sub") return real<Exact, Subtract>(op, in, 2);
  if (base == "mul") return real<Exact, Multiply>(op, in, 2);
  if (base == "fma" || base == "mad") return real<Exact, MultiplyAdd>(op, in, 3);
  if (base == "div") return real<Exact, Divide>(op, in, 2);
  if (base == "neg") return real<InDouble, Negated>(op, in, 1);
  if (base == "abs") return real<InDouble, Magnitude>(op, in, 1);
  if (base == "copysign") return real<InDouble, SignOfFirst>(op, in, 2);
  if (base == "min")
    return op.has("NaN") ? real<InDouble, Extreme<true, true>>(op, in, 2)
                         : real<InDouble, Extreme<true, false>>(op, in, 2);
  if (base == "max")
    return op.has("NaN") ? real<InDouble, Extreme<false, true>>(op, in, 2)
                         : real<InDouble, Extreme<false, false>>(op, in, 2);
  return function_choice(op, in);
}

Choice comparing_choice(const Opcode& op, Instruction& in) {
  const std::string_view base = op.base();
  if (base != "setp" && base != "set" && base != "testp") return {};
  in.kind = op.type() >= Type::f16 ? Kind::real : Kind::integer;
  if (base == "testp") return property_choice(op);
  if (base == "set" && op.parts.size() != 4) return {};
  const std::string_view how = op.parts[1];
  if (how == "eq") return comparison_of<Equal>(op, in);
  if (how == "ne") return comparison_of<NotEqual>(op, in);
  if (how == "lt" || how == "lo") return comparison_of<Less>(op, in);
  if (how == "le" || how == "ls") return comparison_of<LessEqual>(op, in);
  if (how == "gt" || how == "hi") return comparison_of<Greater>(op, in);
  if (how == "ge" || how == "hs") return comparison_of<GreaterEqual>(op, in);
  if (how == "equ") return comparison_of<OrUnordered<Equal>>(op, in);
  if (how == "neu") return comparison_of<OrUnordered<NotEqual>>(op, in);
  if (how == "ltu") return comparison_of<OrUnordered<Less>>(op, in);
  if (how == "leu") return comparison_of<OrUnordered<LessEqual>>(op, in);
  if (how == "gtu") return comparison_of<OrUnordered<Greater>>(op, in);
  if (how == "geu") return comparison_of<OrUnordered<GreaterEqual>>(op, in);
  if (how == "nan") return comparison_of<Unordered>(op, in);
  if (how == "num") return comparison_of<Ordered>(op, in);
  return {};
}

}  // namespace cuda_double::ptx
