// The interpreter of PTX: each instruction against C++, for all lanes of a warp and for some of them.
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "pleat/tests/catch.h"
#include "pleat/tests/cuda_double/ptx/rounding.h"
#include "pleat/tests/cuda_double/ptx/selftest.h"

namespace cuda_double::ptx {
namespace {

constexpr unsigned threads = 256;

/// Numbers that are at some limit of some type, and others.
std::vector<uint64_t> operands() {
  static const std::vector<uint64_t> limits = {0,
                                               1,
                                               2,
                                               7,
                                               31,
                                               32,
                                               33,
                                               63,
                                               64,
                                               0x7f,
                                               0x80,
                                               0xff,
                                               0x3c00,
                                               0x7bff,
                                               0x7c00,
                                               0x7e00,
                                               0x8000,
                                               0x8001,
                                               0xfc00,
                                               0xffff,
                                               0x3f800000,
                                               0x3f000000,
                                               0x7f7fffff,
                                               0x7f800000,
                                               0x7fc00000,
                                               0x80000000,
                                               0x80000001,
                                               0xbf800000,
                                               0xc2480000,
                                               0xff800000,
                                               0xffffffff,
                                               0x4f000000,
                                               0xcf000000,
                                               0x3ff0000000000000,
                                               0x3fe0000000000000,
                                               0x7fefffffffffffff,
                                               0x7ff0000000000000,
                                               0x7ff8000000000000,
                                               0x8000000000000000,
                                               0x8000000000000001,
                                               0xbff0000000000000,
                                               0xffffffffffffffff,
                                               0xffffffffffffff80,
                                               0x41dfffffffc00000,
                                               0xc1e0000000000000,
                                               0x43e0000000000000,
                                               0x0010000000000000};
  std::vector<uint64_t> result;
  std::mt19937_64 draw(7);
  for (unsigned i = 0; i < 3 * threads; ++i)
    result.push_back(draw() % 4 == 0 ? draw() >> draw() % 64 : limits[draw() % limits.size()]);
  return result;
}
/// Real numbers of type T near each other, so that roundings differ.
template <class T>
std::vector<uint64_t> reals() {
  std::vector<uint64_t> result;
  std::mt19937_64 draw(8);
  std::uniform_real_distribution<double> any(-2, 2);
  for (unsigned i = 0; i < 3 * threads; ++i) {
    const double x = std::ldexp(any(draw), static_cast<int>(draw() % 20) - 10);
    if constexpr (std::is_same_v<T, double>)
      result.push_back(std::bit_cast<uint64_t>(x));
    else if constexpr (std::is_same_v<T, float>)
      result.push_back(std::bit_cast<uint32_t>(static_cast<float>(x)));
    else
      result.push_back(rounded<T>(x, Mode::nearest).bits);
  }
  return result;
}

std::string number(unsigned bytes, unsigned i) {
  return (bytes == 2 ? "%h" : bytes == 4 ? "%r" : "%d") + std::to_string(i);
}
std::string from_word(unsigned bytes, unsigned i) {
  if (bytes == 8) return "";
  return "cvt.u" + std::to_string(8 * bytes) + ".u64 " + number(bytes, i) + ", %d" + std::to_string(i) +
         ";\n";
}

/// Runs an instruction "name result, a, b, c" with sources and a result of these sizes, without a guard and
/// with one that holds for every third thread.
std::vector<uint64_t> results(const std::string& name, const std::vector<uint64_t>& in, unsigned to,
                              const std::vector<unsigned>& from, bool guarded) {
  std::string body =
      "mul.wide.u32 %d20, %r33, 24;\nadd.u64 %d20, %d30, %d20;\n"
      "ld.global.u64 %d1, [%d20];\nld.global.u64 %d2, [%d20+8];\nld.global.u64 %d3, [%d20+16];\n";
  std::string list;
  for (unsigned i = 0; i < from.size(); ++i) {
    body += from_word(from[i], i + 1);
    list += ", " + number(from[i], i + 1);
  }
  body +=
      "mov.u64 %d9, 0;\nmov.u32 %r9, 0;\nmov.u16 %h9, 0;\nrem.u32 %r20, %r30, 3;\nsetp.eq.u32 %p1, %r20, "
      "0;\n";
  body += (guarded ? "@%p1 " : "") + name + " " + number(to, 9) + list + ";\n";
  if (to < 8) body += "cvt.u64.u" + std::to_string(8 * to) + " %d9, " + number(to, 9) + ";\n";
  return run_kernel(kernel_text(body + "st.global.u64 [%d33], %d9;"), in, threads, threads);
}

template <class T>
T take(uint64_t word) {
  T result;
  std::memcpy(&result, &word, sizeof result);
  return result;
}
template <class T>
uint64_t give(T x) {
  uint64_t result = 0;
  std::memcpy(&result, &x, sizeof x);
  return result;
}

template <class T>
bool is_nan(uint64_t word) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(take<T>(word));
  if constexpr (std::is_class_v<T>) return std::isnan(as_float(take<T>(word)));
  return false;
}

/// Compares an instruction with `expected`, of which NaNs are alike.
template <class R, class... S, class Expected>
void check(const std::string& name, const Expected& expected, std::vector<uint64_t> in = operands()) {
  for (const bool guarded : {false, true}) {
    const auto y = results(name, in, sizeof(R), {sizeof(S)...}, guarded);
    unsigned wrong = 0;
    for (unsigned i = 0; i < threads; ++i) {
      const auto apply = [&]<std::size_t... k>(std::index_sequence<k...>) {
        return give<R>(static_cast<R>(expected(take<S>(in[3 * i + k])...)));
      };
      const uint64_t right = guarded && i % 3 != 0 ? 0 : apply(std::index_sequence_for<S...>{});
      if (y[i] == right || (is_nan<R>(right) && is_nan<R>(y[i]))) continue;
      if (wrong++ == 0) {
        INFO(name << " of " << std::hex << in[3 * i] << ", " << in[3 * i + 1] << ", " << in[3 * i + 2]);
        CHECK(y[i] == right);
      }
    }
    CHECK(wrong == 0);
  }
}

using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
__extension__ using u128 = unsigned __int128;
__extension__ using s128 = __int128;

}  // namespace

