// Loads, stores and atomic operations: where lanes reach to, whether they may, and what it costs.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "pleat/tests/cuda_double/memory.h"
#include "pleat/tests/cuda_double/ptx/machine.h"
#include "pleat/tests/cuda_double/ptx/module.h"
#include "pleat/tests/cuda_double/ptx/opcode.h"

namespace cuda_double::ptx {
namespace {

using Use = SharedWatch::Use;

/// Where the lanes of an access reach to; lanes that take no part have the address of one that does.
struct Places {
  alignas(64) std::array<uint64_t, warp_size> at;  // find_addresses fills it
  uint64_t low = 0, high = 0;
  bool in_a_row = false;  ///< each lane behind the one before, and all take part
  bool same = false;      ///< all at one place
};

std::string hexadecimal(uint64_t address) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(address));
  return text.data();
}

unsigned bytes_moved(const Instruction& in) { return static_cast<unsigned>(in.element) * in.count; }

void find_addresses(const Warp& warp, const Instruction& in, uint32_t slot, Places& places) {
  const auto offset = static_cast<uint64_t>(in.number);
  if (in.wide_address) {
    const uint64_t* const base = warp.at<uint64_t>(slot);
    for (unsigned i = 0; i < warp_size; ++i) places.at[i] = base[i] + offset;
  } else {
    const uint32_t* const base = warp.at<uint32_t>(slot);
    for (unsigned i = 0; i < warp_size; ++i)
      places.at[i] = static_cast<uint32_t>(base[i] + static_cast<uint32_t>(offset));
  }
  if (warp.mask == all_lanes) return;
  const uint64_t first = places.at[static_cast<unsigned>(std::countr_zero(warp.mask))];
  for (unsigned i = 0; i < warp_size; ++i)
    if ((warp.mask >> i & 1u) == 0) places.at[i] = first;
}

void check_alignment(const Warp& warp, const Instruction& in, uint64_t address) {
  const uint64_t bytes = bytes_moved(in);
  if ((address & (bytes - 1)) != 0)
    fail(warp, in, "misaligned address " + hexadecimal(address) + " for " + std::to_string(bytes) + " bytes");
}

void measure(const Warp& warp, const Instruction& in, Places& places) {
  const uint64_t bytes = bytes_moved(in), first = places.at[0];
  uint64_t from_row = 0, from_first = 0;
  for (unsigned i = 0; i < warp_size; ++i) {
    from_row |= places.at[i] ^ (first + i * bytes);
    from_first |= places.at[i] ^ first;
  }
  places.same = from_first == 0;
  places.in_a_row = from_row == 0 && warp.mask == all_lanes;
  places.low = first;
  places.high = first + (places.in_a_row ? (warp_size - 1) * bytes : 0);
  check_alignment(warp, in, first);
  if (places.same || places.in_a_row) return;
  uint64_t low = first, high = first, ones = 0;
  for (const uint64_t at : places.at) {
    low = std::min(low, at);
    high = std::max(high, at);
    ones |= at;
  }
  places.low = low;
  places.high = high;
  if ((ones & (bytes - 1)) != 0)
    for_lanes(warp.mask, [&](unsigned i) { check_alignment(warp, in, places.at[i]); });
}

/// Sectors of global memory that a warp asks for, and the fewest that could hold the bytes.
void count_sectors(const Warp& warp, const Instruction& in, const Places& places) {
  const unsigned bytes = bytes_moved(in);
  std::array<uint64_t, warp_size> all{};
  unsigned n = 0;
  for_lanes(warp.mask, [&](unsigned i) { all[n++] = places.at[i]; });
  std::sort(all.begin(), all.begin() + n);
  uint64_t sectors = 0, distinct = 0, last = ~uint64_t{0};
  for (unsigned i = 0; i < n; ++i) {
    if (i > 0 && all[i] == all[i - 1]) continue;
    ++distinct;
    if (all[i] / 32 != last) ++sectors;
    last = all[i] / 32;
  }
  InstructionCount& count = warp.block->counter->of[warp.pc - 1];
  count.sectors += sectors;
  count.fewest += (distinct * bytes + 31) / 32;
}

