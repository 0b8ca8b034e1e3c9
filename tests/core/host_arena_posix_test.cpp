// POSIX: an arena of Windows reserves its addresses
#include <sys/mman.h>

#include "pleat/core/memory/host_arena.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/skip.h"

using namespace pleat;

TEST_CASE("host arena: addresses that others took first stay theirs", "[core][cpu]") {
  constexpr int64_t mib = 1 << 20;
  if (HostArena(64 * mib).take(mib).block == nullptr)
    return pleat_test::skip("the system has no addresses for an arena");
  HostArena arena(64 * mib);
  std::byte* const own = arena.take(4 * mib).block;
  auto* const foreign = static_cast<std::byte*>(
      mmap(own + 8 * mib, mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  REQUIRE(foreign == own + 8 * mib);
  CHECK(arena.owns(own + 4 * mib - 1));
  CHECK_FALSE(arena.owns(foreign));
  CHECK(arena.take(8 * mib).block == nullptr);
  CHECK(arena.take(4 * mib).block == own + 4 * mib);
  CHECK_FALSE(arena.owns(foreign));
  munmap(foreign, mib);
}
