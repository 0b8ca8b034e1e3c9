#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pleat/core/base/simd.h"
#include "pleat/tests/cuda_double/ptx/program.h"

/// A warp: 32 threads that execute an instruction together, those of them that are at it.

namespace cuda_double::ptx {

struct Block;

/// Lanes that are at one instruction.
struct Group {
  uint32_t pc, lanes;
  bool waits;  ///< for other lanes, at a barrier or a shuffle
};

enum class State : uint8_t { ready, at_barrier, done };

struct Warp {
  Block* block = nullptr;
  std::byte* file = nullptr;
  uint32_t lanes = 0;     ///< of the group that runs,
  uint32_t pc = 0;        ///< whose next instruction this is
  uint32_t limit = 0;     ///< at which regroup() must be called
  uint32_t mask = 0;      ///< those of `lanes` for which the instruction's guard holds
  uint32_t live = 0;      ///< lanes that have not ended
  uint32_t carry = 0;     ///< of add.cc and its kin, a bit for each lane
  uint32_t meetings = 0;  ///< of the whole warp: what lanes did before is ordered before what they do after
  unsigned number = 0;
  State state = State::ready;
  std::array<Group, warp_size> others{};
  unsigned other_count = 0;

  template <class T>
  T* at(uint32_t slot) const {
    return reinterpret_cast<T*>(file + slot);
  }
  uint32_t& predicate(uint32_t slot) const { return *at<uint32_t>(slot); }
};

[[noreturn]] void fail(const Warp& warp, const Instruction& in, const std::string& what);

/// Sends the lanes of `taken` to `target`, and others of the group elsewhere.
void branch(Warp& warp, uint32_t target, uint32_t taken, uint32_t otherwise);
/// Joins groups that have met, and chooses the one that runs; none can: the warp is at a barrier, or done.
void regroup(Warp& warp);
/// Lets the group wait at the instruction that runs until others have come to it.
void wait_for_others(Warp& warp);
void end_lanes(Warp& warp, uint32_t ended);

/// How an instruction is executed: the handler, and the bytes of each operand's lanes (0: a predicate), of
/// which the first `written` are results.
struct Choice {
  Handler run = nullptr;
  std::array<uint8_t, 6> bytes{};
  uint8_t operands = 0;
  uint8_t written = 1;
};

template <class T>
inline constexpr uint8_t bytes_of = std::is_same_v<T, bool> ? 0 : sizeof(T);

struct MaskReader {
  uint32_t mask;
  bool operator[](unsigned lane) const { return (mask >> lane & 1u) != 0; }
};
template <class T>
auto reader(const Warp& warp, uint32_t slot) {
  if constexpr (std::is_same_v<T, bool>)
    return MaskReader{warp.predicate(slot)};
  else
    return static_cast<const T*>(warp.at<T>(slot));
}

inline void write_mask(const Warp& warp, uint32_t slot, uint32_t values) {
  uint32_t& own = warp.predicate(slot);
  own = (own & ~warp.mask) | (values & warp.mask);
}

/// Writes value(lane) to the lanes of the mask.
template <class T, class Value>
void write_lanes(const Warp& warp, uint32_t slot, const Value& value) {
  if constexpr (std::is_same_v<T, bool>) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < warp_size; ++i) bits |= static_cast<uint32_t>(value(i)) << i;
    write_mask(warp, slot, bits);
  } else {
    T* const to = warp.at<T>(slot);
    const uint32_t mask = warp.mask;
    if (mask == all_lanes) {
      PLEAT_INDEPENDENT_ITERATIONS
      for (unsigned i = 0; i < warp_size; ++i) to[i] = value(i);
    } else {
      PLEAT_INDEPENDENT_ITERATIONS
      for (unsigned i = 0; i < warp_size; ++i)
        if ((mask >> i & 1u) != 0) to[i] = value(i);
    }
  }
}

/// Result = F::of(sources...), lane by lane.
template <class F, class Result, class... Sources>
void map_lanes(Warp& warp, const Instruction& in) {
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    const auto sources = std::make_tuple(reader<Sources>(warp, in.slot[k + 1])...);
    write_lanes<Result>(warp, in.slot[0], [&](unsigned i) {
      return static_cast<Result>(F::of(static_cast<Sources>(std::get<k>(sources)[i])...));
    });
  }
  (std::index_sequence_for<Sources...>{});
}

template <class F, class Result, class... Sources>
Choice lane_by_lane() {
  return {
      &map_lanes<F, Result, Sources...>, {bytes_of<Result>, bytes_of<Sources>...}, 1 + sizeof...(Sources)};
}

template <class Function>
void for_lanes(uint32_t mask, const Function& function) {
  for (; mask != 0; mask &= mask - 1) function(static_cast<unsigned>(std::countr_zero(mask)));
}

}  // namespace cuda_double::ptx
