// Instructions by which threads meet: barriers, shuffles, votes; and those that say what comes next.
#include "pleat/tests/cuda_double/ptx/machine.h"
#include "pleat/tests/cuda_double/ptx/opcode.h"

namespace cuda_double::ptx {
namespace {

void go_on(Warp&, const Instruction&) {}

void branch_to(Warp& warp, const Instruction& in) { branch(warp, in.target, warp.mask, warp.pc); }

/// brx.idx: each lane has its own target.
void branch_by_table(Warp& warp, const Instruction& in) {
  const std::vector<uint32_t>& table = warp.block->program->tables[in.target];
  const uint32_t* const index = warp.at<uint32_t>(in.slot[0]);
  const uint32_t first = index[std::countr_zero(warp.mask)];
  uint32_t taken = 0;
  for_lanes(warp.mask, [&](unsigned i) {
    if (index[i] >= table.size()) fail(warp, in, "an index past the end of the table");
    if (index[i] == first) taken |= 1u << i;
  });
  const bool others = taken != warp.mask;
  branch(warp, table[first], taken, others ? warp.pc - 1 : warp.pc);  // which come here again
}

void end(Warp& warp, const Instruction&) { end_lanes(warp, warp.mask); }
void trap(Warp& warp, const Instruction& in) { fail(warp, in, "trap"); }

const char* text_at(uint64_t address) { return reinterpret_cast<const char*>(address); }
/// Its parameters are in local memory: message, file, line, function.
void assertion_failed(Warp& warp, const Instruction& in) {
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
  const auto parameter = [&](unsigned k) {
    return *reinterpret_cast<const uint64_t*>(warp.at<uint64_t>(in.slot[k])[lane]);
  };
  fail(warp, in,
       std::string("assertion failed: ") + text_at(parameter(0)) + ", " + text_at(parameter(1)) + ":" +
           std::to_string(static_cast<uint32_t>(parameter(2))));
}

/// Whether all lanes of the group that must meet here are here; otherwise the group waits. `members` are in
/// a register of each lane.
bool all_are_here(Warp& warp, const Instruction& in, uint32_t slot) {
  const uint32_t* const members = warp.at<uint32_t>(slot);
  uint32_t missing = 0;
  for_lanes(warp.mask, [&](unsigned i) {
    if ((members[i] >> i & 1u) == 0) fail(warp, in, "a thread calls a shuffle whose mask lacks it");
    missing |= members[i] & ~warp.mask;
  });
  if (missing == 0) return true;
  if ((missing & warp.live) != missing)
    fail(warp, in, "threads of a warp ended while others wait for them at a shuffle");
  wait_for_others(warp);
  return false;
}

enum class Way : uint8_t { up, down, butterfly, index };

/// The lane that a lane reads from; false: its own, for the other is outside of its part of the warp.
struct Source {
  unsigned lane;
  bool inside;
};
Source source_of(Way way, unsigned lane, uint32_t b, uint32_t c) {
  const auto own = static_cast<int>(lane), by = static_cast<int>(b & 31),
             segments = static_cast<int>(c >> 8 & 31);
  const int most = (own & segments) | (static_cast<int>(c & 31) & ~segments);
  const int least = own & segments;
  int from = 0;
  switch (way) {
    case Way::up:
      from = own - by;
      return from >= most ? Source{static_cast<unsigned>(from), true} : Source{lane, false};
    case Way::down:
      from = own + by;
      break;
    case Way::butterfly:
      from = own ^ by;
      break;
    case Way::index:
      from = least | (by & ~segments);
  }
  return from <= most ? Source{static_cast<unsigned>(from), true} : Source{lane, false};
}

template <Way way>
void shuffle(Warp& warp, const Instruction& in) {
  if (!all_are_here(warp, in, in.slot[5])) return;
  std::array<uint32_t, warp_size> words{};
  const uint32_t* const word = warp.at<uint32_t>(in.slot[2]);
  uint32_t inside = 0;
  for_lanes(warp.mask, [&](unsigned i) {
    const Source source =
        source_of(way, i, warp.at<uint32_t>(in.slot[3])[i], warp.at<uint32_t>(in.slot[4])[i]);
    const uint32_t members = warp.at<uint32_t>(in.slot[5])[i];
    if ((members & warp.mask & 1u << source.lane) == 0)
      fail(warp, in, "a shuffle reads from a thread that takes no part in it");
    words[i] = word[source.lane];
    inside |= static_cast<uint32_t>(source.inside) << i;
  });
  write_lanes<uint32_t>(warp, in.slot[0], [&](unsigned i) { return words[i]; });
  write_mask(warp, in.slot[1], inside);
}

enum class Vote : uint8_t { all, any, uniform, ballot };

template <Vote vote>
void count_votes(Warp& warp, const Instruction& in) {
  if (!all_are_here(warp, in, in.slot[2])) return;
  const uint32_t yes = (warp.predicate(in.slot[1]) ^ static_cast<uint32_t>(in.number)) & warp.mask;
  const uint32_t* const members = warp.at<uint32_t>(in.slot[2]);
  uint32_t results = 0;
  std::array<uint32_t, warp_size> ballots{};
  for_lanes(warp.mask, [&](unsigned i) {
    const uint32_t own = yes & members[i];
    const bool all = own == members[i], any = own != 0;
    ballots[i] = own;
    results |= static_cast<uint32_t>(vote == Vote::all ? all : vote == Vote::any ? any : all || !any) << i;
  });
  if (vote == Vote::ballot)
    write_lanes<uint32_t>(warp, in.slot[0], [&](unsigned i) { return ballots[i]; });
  else
    write_mask(warp, in.slot[0], results);
}

/// match: the lanes that have the same word, or for `all`: all of them, and whether they do.
template <class T, bool all>
void match(Warp& warp, const Instruction& in) {
  if (!all_are_here(warp, in, in.slot[3])) return;
  const T* const words = warp.at<T>(in.slot[2]);
  const uint32_t* const members = warp.at<uint32_t>(in.slot[3]);
  std::array<uint32_t, warp_size> same{};
  uint32_t alike = 0;
  for_lanes(warp.mask, [&](unsigned i) {
    for_lanes(members[i], [&](unsigned k) { same[i] |= static_cast<uint32_t>(words[k] == words[i]) << k; });
    if (same[i] == members[i]) alike |= 1u << i;
    if (all && same[i] != members[i]) same[i] = 0;
  });
  write_lanes<uint32_t>(warp, in.slot[0], [&](unsigned i) { return same[i]; });
  write_mask(warp, in.slot[1], alike);
}

template <class F, class T>
void reduce(Warp& warp, const Instruction& in) {
  if (!all_are_here(warp, in, in.slot[2])) return;
  const T* const words = warp.at<T>(in.slot[1]);
  std::array<T, warp_size> results{};
  for_lanes(warp.mask, [&](unsigned i) {
    uint32_t members = warp.at<uint32_t>(in.slot[2])[i];
    T total = words[std::countr_zero(members)];
    for_lanes(members & (members - 1), [&](unsigned k) { total = F::of(total, words[k]); });
    results[i] = total;
  });
  write_lanes<T>(warp, in.slot[0], [&](unsigned i) { return results[i]; });
}

// clang-format off
struct SumOf { static uint32_t of(uint32_t a, uint32_t b) { return a + b; } };
struct LeastOf { template <class T> static T of(T a, T b) { return b < a ? b : a; } };
struct GreatestOf { template <class T> static T of(T a, T b) { return a < b ? b : a; } };
struct AndOf { static uint32_t of(uint32_t a, uint32_t b) { return a & b; } };
struct OrOf { static uint32_t of(uint32_t a, uint32_t b) { return a | b; } };
struct XorOf { static uint32_t of(uint32_t a, uint32_t b) { return a ^ b; } };
// clang-format on

void meet_warp(Warp& warp, const Instruction& in) {
  if (all_are_here(warp, in, in.slot[0])) ++warp.meetings;
}
void active_lanes(Warp& warp, const Instruction& in) {
  const uint32_t lanes = warp.mask;
  write_lanes<uint32_t>(warp, in.slot[0], [&](unsigned) { return lanes; });
}

Choice shuffle_choice(const Opcode& op) {
  const Handler run = op.has("up")     ? &shuffle<Way::up>
                      : op.has("down") ? &shuffle<Way::down>
                      : op.has("bfly") ? &shuffle<Way::butterfly>
                                       : &shuffle<Way::index>;
  return {run, {4, 0, 4, 4, 4, 4}, 6, 2};
}
Choice vote_choice(const Opcode& op) {
  if (op.has("ballot")) return {&count_votes<Vote::ballot>, {4, 0, 4}, 3};
  const Handler run = op.has("all")   ? &count_votes<Vote::all>
                      : op.has("any") ? &count_votes<Vote::any>
                                      : &count_votes<Vote::uniform>;
  return {run, {0, 0, 4}, 3};
}
Choice match_choice(const Opcode& op) {
  return with_bits(size_of(op.type()), [&](auto t) -> Choice {
    using T = decltype(t);
    return {op.has("all") ? &match<T, true> : &match<T, false>, {4, 0, sizeof(T), 4}, 4, 2};
  });
}
Choice reduce_choice(const Opcode& op) {
  const bool is_signed = op.type() == Type::s32;
  const Handler run = op.has("add")   ? &reduce<SumOf, uint32_t>
                      : op.has("and") ? &reduce<AndOf, uint32_t>
                      : op.has("or")  ? &reduce<OrOf, uint32_t>
                      : op.has("xor") ? &reduce<XorOf, uint32_t>
                      : op.has("min") ? is_signed ? &reduce<LeastOf, int32_t> : &reduce<LeastOf, uint32_t>
                      : op.has("max")
                          ? is_signed ? &reduce<GreatestOf, int32_t> : &reduce<GreatestOf, uint32_t>
                          : nullptr;
  return {run, {4, 4, 4}, 3};
}

}  // namespace

BranchKind branch_kind(const Instruction& in) {
  if (in.run == &branch_to) return BranchKind::branch;
  if (in.run == &branch_by_table) return BranchKind::table;
  return in.run == &end || in.run == &trap || in.run == &assertion_failed ? BranchKind::end
                                                                          : BranchKind::none;
}

Choice meeting_choice(const Opcode& op, Instruction& in, std::size_t operands) {
  const std::string_view base = op.base();
  in.kind = Kind::control;
  if (base == "bra") return {&branch_to, {}, 0};
  if (base == "brx") return {&branch_by_table, {4}, 1, 0};
  if (base == "ret" || base == "exit") return {&end, {}, 0};
  if (base == "trap" || base == "brkpt") return {&trap, {}, 0};
  if (base == "call") return {&assertion_failed, {8, 8, 8}, 3, 0};
  in.kind = Kind::meeting;
  // Blocks run one after the other, and what a warp stores is there at once.
  if (base == "membar" || base == "fence" || base == "nanosleep" || base == "prefetch")
    return {&go_on, {}, 0};
  if (base == "activemask") return {&active_lanes, {4}, 1};
  if (base == "bar" && op.has("warp")) return {&meet_warp, {4}, 1, 0};
  // The result, the barrier's number, the predicate.
  if ((base == "bar" || base == "barrier") && op.has("sync") && operands == 1)
    return {&wait_at_barrier, {0, 4, 0}, 3};
  if ((base == "bar" || base == "barrier") && op.has("red") && operands == 3) {
    in.mode = op.has("popc") ? 'p' : op.has("and") ? 'a' : 'o';
    return {&wait_at_barrier, {static_cast<uint8_t>(in.mode == 'p' ? 4 : 0), 4, 0}, 3};
  }
  if (!op.has("sync")) return {};
  if (base == "shfl") return shuffle_choice(op);
  if (base == "vote") return vote_choice(op);
  if (base == "match") return match_choice(op);
  if (base == "redux") return reduce_choice(op);
  return {};
}

}  // namespace cuda_double::ptx