/// How often shared memory is passed over: as often as the bank that holds the most different words of what
/// is asked for. Of 8 bytes a half of the warp is served at once, of 16 a quarter.
void count_passes(const Warp& warp, const Instruction& in, const Places& places) {
  const unsigned bytes = bytes_moved(in);
  const unsigned parts = bytes > 8 ? 4 : bytes > 4 ? 2 : 1;
  const unsigned lanes = warp_size / parts;
  InstructionCount& count = warp.block->counter->of[warp.pc - 1];
  for (unsigned part = 0; part < parts; ++part) {
    std::array<std::vector<uint64_t>, 32> words;
    const uint32_t own = warp.mask & (static_cast<uint32_t>((uint64_t{1} << lanes) - 1) << (part * lanes));
    for_lanes(own, [&](unsigned i) {
      for (uint64_t word = places.at[i] / 4; word * 4 < places.at[i] + bytes; ++word) {
        auto& bank = words[word % 32];
        if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
      }
    });
    std::size_t most = 0;
    for (const auto& bank : words) most = std::max(most, bank.size());
    if (most == 0) continue;
    ++count.accesses;
    count.passes += most - 1;
  }
}

void check_global(const Warp& warp, const Instruction& in, const Places& places) {
  const uint64_t last = places.high + bytes_moved(in) - 1;
  const auto pointer = [](uint64_t at) { return reinterpret_cast<const void*>(at); };
  if (in_device_space(pointer(places.low)) && in_device_space(pointer(last))) return;
  for_lanes(warp.mask, [&](unsigned i) {
    const void* const at = pointer(places.at[i]);
    if (kind_of(at) == cuda_double::Kind::pageable && !in_variable(at))
      fail(warp, in, "touched memory of the host at " + hexadecimal(places.at[i]));
  });
}

/// Offsets in shared memory become addresses.
void enter_shared(const Warp& warp, const Instruction& in, Places& places) {
  Block& block = *warp.block;
  const unsigned bytes = bytes_moved(in);
  if (places.high + bytes > block.shared_bytes) fail(warp, in, "reaches past the end of shared memory");
  const Use use = in.reads && in.writes ? Use::atomic : in.writes ? Use::write : Use::read;
  for_lanes(warp.mask, [&](unsigned i) {
    const int thread = static_cast<int>(warp.number * warp_size + i);
    const char* const what = block.watch.touch(places.at[i], bytes, thread, use, warp.meetings);
    if (what != nullptr) fail(warp, in, block.watch.sentence(thread, what));
  });
  if (block.counter != nullptr) count_passes(warp, in, places);
  for (uint64_t& at : places.at) at += reinterpret_cast<uint64_t>(block.shared);
}

bool is_within(uint64_t at, const std::byte* begin, std::size_t bytes) {
  return at - reinterpret_cast<uint64_t>(begin) < bytes;
}

std::byte* own_frames(const Warp& warp) {
  return warp.block->frames + warp.number * warp_size * warp.block->program->frame_bytes;
}

void check_local(const Warp& warp, const Instruction& in, const Places& places) {
  const std::size_t bytes = warp.block->program->frame_bytes * warp_size;
  if (!is_within(places.low, own_frames(warp), bytes) ||
      !is_within(places.high + bytes_moved(in) - 1, own_frames(warp), bytes))
    fail(warp, in, "an address outside of the thread's local memory");
}
void check_parameters(const Warp& warp, const Instruction& in, const Places& places) {
  const auto is_parameter = [&](uint64_t at) {
    return is_within(at, warp.block->parameters, warp.block->program->parameter_bytes);
  };
  const uint64_t last = places.high + bytes_moved(in) - 1;
  if ((is_parameter(places.low) && is_parameter(last)) ||
      in_variable(reinterpret_cast<const void*>(places.low)))
    return;
  fail(warp, in, "an address outside of the kernel's parameters and constants");
}