TEST_CASE("PTX: sums, products and quotients of integers") {
  check<u16, u16, u16>("add.s16", [](u16 a, u16 b) { return a + b; });
  check<u32, u32, u32>("add.s32", [](u32 a, u32 b) { return a + b; });
  check<u64, u64, u64>("sub.s64", [](u64 a, u64 b) { return a - b; });
  check<u16, u16, u16>("mul.lo.s16", [](u32 a, u32 b) { return a * b; });
  check<u64, u64, u64>("mul.lo.s64", [](u64 a, u64 b) { return a * b; });
  check<u32, u32, u32>("mul.hi.u32", [](u64 a, u64 b) { return (a * b) >> 32; });
  check<s32, s32, s32>("mul.hi.s32", [](s64 a, s64 b) { return (a * b) >> 32; });
  check<u64, u64, u64>("mul.hi.u64", [](u128 a, u128 b) { return static_cast<u64>((a * b) >> 64); });
  check<s64, s64, s64>("mul.hi.s64", [](s128 a, s128 b) { return static_cast<s64>((a * b) >> 64); });
  check<u32, u16, u16>("mul.wide.u16", [](u32 a, u32 b) { return a * b; });
  check<s64, s32, s32>("mul.wide.s32", [](s64 a, s64 b) { return a * b; });
  check<u64, u32, u32, u64>("mad.wide.u32", [](u64 a, u64 b, u64 c) { return a * b + c; });
  check<u32, u32, u32, u32>("mad.lo.s32", [](u32 a, u32 b, u32 c) { return a * b + c; });
  check<u32, u32, u32, u32>("mad.hi.u32", [](u64 a, u64 b, u64 c) { return ((a * b) >> 32) + c; });
  check<u32, s32, s32, u32>("sad.s32", [](s64 a, s64 b, u32 c) { return std::abs(a - b) + c; });
  check<u32, u32, u32>("div.u32", [](u32 a, u32 b) { return b == 0 ? ~0u : a / b; });
  check<s64, s64, s64>("div.s64", [](s64 a, s64 b) { return b == 0 ? -1 : static_cast<s64>(s128{a} / b); });
  check<s32, s32, s32>("rem.s32", [](s64 a, s64 b) { return b == 0 ? a : a % b; });
  check<u64, u64, u64>("rem.u64", [](u64 a, u64 b) { return b == 0 ? a : a % b; });
  check<s32, s32, s32>("min.s32", [](s32 a, s32 b) { return std::min(a, b); });
  check<u16, u16, u16>("max.u16", [](u16 a, u16 b) { return std::max(a, b); });
  check<u64, u64>("neg.s64", [](u64 a) { return 0 - a; });
  check<u32, s32>("abs.s32", [](s64 a) { return std::abs(a); });
}

