#include "pleat/core/memory/host_arena.h"

#include <cstring>
#include <vector>

#include "pleat/core/memory/allocator.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/skip.h"

using namespace pleat;

namespace {

constexpr int64_t mib = 1 << 20;

/// Whether the system lets an arena have addresses; elsewhere it is never used.
bool has_room() { return HostArena(64 * mib).take(mib).block != nullptr; }

}  // namespace

TEST_CASE("host arena: blocks take the lowest place, and neighbours given back serve larger ones",
          "[core][cpu]") {
  if (!has_room()) return pleat_test::skip("the system has no addresses for an arena");
  HostArena arena(256 * mib);
  std::byte* const a = arena.take(8 * mib).block;
  std::byte* const b = arena.take(4 * mib).block;
  std::byte* const c = arena.take(2 * mib).block;
  CHECK(b == a + 8 * mib);
  CHECK(c == b + 4 * mib);
  CHECK(arena.owns(c));
  CHECK_FALSE(arena.owns(a - 1));
  std::memset(a, 1, 14 * mib);
  arena.give_back(a, {8 * mib, 8 * mib, 1});
  const auto first = arena.take(2 * mib);
  CHECK(first.block == a);
  CHECK(first.cached == 2 * mib);
  arena.give_back(b, {4 * mib, 4 * mib, 2});
  const auto both = arena.take(10 * mib);  // what is left of a, and b
  CHECK(both.block == a + 2 * mib);
  CHECK(both.cached == 10 * mib);
  // The last part grows beyond its end.
  arena.give_back(c, {2 * mib, 2 * mib, 3});
  const auto grown = arena.take(5 * mib);
  CHECK(grown.block == c);
  CHECK(grown.cached == 2 * mib);
  std::memset(grown.block, 1, 5 * mib);
  CHECK(arena.take(512 * mib).block == nullptr);
  // What is refused takes nothing: memory that Windows has promised stays so.
  CHECK(arena.take(64 * mib, 64 * mib - 1).block == nullptr);
  CHECK_FALSE(arena.owns(a + 32 * mib));
  CHECK(arena.take(64 * mib, 64 * mib).block == c + 5 * mib);
}

TEST_CASE("host arena: what was given back longest ago goes first, and may be lost", "[core][cpu]") {
  if (!has_room()) return pleat_test::skip("the system has no addresses for an arena");
  HostArena arena(64 * mib);
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(arena.take(4 * mib).block);
    std::memset(blocks.back(), 1, 4 * mib);
  }
  arena.give_back(blocks[2], {4 * mib, 4 * mib, 1});
  arena.give_back(blocks[0], {4 * mib, 4 * mib, 2});
  CHECK(arena.oldest() == 1);
  const auto [block, part] = arena.take_oldest(2 * mib);  // of a larger part its end
  CHECK(block == blocks[2] + 2 * mib);
  CHECK(part.size == 2 * mib);
  CHECK(part.cached == 2 * mib);
  HostArena::discard(block, part);
  arena.give_back(block, {part.size, 0, part.returned});
  const auto again = arena.take(4 * mib);
  CHECK(again.block == blocks[0]);
  const auto partly = arena.take(4 * mib);
  CHECK(partly.block == blocks[2]);
  CHECK(partly.cached == 2 * mib);
  CHECK(std::to_integer<int>(partly.block[mib]) == 1);
  partly.block[3 * mib] = std::byte{1};
}

TEST_CASE("allocator: sizes of layers forward and backward share their memory", "[core][cpu]") {
  if (!has_room()) return pleat_test::skip("the system has no addresses for an arena");
  empty_cache();
  reset_peak_statistics();
  const int64_t before = allocator_statistics().reserved;
  // Activations get smaller; their gradients are needed while those before are still there.
  for (int step = 0; step < 3; ++step) {
    std::vector<std::shared_ptr<std::byte>> activations;
    for (int64_t size = 32 * mib; size >= 4 * mib; size /= 2)
      for (int i = 0; i < 4; ++i) activations.push_back(allocate(size));
    for (int64_t size = 4 * mib; size <= 32 * mib; size *= 2)
      for (int i = 0; i < 4; ++i) {
        const auto gradient = allocate(size), more = allocate(size);
        activations.pop_back();
      }
  }
  const AllocatorStatistics after = allocator_statistics();
  const int64_t used = after.peak - before;
  CHECK(after.peak_reserved - before < used + used / 8);
}