void enter(Space space, const Warp& warp, const Instruction& in, Places& places) {
  switch (space) {
    case Space::shared:
      return enter_shared(warp, in, places);
    case Space::local:
      return check_local(warp, in, places);
    case Space::parameter:
      return check_parameters(warp, in, places);
    default:
      check_global(warp, in, places);
      if (warp.block->counter != nullptr) count_sectors(warp, in, places);
  }
}

/// What a generic address leads to.
Space space_of(const Warp& warp, uint64_t at) {
  const Block& block = *warp.block;
  if (is_within(at, block.shared, block.shared_bytes)) return Space::shared;
  if (is_within(at, own_frames(warp), block.program->frame_bytes * warp_size)) return Space::local;
  if (is_within(at, block.parameters, block.program->parameter_bytes)) return Space::parameter;
  return Space::global;
}
void enter_generic(const Warp& warp, const Instruction& in, Places& places) {
  const Space space = space_of(warp, places.at[static_cast<unsigned>(std::countr_zero(warp.mask))]);
  for_lanes(warp.mask, [&](unsigned i) {
    if (space_of(warp, places.at[i]) != space)
      fail(warp, in, "lanes of a warp reach into different memories");
  });
  if (space == Space::shared) {
    const auto begin = reinterpret_cast<uint64_t>(warp.block->shared);
    for (uint64_t& at : places.at) at -= begin;
    places.high -= begin;
  }
  enter(space, warp, in, places);
}

void find_places(const Warp& warp, const Instruction& in, uint32_t slot, Places& places) {
  find_addresses(warp, in, slot, places);
  measure(warp, in, places);
  if (in.space == Space::generic)
    enter_generic(warp, in, places);
  else
    enter(in.space, warp, in, places);
}

template <class M>
M* memory_at(uint64_t address) {
  return reinterpret_cast<M*>(address);
}

/// Of one parameter or constant by its name: all lanes read the same.
template <class M, class R>
void load_named(Warp& warp, const Instruction& in) {
  const uint64_t address = *warp.at<uint64_t>(in.slot[in.count]) + static_cast<uint64_t>(in.number);
  check_alignment(warp, in, address);
  for (unsigned k = 0; k < in.count; ++k) {
    const R value = static_cast<R>(memory_at<M>(address)[k]);
    write_lanes<R>(warp, in.slot[k], [&](unsigned) { return value; });
  }
}

template <class M, class R>
void load(Warp& warp, const Instruction& in) {
  Places places;
  find_places(warp, in, in.slot[in.count], places);
  const unsigned n = in.count;
  for (unsigned k = 0; k < n; ++k) {
    if (places.same) {
      const R value = static_cast<R>(memory_at<M>(places.at[0])[k]);
      write_lanes<R>(warp, in.slot[k], [&](unsigned) { return value; });
    } else if (places.in_a_row) {
      const M* const from = memory_at<M>(places.at[0]) + k;
      R* const to = warp.at<R>(in.slot[k]);
      if (n == 1)
        for (unsigned i = 0; i < warp_size; ++i) to[i] = static_cast<R>(from[i]);
      else
        for (unsigned i = 0; i < warp_size; ++i) to[i] = static_cast<R>(from[i * n]);
    } else {
      R* const to = warp.at<R>(in.slot[k]);
      for_lanes(warp.mask, [&](unsigned i) { to[i] = static_cast<R>(memory_at<M>(places.at[i])[k]); });
    }
  }
}