TEST_CASE("PTX: bits") {
  check<u32, u32, u32>("and.b32", [](u32 a, u32 b) { return a & b; });
  check<u64, u64, u64>("or.b64", [](u64 a, u64 b) { return a | b; });
  check<u16, u16, u16>("xor.b16", [](u16 a, u16 b) { return a ^ b; });
  check<u64, u64>("not.b64", [](u64 a) { return ~a; });
  check<u32, u32>("cnot.b32", [](u32 a) { return a == 0; });
  check<u16, u16, u32>("shl.b16", [](u64 a, u64 n) { return n > 15 ? 0 : a << n; });
  check<u64, u64, u32>("shl.b64", [](u64 a, u64 n) { return n > 63 ? 0 : a << n; });
  check<s32, s32, u32>("shr.s32", [](s32 a, u32 n) { return a >> std::min(n, 31u); });
  check<u64, u64, u32>("shr.u64", [](u64 a, u32 n) { return n > 63 ? 0 : a >> n; });
  check<u32, u32, u32, u32>("shf.l.wrap.b32",
                            [](u64 low, u64 high, u32 n) { return (high << 32 | low) << (n & 31) >> 32; });
  check<u32, u32, u32, u32>("shf.r.clamp.b32",
                            [](u64 low, u64 high, u32 n) { return (high << 32 | low) >> std::min(n, 32u); });
  check<u32, u32>("popc.b32", [](u32 a) { return std::popcount(a); });
  check<u32, u64>("clz.b64", [](u64 a) { return std::countl_zero(a); });
  check<u32, u32>("bfind.u32", [](u32 a) { return a == 0 ? ~0 : 31 - std::countl_zero(a); });
  check<u32, s32>("bfind.shiftamt.s32", [](s32 a) {
    return a == 0 || a == -1 ? ~0 : std::countl_zero(static_cast<u32>(a < 0 ? ~a : a));
  });
  check<u32, u32>("brev.b32", [](u32 a) {
    u32 y = 0;
    for (int i = 0; i < 32; ++i) y = y << 1 | (a >> i & 1u);
    return y;
  });
  check<u32, u32, u32>("bmsk.clamp.b32", [](u64 from, u64 n) {
    return from > 31 ? 0 : ((n > 31 ? u64{0xffffffff} : (u64{1} << n) - 1) << from);
  });
  const auto bits = [](u64 a, u32 from, u32 n) {
    u64 y = 0;
    for (u32 i = 0; i < (n & 255) && i < 32; ++i)
      if ((from & 255) + i < 32) y |= (a >> ((from & 255) + i) & 1u) << i;
    return y;
  };
  check<u32, u32, u32, u32>("bfe.u32", bits);
  check<u32, u32, u32, u32>("bfe.s32", [&](u32 a, u32 from, u32 n) {
    if ((n & 255) == 0) return u64{0};
    const u32 sign = a >> std::min((from & 255) + (n & 255) - 1, 31u) & 1u;
    const u32 kept = std::min(n & 255, (from & 255) > 31 ? 0 : 32 - (from & 255));
    return bits(a, from, n) | (sign == 0 || kept > 31 ? 0 : ~u64{0} << kept);
  });
  check<u32, u32, u32, u32>("prmt.b32", [](u64 a, u64 b, u32 how) {
    u32 y = 0;
    for (u32 i = 0; i < 4; ++i) {
      u32 byte = (b << 32 | a) >> (how >> (4 * i) & 7) * 8 & 255;
      if ((how >> (4 * i) & 8) != 0) byte = byte > 127 ? 255 : 0;
      y |= byte << (8 * i);
    }
    return y;
  });
}

