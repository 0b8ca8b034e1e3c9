#include "pleat/tests/cuda_double/ptx/machine.h"

#include <algorithm>
#include <numeric>

#include "pleat/tests/cuda_double/finding.h"
#include "pleat/tests/cuda_double/queue.h"

namespace cuda_double::ptx {
namespace {

constexpr uint32_t never = ~0u;

/// Memory that stays for the next launch: bytes that begin at a multiple of 64. It does not come from
/// std::aligned_alloc, which is for tensors, and closed while a kernel runs.
class Room {
 public:
  std::byte* of(std::size_t bytes) {
    if (memory_.size() < bytes + line) memory_ = std::vector<std::byte>(bytes + line);
    return memory_.data() + (line - reinterpret_cast<std::uintptr_t>(memory_.data()) % line) % line;
  }

 private:
  static constexpr std::size_t line = 64;
  std::vector<std::byte> memory_;
};

/// One launch at a time executes: whoever launches holds the machine's lock.
struct Rooms {
  Room files, shared, frames, parameters;
};
Rooms& rooms() {
  static auto* result = new Rooms;
  return *result;
}

[[noreturn]] void block_finding(const Block& block, const std::string& what) {
  finding(block.program->name + ": " + what);
}

/// Where the lanes of the group that runs have something to wait for: the lowest place before others' lanes.
void set_limit(Warp& warp) {
  warp.limit = never;
  for (unsigned i = 0; i < warp.other_count; ++i)
    if (warp.others[i].pc > warp.pc) warp.limit = std::min(warp.limit, warp.others[i].pc);
}

void add_group(Warp& warp, const Group& group) {
  for (unsigned i = 0; i < warp.other_count; ++i) {
    if (warp.others[i].pc != group.pc) continue;
    warp.others[i].lanes |= group.lanes;
    warp.others[i].waits = false;  // perhaps they were waited for
    return;
  }
  warp.others[warp.other_count++] = group;
}

/// Nobody of the warp can go on. That is right when all its lanes are at one barrier, or have ended.
void stop(Warp& warp) {
  if (warp.other_count == 0) {
    warp.state = State::done;
    return;
  }
  const std::vector<Instruction>& code = warp.block->program->code;
  const auto at_barrier = [&](const Group& group) { return code[group.pc].run == &wait_at_barrier; };
  bool all = true, none = true;
  for (unsigned i = 0; i < warp.other_count; ++i) (at_barrier(warp.others[i]) ? none : all) = false;
  if (none) block_finding(*warp.block, "threads of a warp meet at different shuffles");
  if (!all)
    block_finding(
        *warp.block,
        "threads of a block wait for each other for ever: some at __syncthreads, others at a shuffle");
  block_finding(*warp.block, warp.other_count > 1
                                 ? "threads of a block wait at different __syncthreads"
                                 : "threads of a warp ended while others wait at __syncthreads");
}

uint64_t fixed_value(const Block& block, const Warp& warp, unsigned lane, const Fixed& fixed) {
  const dim3& threads = block.launch->threads;
  const dim3& blocks = block.launch->blocks;
  const unsigned thread = warp.number * warp_size + lane;
  switch (fixed.what) {
    case Special::constant:
      return fixed.value;
    case Special::parameters:
      return reinterpret_cast<uint64_t>(block.parameters) + fixed.value;
    case Special::frame:
      return reinterpret_cast<uint64_t>(block.frames) + thread * block.program->frame_bytes + fixed.value;
    case Special::shared:
      return reinterpret_cast<uint64_t>(block.shared) + fixed.value;
    case Special::thread_x:
      return thread % threads.x;
    case Special::thread_y:
      return thread / threads.x % threads.y;
    case Special::thread_z:
      return thread / threads.x / threads.y;
    case Special::threads_x:
      return threads.x;
    case Special::threads_y:
      return threads.y;
    case Special::threads_z:
      return threads.z;
    case Special::block_x:
      return block.index.x;
    case Special::block_y:
      return block.index.y;
    case Special::block_z:
      return block.index.z;
    case Special::blocks_x:
      return blocks.x;
    case Special::blocks_y:
      return blocks.y;
    case Special::blocks_z:
      return blocks.z;
    case Special::lane:
      return lane;
    case Special::warp:
      return warp.number;
    case Special::warps:
      return block.warps.size();
    case Special::lanes_equal:
      return uint64_t{1} << lane;
    case Special::lanes_below:
      return (uint64_t{1} << lane) - 1;
    case Special::lanes_to:
      return (uint64_t{2} << lane) - 1;
    case Special::lanes_above:
      return all_lanes & ~((uint64_t{2} << lane) - 1);
    case Special::lanes_from:
      return all_lanes & ~((uint64_t{1} << lane) - 1);
    case Special::dynamic_shared:
      return block.launch->dynamic_shared;
    case Special::clock:
      break;
  }
  return 0;
}

bool depends_on_block(Special what) {
  return what == Special::block_x || what == Special::block_y || what == Special::block_z;
}

bool differs_by_lane(Special what) {
  return what == Special::frame || (what >= Special::thread_x && what <= Special::thread_z) ||
         what == Special::lane || (what >= Special::lanes_equal && what <= Special::lanes_from);
}

template <class T>
void write_lanes_of(const Block& block, const Warp& warp, const Fixed& fixed) {
  T* const to = warp.at<T>(fixed.slot);
  if (!differs_by_lane(fixed.what)) {
    std::fill_n(to, warp_size, static_cast<T>(fixed_value(block, warp, 0, fixed)));
    return;
  }
  for (unsigned lane = 0; lane < warp_size; ++lane)
    to[lane] = static_cast<T>(fixed_value(block, warp, lane, fixed));
}

/// Writes the values that stay: at a launch all, before a further block those that are others there.
void write_fixed(const Block& block, const Warp& warp, bool all) {
  for (const Fixed& fixed : block.program->fixed) {
    if (!all && !depends_on_block(fixed.what)) continue;
    if (fixed.bytes == 0)
      warp.predicate(fixed.slot) = fixed.value != 0 ? all_lanes : 0;
    else if (fixed.bytes == 2)
      write_lanes_of<uint16_t>(block, warp, fixed);
    else if (fixed.bytes == 4)
      write_lanes_of<uint32_t>(block, warp, fixed);
    else
      write_lanes_of<uint64_t>(block, warp, fixed);
  }
}

template <bool counts>
void run_warp(Warp& warp) {
  const Instruction* const code = warp.block->program->code.data();
  InstructionCount* const counted = counts ? warp.block->counter->of.data() : nullptr;
  while (warp.state == State::ready) {
    const Instruction& in = code[warp.pc];
    warp.mask = warp.lanes & (warp.predicate(in.guard) ^ in.guard_flip);
    if (counts) {
      ++counted[warp.pc].warps;
      counted[warp.pc].threads += static_cast<unsigned>(std::popcount(warp.mask));
    }
    ++warp.pc;
    if (warp.mask != 0) in.run(warp, in);
    if (warp.pc >= warp.limit) regroup(warp);
  }
}

/// Opens the barrier that all warps of the block wait at.
void open_barrier(Block& block) {
  const Warp* first = nullptr;
  unsigned waiting = 0;
  uint32_t votes = 0, against = 0, number_of_votes = 0;
  const auto at = [&](const Warp& warp) -> const Instruction& { return block.program->code[warp.pc]; };
  const auto barrier = [&](const Warp& warp) { return *warp.at<uint32_t>(at(warp).slot[1]); };
  for (const Warp& warp : block.warps) {
    if (warp.state == State::done) continue;
    if (first != nullptr && (barrier(warp) != barrier(*first) || at(warp).mode != at(*first).mode))
      block_finding(block, "threads of a block wait at different __syncthreads");
    if (first == nullptr) first = &warp;
    waiting += static_cast<unsigned>(std::popcount(warp.lanes));
    const uint32_t own =
        (warp.predicate(at(warp).slot[2]) ^ static_cast<uint32_t>(at(warp).number)) & warp.lanes;
    votes |= own;
    against |= warp.lanes & ~own;
    number_of_votes += static_cast<unsigned>(std::popcount(own));
  }
  if (waiting < block.threads)
    block_finding(block, std::to_string(block.threads - waiting) + " threads of a block ended while " +
                             std::to_string(waiting) + " wait at __syncthreads");
  for (Warp& warp : block.warps) {
    const Instruction& in = at(warp);
    warp.mask = warp.lanes;
    if (in.mode == 'p')
      write_lanes<uint32_t>(warp, in.slot[0], [&](unsigned) { return number_of_votes; });
    else if (in.mode != 0)
      write_mask(warp, in.slot[0], (in.mode == 'a' ? against == 0 : votes != 0) ? all_lanes : 0);
    ++warp.pc;
    warp.state = State::ready;
  }
  block.watch.barrier();
}

void run_block(Block& block) {
  std::vector<Warp*> ready;
  block.watch.begin_block(block.shared_bytes, block.program->shared_grain);
  for (Warp& warp : block.warps) {
    const unsigned threads = std::min(block.threads - warp.number * warp_size, warp_size);
    warp.live = warp.lanes = static_cast<uint32_t>((uint64_t{1} << threads) - 1);
    warp.pc = warp.meetings = 0;
    warp.limit = never;
    warp.state = State::ready;
    ready.push_back(&warp);
  }
  for (;;) {
    std::shuffle(ready.begin(), ready.end(), draw());
    for (Warp* const warp : ready) block.counter != nullptr ? run_warp<true>(*warp) : run_warp<false>(*warp);
    std::erase_if(ready, [](const Warp* warp) { return warp->state == State::done; });
    if (ready.empty()) return;
    open_barrier(block);
  }
}

/// The memory that blocks of a launch have in turn.
Block first_block(const Launch& launch) {
  Block block;
  block.launch = &launch;
  block.program = launch.program.get();
  block.threads = launch.threads.x * launch.threads.y * launch.threads.z;
  block.shared_bytes = block.program->static_shared + launch.dynamic_shared;
  block.counter = counter_of(launch.program);
  const unsigned warps = (block.threads + warp_size - 1) / warp_size;
  block.shared = rooms().shared.of(block.shared_bytes);
  block.frames = rooms().frames.of(block.program->frame_bytes * warps * warp_size);
  block.parameters = rooms().parameters.of(launch.parameters.size());
  std::copy(launch.parameters.begin(), launch.parameters.end(), block.parameters);
  std::byte* const files = rooms().files.of(block.program->file_bytes * warps);
  block.warps.resize(warps);
  for (unsigned i = 0; i < warps; ++i) {
    block.warps[i].number = i;
    block.warps[i].file = files + i * block.program->file_bytes;
  }
  return block;
}

}  // namespace

void fail(const Warp& warp, const Instruction& in, const std::string& what) {
  block_finding(*warp.block, what + " (" + std::string(warp.block->program->lines[in.line]) + ")");
}

void branch(Warp& warp, uint32_t target, uint32_t taken, uint32_t otherwise) {
  if (taken == warp.lanes) {
    warp.pc = target;
  } else {
    if (warp.block->counter != nullptr) ++warp.block->counter->of[warp.pc - 1].divergences;
    warp.pc = otherwise;
    add_group(warp, {target, taken, false});
    warp.lanes &= ~taken;
  }
  if (warp.other_count > 0) regroup(warp);
}

void regroup(Warp& warp) {
  if (warp.lanes != 0) add_group(warp, {warp.pc, warp.lanes, false});
  unsigned chosen = warp.other_count;
  for (unsigned i = 0; i < warp.other_count; ++i)
    if (!warp.others[i].waits && (chosen == warp.other_count || warp.others[i].pc < warp.others[chosen].pc))
      chosen = i;
  if (chosen == warp.other_count) {
    warp.lanes = 0;
    stop(warp);
    return;
  }
  warp.pc = warp.others[chosen].pc;
  warp.lanes = warp.others[chosen].lanes;
  warp.others[chosen] = warp.others[--warp.other_count];
  set_limit(warp);
}

void wait_for_others(Warp& warp) {
  add_group(warp, {warp.pc - 1, warp.lanes, true});
  warp.lanes = 0;
  regroup(warp);
}

void end_lanes(Warp& warp, uint32_t ended) {
  warp.live &= ~ended;
  warp.lanes &= ~ended;
  if (warp.lanes != 0) return;
  // Those that wait may have waited for these.
  for (unsigned i = 0; i < warp.other_count; ++i) warp.others[i].waits = false;
  regroup(warp);
}

void wait_at_barrier(Warp& warp, const Instruction&) {
  if (warp.mask != warp.live) return wait_for_others(warp);
  --warp.pc;
  warp.state = State::at_barrier;
}

void run_grid(const Launch& launch) {
  Block block = first_block(launch);
  if (block.counter != nullptr) {
    ++block.counter->launches;
    const uint64_t blocks = uint64_t{launch.blocks.x} * launch.blocks.y * launch.blocks.z;
    block.counter->blocks += blocks;
    block.counter->threads += blocks * block.threads;
    block.counter->shared_bytes = block.shared_bytes;
  }
  for (Warp& warp : block.warps) {
    warp.block = &block;
    write_fixed(block, warp, true);
  }
  std::vector<uint64_t> numbers(uint64_t{launch.blocks.x} * launch.blocks.y * launch.blocks.z);
  std::iota(numbers.begin(), numbers.end(), uint64_t{0});
  std::shuffle(numbers.begin(), numbers.end(), draw());
  for (const uint64_t number : numbers) {
    block.index = {static_cast<unsigned>(number % launch.blocks.x),
                   static_cast<unsigned>(number / launch.blocks.x % launch.blocks.y),
                   static_cast<unsigned>(number / launch.blocks.x / launch.blocks.y)};
    for (const Warp& warp : block.warps) write_fixed(block, warp, false);
    run_block(block);
  }
}

}  // namespace cuda_double::ptx