template <class M, class R>
void store(Warp& warp, const Instruction& in) {
  Places places;
  find_places(warp, in, in.slot[in.count], places);
  const unsigned n = in.count;
  for (unsigned k = 0; k < n; ++k) {
    const R* const from = warp.at<R>(in.slot[k]);
    if (places.in_a_row) {
      M* const to = memory_at<M>(places.at[0]) + k;
      if (n == 1)
        for (unsigned i = 0; i < warp_size; ++i) to[i] = static_cast<M>(from[i]);
      else
        for (unsigned i = 0; i < warp_size; ++i) to[i * n] = static_cast<M>(from[i]);
    } else {
      for_lanes(warp.mask, [&](unsigned i) { memory_at<M>(places.at[i])[k] = static_cast<M>(from[i]); });
    }
  }
}

/// Of registers that are at least as large as the numbers; those of a load keep a number's sign.
template <class Number, class Function>
Choice with_register(unsigned register_bytes, const Function& function) {
  return with_bits(register_bytes, [&](auto r) -> Choice {
    using R = std::conditional_t<std::is_signed_v<Number>, std::make_signed_t<decltype(r)>, decltype(r)>;
    if constexpr (sizeof(R) >= sizeof(Number)) return function(Number{}, R{});
    return {};
  });
}
template <class Function>
Choice with_memory(Type type, unsigned register_bytes, const Function& function) {
  switch (type) {
    case Type::s8:
      return with_register<int8_t>(register_bytes, function);
    case Type::s16:
      return with_register<int16_t>(register_bytes, function);
    case Type::s32:
      return with_register<int32_t>(register_bytes, function);
    default:
      break;
  }
  switch (size_of(type)) {
    case 1:
      return with_register<uint8_t>(register_bytes, function);
    case 2:
      return with_register<uint16_t>(register_bytes, function);
    case 4:
      return with_register<uint32_t>(register_bytes, function);
    case 8:
      return with_register<uint64_t>(register_bytes, function);
    default:
      return {};
  }
}

void set_space(const Opcode& op, Instruction& in) {
  in.space = op.has("global")                     ? Space::global
             : op.has("shared")                   ? Space::shared
             : op.has("local")                    ? Space::local
             : op.has("param") || op.has("const") ? Space::parameter
                                                  : Space::generic;
  in.kind = in.space == Space::shared      ? Kind::shared
            : in.space == Space::local     ? Kind::local
            : in.space == Space::parameter ? Kind::parameter
                                           : Kind::global;
}

// Atomic operations. Blocks run one after the other, and lanes too: nothing comes between.

// clang-format off
struct AtomicAdd { template <class T> static T of(T old, T b) { return static_cast<T>(old + b); } };
struct AtomicMin { template <class T> static T of(T old, T b) { return b < old ? b : old; } };
struct AtomicMax { template <class T> static T of(T old, T b) { return old < b ? b : old; } };
struct AtomicAnd { template <class T> static T of(T old, T b) { return static_cast<T>(old & b); } };
struct AtomicOr { template <class T> static T of(T old, T b) { return static_cast<T>(old | b); } };
struct AtomicXor { template <class T> static T of(T old, T b) { return static_cast<T>(old ^ b); } };
struct Exchange { template <class T> static T of(T, T b) { return b; } };
struct Increment { template <class T> static T of(T old, T b) { return old >= b ? T{0} : static_cast<T>(old + 1); } };
struct Decrement { template <class T> static T of(T old, T b) { return old == 0 || old > b ? b : static_cast<T>(old - 1); } };
struct CompareAndSwap { template <class T> static T of(T old, T b, T c) { return old == b ? c : old; } };
// clang-format on
template <>
[[maybe_unused]] Half AtomicAdd::of(Half old, Half b) {
  return rounded<Half>(exactly<Add, Half>(Mode::nearest, as_double(old), as_double(b)), Mode::nearest);
}
template <>
[[maybe_unused]] Brain AtomicAdd::of(Brain old, Brain b) {
  return rounded<Brain>(exactly<Add, Brain>(Mode::nearest, as_double(old), as_double(b)), Mode::nearest);
}