TEST_CASE("PTX: an insertion, a choice by sign, a table of three bits") {
  const auto y = run_kernel(kernel_text(R"(
    bfi.b32 %r1, %r30, 0xffffffff, 8, 4;
    slct.u32.s32 %r2, 1, 2, -3;
    lop3.b32 %r3, %r30, 12, 10, 0x96;
    add.cc.u32 %r4, 0xffffffff, 1;
    addc.u32 %r5, 5, 6;
    sub.cc.u32 %r6, 0, 1;
    subc.u32 %r7, 5, 2;
    mad.lo.cc.u32 %r8, 0x80000000, 2, 5;
    madc.hi.u32 %r9, 0x80000000, 2, 6;
    add.u32 %r0, %r1, %r2;
    add.u32 %r0, %r0, %r3;
    mad.lo.u32 %r0, %r5, 100, %r0;
    mad.lo.u32 %r0, %r7, 10000, %r0;
    mad.lo.u32 %r0, %r8, 100000, %r0;
    mad.lo.u32 %r0, %r9, 1000000, %r0;
    cvt.u64.u32 %d0, %r0;
    st.global.u64 [%d33], %d0;)"),
                            {}, 16, 16);
  for (uint32_t i = 0; i < 16; ++i)
    CHECK(y[i] == static_cast<uint32_t>((0xfffff0ffu | i << 8) + 2 + (i ^ 12u ^ 10u) + 1200 + 20000 + 500000 +
                                        7000000));
}

namespace {
template <class T>
void check_arithmetic(const std::string& type) {
  for (const auto& in : {operands(), reals<T>()}) {
    check<T, T, T>(
        "add." + type, [](T a, T b) { return a + b; }, in);
    check<T, T, T>(
        "sub.rn." + type, [](T a, T b) { return a - b; }, in);
    check<T, T, T>(
        "mul." + type, [](T a, T b) { return a * b; }, in);
    check<T, T, T>(
        "div.rn." + type, [](T a, T b) { return a / b; }, in);
    check<T, T, T, T>(
        "fma.rn." + type, [](T a, T b, T c) { return std::fma(a, b, c); }, in);
    check<T, T>(
        "sqrt.rn." + type, [](T a) { return std::sqrt(a); }, in);
    check<T, T>(
        "rcp.rn." + type, [](T a) { return T{1} / a; }, in);
    check<T, T>(
        "neg." + type, [](T a) { return -a; }, in);
    check<T, T>(
        "abs." + type, [](T a) { return std::fabs(a); }, in);
    check<T, T, T>(
        "copysign." + type, [](T a, T b) { return std::copysign(b, a); }, in);
    check<T, T, T>(
        "min." + type,
        [](T a, T b) {
          return std::isnan(a) ? b : std::isnan(b) ? a : a == b ? (std::signbit(a) ? a : b) : std::fmin(a, b);
        },
        in);
    check<T, T, T>(
        "max.NaN." + type,
        [](T a, T b) {
          return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN()
                 : a == b                       ? (std::signbit(a) ? b : a)
                                                : std::fmax(a, b);
        },
        in);
  }
}

/// f in one of the processor's roundings.
template <class T, class F>
T rounded_by_processor(int how, const F& f, T a, T b, T c) {
  volatile T x = a, y = b, z = c;
  std::fesetround(how);
  volatile T result = f(x, y, z);
  std::fesetround(FE_TONEAREST);
  return result;
}
template <class T>
void check_roundings(const std::string& type) {
  const std::vector<std::pair<std::string, int>> roundings = {
      {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}, {"rn", FE_TONEAREST}};
  for (const auto& [name, how] : roundings) {
    const auto in = reals<T>();
    const auto by = [how = how](const auto& f) {
      return [how, f](T a, T b, T c) { return rounded_by_processor(how, f, a, b, c); };
    };
    const auto two = [&](const auto& f) { return [f = by(f)](T a, T b) { return f(a, b, T{0}); }; };
    check<T, T, T>("add." + name + "." + type, two([](T a, T b, T) { return a + b; }), in);
    check<T, T, T>("mul." + name + "." + type, two([](T a, T b, T) { return a * b; }), in);
    check<T, T, T>("div." + name + "." + type, two([](T a, T b, T) { return a / b; }), in);
    check<T, T, T, T>("fma." + name + "." + type, by([](T a, T b, T c) { return std::fma(a, b, c); }), in);
  }
}
}  // namespace

