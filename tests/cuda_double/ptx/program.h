#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// A kernel of PTX, ready to be executed by warps (machine.h).

namespace cuda_double::ptx {

inline constexpr unsigned warp_size = 32;
inline constexpr uint32_t all_lanes = 0xffffffffu;

struct Warp;
struct Instruction;
using Handler = void (*)(Warp&, const Instruction&);

/// What the table of counts tells apart.
enum class Kind : uint8_t {
  integer,
  real,
  conversion,
  move,
  global,
  shared,
  local,
  parameter,
  control,
  meeting
};
inline constexpr std::size_t kinds = 10;

enum class Space : uint8_t { generic, global, shared, local, parameter };

/// Arrays of a warp's file hold a register of all its lanes, one behind the other; a predicate is a mask.
struct Instruction {
  Handler run = nullptr;
  std::array<uint32_t, 6> slot{};  ///< where registers are in the file; those that are written come first
  uint32_t guard = 0;              ///< the predicate without which it does nothing; the first is always true
  uint32_t guard_flip = 0;         ///< all ones where it must be false
  uint8_t written = 0, used = 0;   ///< of the slots
  Kind kind = Kind::move;
  Space space = Space::generic;
  uint8_t element = 0, count = 1;  ///< bytes and numbers that an access to memory moves
  uint8_t mode = 0;                ///< of rounding and comparing: what the handler makes of it
  bool flush = false, saturate = false, wide_address = true, writes = false, reads = false;
  int64_t number = 0;   ///< added to an address; an immediate
  uint32_t target = 0;  ///< of a branch
  uint32_t line = 0;    ///< of Program::lines
};

/// A value that stays in a warp's file while a launch, a block or a warp lasts.
enum class Special : uint8_t {
  constant,
  parameters,
  frame,
  shared,
  thread_x,
  thread_y,
  thread_z,
  threads_x,
  threads_y,
  threads_z,
  block_x,
  block_y,
  block_z,
  blocks_x,
  blocks_y,
  blocks_z,
  lane,
  warp,
  warps,
  lanes_equal,
  lanes_below,
  lanes_to,
  lanes_above,
  lanes_from,
  dynamic_shared,
  clock
};
struct Fixed {
  uint32_t slot;
  uint32_t bytes;  ///< of a lane; 0: a predicate
  Special what;
  uint64_t value;  ///< of a constant; added to the others
};

struct Parameter {
  std::size_t offset, bytes;
};

struct Program {
  std::string symbol;  ///< mangled
  std::string name;    ///< for people
  std::vector<Instruction> code;
  std::vector<std::string_view> lines;  ///< the text of each instruction
  std::vector<Fixed> fixed;
  std::vector<std::vector<uint32_t>> tables;  ///< of brx.idx
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  std::size_t static_shared = 0;
  std::size_t frame_bytes = 0;   ///< local memory of a thread
  std::size_t file_bytes = 0;    ///< of a warp's registers
  std::size_t shared_grain = 4;  ///< the watch of shared memory looks at so many bytes at once
  unsigned most_threads = 1024;
};

}  // namespace cuda_double::ptx