template <class F, class T>
void atomic(Warp& warp, const Instruction& in) {
  Places places;
  find_places(warp, in, in.slot[1], places);
  for_lanes(warp.mask, [&](unsigned i) {
    T* const to = memory_at<T>(places.at[i]);
    const T old = *to;
    const T b = warp.at<T>(in.slot[2])[i];
    if constexpr (std::is_same_v<F, CompareAndSwap>)
      *to = F::of(old, b, warp.at<T>(in.slot[3])[i]);
    else
      *to = F::of(old, b);
    warp.at<T>(in.slot[0])[i] = old;
  });
}

template <class F, class T>
Choice atomic_of(Instruction& in) {
  constexpr uint8_t n = sizeof(T);
  in.element = n;
  return {&atomic<F, T>, {n, 8, n, n}, static_cast<uint8_t>(std::is_same_v<F, CompareAndSwap> ? 4 : 3)};
}
template <class F>
Choice atomic_integer(Type type, Instruction& in) {
  return with_integer(type, [&](auto t) { return atomic_of<F, decltype(t)>(in); });
}
Choice atomic_sum(Type type, Instruction& in) {
  if (type == Type::f32) return atomic_of<AtomicAdd, float>(in);
  if (type == Type::f64) return atomic_of<AtomicAdd, double>(in);
  if (type == Type::f16) return atomic_of<AtomicAdd, Half>(in);
  if (type == Type::bf16) return atomic_of<AtomicAdd, Brain>(in);
  return with_bits(size_of(type), [&](auto t) { return atomic_of<AtomicAdd, decltype(t)>(in); });
}

}  // namespace

Choice access_choice(const Opcode& op, Instruction& in, unsigned register_bytes, bool named) {
  const std::string_view base = op.base();
  const bool loads = base == "ld" || base == "ldu", stores = base == "st";
  if (!loads && !stores) return {};
  set_space(op, in);
  in.reads = loads;
  in.writes = stores;
  in.count = op.has("v4") ? 4 : op.has("v2") ? 2 : 1;
  in.element = static_cast<uint8_t>(size_of(op.type()));
  Choice result = with_memory(op.type(), register_bytes, [&](auto m, auto r) -> Choice {
    using M = decltype(m);
    using R = decltype(r);
    return {!loads                                  ? &store<M, R>
            : named && in.space == Space::parameter ? &load_named<M, R>
                                                    : &load<M, R>,
            {},
            0};
  });
  std::fill_n(result.bytes.begin(), in.count, static_cast<uint8_t>(register_bytes));
  result.bytes[in.count] = 8;
  result.operands = in.count + 1;
  result.written = loads ? in.count : 0;
  return result;
}

Choice atomic_choice(const Opcode& op, Instruction& in) {
  if (op.base() != "atom" && op.base() != "red") return {};
  set_space(op, in);
  in.reads = in.writes = true;
  const Type type = op.type();
  if (op.has("noftz") && type != Type::f16 && type != Type::bf16) return {};
  if (op.has("v2") || op.has("v4") || op.has("v8")) return {};
  if (op.has("add")) return atomic_sum(type, in);
  if (op.has("min")) return atomic_integer<AtomicMin>(type, in);
  if (op.has("max")) return atomic_integer<AtomicMax>(type, in);
  if (op.has("and")) return atomic_integer<AtomicAnd>(type, in);
  if (op.has("or")) return atomic_integer<AtomicOr>(type, in);
  if (op.has("xor")) return atomic_integer<AtomicXor>(type, in);
  if (op.has("exch")) return atomic_integer<Exchange>(type, in);
  if (op.has("inc")) return atomic_integer<Increment>(type, in);
  if (op.has("dec")) return atomic_integer<Decrement>(type, in);
  if (op.has("cas")) return atomic_integer<CompareAndSwap>(type, in);
  return {};
}

}  // namespace cuda_double::ptx