TEST_CASE("PTX: arithmetic of float32 and float64") {
  check_arithmetic<float>("f32");
  check_arithmetic<double>("f64");
}

TEST_CASE("PTX: roundings of float32 and float64") {
  check_roundings<float>("f32");
  check_roundings<double>("f64");
}

TEST_CASE("PTX: subnormal numbers are flushed and results saturated where an instruction says so") {
  const auto flush = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; };
  check<float, float, float>("add.ftz.f32", [&](float a, float b) { return flush(flush(a) + flush(b)); });
  check<float, float, float>("mul.ftz.sat.f32", [&](float a, float b) {
    const float y = flush(flush(a) * flush(b));
    return std::isnan(y) || y <= 0 ? 0.0f : std::min(y, 1.0f);
  });
  check<float, float>("ex2.approx.ftz.f32", [&](float a) {
    return flush(static_cast<float>(std::exp2(static_cast<double>(flush(a)))));
  });
}

TEST_CASE("PTX: functions that are approximated") {
  const auto in = reals<float>();
  check<float, float>(
      "sin.approx.f32", [](float a) { return static_cast<float>(std::sin(static_cast<double>(a))); }, in);
  check<float, float>(
      "tanh.approx.f32", [](float a) { return static_cast<float>(std::tanh(static_cast<double>(a))); }, in);
  check<float, float>(
      "lg2.approx.f32", [](float a) { return static_cast<float>(std::log2(static_cast<double>(a))); }, in);
  check<double, double>(
      "rcp.approx.ftz.f64", [](double a) { return take<double>(give(1 / a) >> 32 << 32); }, reals<double>());
}

namespace {
/// Arithmetic of a 16-bit type: exact in double, but for the sum of a fused product, which rounds once.
template <class T>
void check_small(const std::string& type) {
  const auto d = [](T x) { return as_double(x); };
  const auto nearest = [](double x) { return rounded<T>(x, Mode::nearest); };
  for (const auto& in : {operands(), reals<T>()}) {
    check<T, T, T>(
        "add.rn." + type, [&](T a, T b) { return nearest(d(a) + d(b)); }, in);
    check<T, T, T>(
        "mul." + type, [&](T a, T b) { return nearest(d(a) * d(b)); }, in);
    check<T, T, T, T>(
        "fma.rn." + type,
        [&](T a, T b, T c) {
          return nearest(static_cast<double>(static_cast<long double>(d(a)) * static_cast<long double>(d(b)) +
                                             static_cast<long double>(d(c))));
        },
        in);
    check<T, T, T>(
        "min." + type,
        [&](T a, T b) {
          return nearest(d(a) == d(b) ? (std::signbit(d(a)) ? d(a) : d(b)) : std::fmin(d(a), d(b)));
        },
        in);
  }
}
}  // namespace

