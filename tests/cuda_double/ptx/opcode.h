#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "pleat/tests/cuda_double/ptx/rounding.h"
#include "pleat/tests/cuda_double/ptx/warp.h"

/// The name of an instruction ("ld.global.v4.u32"), and what executes it.

namespace cuda_double::ptx {

enum class Type : uint8_t {
  none,
  pred,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  b8,
  b16,
  b32,
  b64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  f32,
  f64
};

/// Why a kernel cannot be executed.
struct Unsupported {
  std::string what;
};

Type type_named(std::string_view name);
/// Bytes of a number; 0 of a predicate.
unsigned size_of(Type type);

struct Opcode {
  std::string_view text;
  std::vector<std::string_view> parts;

  std::string_view base() const { return parts[0]; }
  bool has(std::string_view part) const {
    return std::find(parts.begin() + 1, parts.end(), part) != parts.end();
  }
  /// Of the last part that is one, or the one before it.
  Type type(unsigned from_end = 0) const;
  Mode mode() const {
    return has("rz") || has("rzi")   ? Mode::zero
           : has("rm") || has("rmi") ? Mode::down
           : has("rp") || has("rpi") ? Mode::up
                                     : Mode::nearest;
  }
};
/// Throws Unsupported for a part whose meaning is not known. The text stays where it is.
Opcode opcode_of(std::string_view text);

/// What executes it, or nothing: each knows the instructions of one kind. They may set fields of `in`.
Choice integer_choice(const Opcode& op, Instruction& in);
Choice real_choice(const Opcode& op, Instruction& in);
/// Of a register from its parts, or the parts from it: the register's slot is the first, or the last.
Choice packing_choice(unsigned bytes, unsigned parts, bool unpacks, Instruction& in);
Choice comparing_choice(const Opcode& op, Instruction& in);
Choice conversion_choice(const Opcode& op, Instruction& in, unsigned to_register, unsigned from_register);
/// Of loads and stores; the registers' size may be more than that of the numbers. `named`: the address is a
/// variable's, and of all threads.
Choice access_choice(const Opcode& op, Instruction& in, unsigned register_bytes, bool named);
Choice atomic_choice(const Opcode& op, Instruction& in);
/// What comes after an instruction: the next one, or one that it names, or none.
enum class BranchKind : uint8_t { none, branch, table, end };
BranchKind branch_kind(const Instruction& in);
Choice meeting_choice(const Opcode& op, Instruction& in, std::size_t operands);

/// Calls function(T{}) with an integer type, or a float's bits.
template <class Function>
Choice with_integer(Type type, const Function& function) {
  switch (type) {
    case Type::u16:
    case Type::b16:
      return function(uint16_t{});
    case Type::s16:
      return function(int16_t{});
    case Type::u32:
    case Type::b32:
      return function(uint32_t{});
    case Type::s32:
      return function(int32_t{});
    case Type::u64:
    case Type::b64:
      return function(uint64_t{});
    case Type::s64:
      return function(int64_t{});
    default:
      return {};
  }
}

template <class Function>
Choice with_bits(unsigned bytes, const Function& function) {
  switch (bytes) {
    case 2:
      return function(uint16_t{});
    case 4:
      return function(uint32_t{});
    case 8:
      return function(uint64_t{});
    default:
      return {};
  }
}

}  // namespace cuda_double::ptx