TEST_CASE("PTX: arithmetic of float16 and bfloat16") {
  check_small<Half>("f16");
  check_small<Brain>("bf16");
  const auto pair = [](u32 a, u32 b) {
    const auto sum = [](uint32_t x, uint32_t y) {
      return u32{rounded<Half>(as_double(Half{static_cast<u16>(x)}) + as_double(Half{static_cast<u16>(y)}),
                               Mode::nearest)
                     .bits};
    };
    return sum(a, b) | sum(a >> 16, b >> 16) << 16;
  };
  check<u32, u32, u32>("add.f16x2", pair, reals<Half>());
}

namespace {
template <class T>
T clamped(double x) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}
}  // namespace

TEST_CASE("PTX: conversions of integers") {
  check<u32, u64>("cvt.u32.u64", [](u64 a) { return a; });
  check<s64, s32>("cvt.s64.s32", [](s32 a) { return a; });
  check<u64, u32>("cvt.u64.u8", [](u32 a) { return a & 255; });
  check<s32, u32>("cvt.s32.s8", [](u32 a) { return static_cast<int8_t>(a); });
  check<u16, u16>("cvt.u16.s8", [](u16 a) { return static_cast<int8_t>(a); });
  check<s32, s32>("cvt.sat.s16.s32", [](s32 a) { return std::clamp(a, -32768, 32767); });
  check<u32, s64>("cvt.sat.u8.s64", [](s64 a) { return std::clamp<s64>(a, 0, 255); });
  check<s32, u32>("cvt.sat.s32.u32", [](u32 a) { return std::min(a, 0x7fffffffu); });
}

TEST_CASE("PTX: conversions between integers and real numbers") {
  check<float, s64>("cvt.rn.f32.s64", [](s64 a) { return static_cast<float>(a); });
  check<double, u64>("cvt.rn.f64.u64", [](u64 a) { return static_cast<double>(a); });
  check<float, u16>("cvt.rn.f32.u16", [](u16 a) { return static_cast<float>(a); });
  check<float, u32>("cvt.rz.f32.u32", [](u32 a) {
    const auto y = static_cast<float>(a);
    return static_cast<double>(y) > a ? std::nextafter(y, 0.0f) : y;
  });
  check<s32, float>("cvt.rzi.s32.f32", [](float a) { return clamped<s32>(static_cast<double>(a)); });
  check<u32, float>("cvt.rni.u32.f32",
                    [](float a) { return clamped<u32>(std::nearbyint(static_cast<double>(a))); });
  check<s64, double>("cvt.rmi.s64.f64", [](double a) {
    return std::isnan(a) ? std::numeric_limits<s64>::min() : clamped<s64>(std::floor(a));
  });
  check<s32, double>("cvt.rzi.s32.f64", [](double a) {
    return std::isnan(a) ? std::numeric_limits<s32>::min() : clamped<s32>(a);
  });
  check<u32, float>("cvt.rzi.u8.f32", [](float a) { return clamped<uint8_t>(static_cast<double>(a)); });
  check<float, float>("cvt.rpi.f32.f32", [](float a) { return std::ceil(a); });
  check<double, double>("cvt.rzi.f64.f64", [](double a) { return std::trunc(a); });
}

TEST_CASE("PTX: conversions between real numbers") {
  check<float, double>("cvt.rn.f32.f64", [](double a) { return static_cast<float>(a); });
  check<double, float>("cvt.f64.f32", [](float a) { return static_cast<double>(a); });
  check<float, float>("cvt.sat.f32.f32",
                      [](float a) { return std::isnan(a) || a <= 0 ? 0.0f : std::min(a, 1.0f); });
  for (const auto& in : {operands(), reals<float>()}) {
    check<Half, float>(
        "cvt.rn.f16.f32", [](float a) { return rounded<Half>(static_cast<double>(a), Mode::nearest); }, in);
    check<Brain, float>(
        "cvt.rn.bf16.f32", [](float a) { return rounded<Brain>(static_cast<double>(a), Mode::nearest); }, in);
    check<u32, float, float>(
        "cvt.rn.f16x2.f32",
        [](float a, float b) { return nearest_half(a).bits * 65536u + nearest_half(b).bits; }, in);
  }
  check<float, Half>("cvt.f32.f16", [](Half a) {
    const int exponent = a.bits >> 10 & 31, digits = a.bits & 1023;
    const double size = exponent == 31  ? digits == 0 ? INFINITY : NAN
                        : exponent == 0 ? std::ldexp(digits, -24)
                                        : std::ldexp(1024 + digits, exponent - 25);
    return static_cast<float>(a.bits > 32767 ? -size : size);
  });
  check<float, Brain>("cvt.f32.bf16", [](Brain a) { return take<float>(u64{a.bits} << 16); });
}

TEST_CASE("PTX: comparisons") {
  const auto in = operands();
  const auto truths = [&](const std::string& name, unsigned bytes) {
    std::string body =
        "mul.wide.u32 %d20, %r33, 24;\nadd.u64 %d20, %d30, %d20;\nld.global.u64 %d1, [%d20];\nld.global.u64 "
        "%d2, [%d20+8];\n";
    body += from_word(bytes, 1) + from_word(bytes, 2) + "setp.ne.u32 %p3, %r30, 5;\n";
    body += name + ", " + number(bytes, 1) + ", " + number(bytes, 2) +
            (name.find(".and.") != std::string::npos ? ", !%p3" : "") + ";\n";
    return run_kernel(kernel_text(body + "selp.u64 %d0, 1, 0, %p1;\nst.global.u64 [%d33], %d0;"), in, threads,
                      threads);
  };
  const auto check_truth = [&]<class T>(const std::string& name, T, const auto& right) {
    INFO(name);
    const auto y = truths(name, sizeof(T));
    unsigned wrong = 0;
    for (unsigned i = 0; i < threads; ++i)
      wrong += y[i] != static_cast<u64>(right(take<T>(in[3 * i]), take<T>(in[3 * i + 1])));
    CHECK(wrong == 0);
  };
  check_truth("setp.lt.s32 %p1", s32{}, [](s32 a, s32 b) { return a < b; });
  check_truth("setp.hi.u64 %p1", u64{}, [](u64 a, u64 b) { return a > b; });
  check_truth("setp.ne.s16 %p1", s16{}, [](s16 a, s16 b) { return a != b; });
  check_truth("setp.eq.f32 %p1", float{}, [](float a, float b) { return a == b; });
  check_truth("setp.neu.f32 %p1", float{}, [](float a, float b) { return a != b; });
  check_truth("setp.ne.f32 %p1", float{}, [](float a, float b) { return a < b || a > b; });
  check_truth("setp.leu.f64 %p1", double{}, [](double a, double b) { return !(a > b); });
  check_truth("setp.num.f64 %p1", double{},
              [](double a, double b) { return !std::isnan(a) && !std::isnan(b); });
  check_truth("setp.gt.f16 %p1", Half{}, [](Half a, Half b) { return as_float(a) > as_float(b); });
  check_truth("setp.lt.u32 %p2|%p1", u32{}, [](u32 a, u32 b) { return !(a < b); });
  check<u32, float, float>("set.lt.u32.f32", [](float a, float b) { return a < b ? ~0u : 0u; });
  // With a third operand: true for the one thread for which it holds.
  const auto y = truths("setp.le.and.u32 %p1", 4);
  for (unsigned i = 0; i < threads; ++i)
    CHECK(y[i] == static_cast<u64>(i == 5 && take<u32>(in[15]) <= take<u32>(in[16])));
}

}  // namespace cuda_double::ptx
