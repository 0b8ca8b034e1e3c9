#include "pleat/core/memory/block_cache.h"

#include <thread>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/core/fake_memory.h"

using namespace pleat;
using pleat::test::FakeMemory;

namespace {

constexpr int64_t mebi = 1 << 20;

StreamId stream(intptr_t number) { return {0, reinterpret_cast<void*>(number)}; }
const StreamId first = stream(1);
const StreamId second = stream(2);

using Bytes = std::shared_ptr<std::byte>;

}  // namespace

TEST_CASE("block cache: sizes are rounded to 512, and small blocks share a segment", "[core]") {
  FakeMemory memory(100 * mebi);
  BlockCache cache(memory);
  const Bytes a = cache.allocate(1, first);
  const Bytes b = cache.allocate(513, first);
  const Bytes none = cache.allocate(0, first);
  CHECK(b.get() - a.get() == 512);
  CHECK(none.get() - b.get() == 1024);
  CHECK(memory.segments() == 1);
  const AllocatorStatistics statistics = cache.statistics();
  CHECK(statistics.allocated == 512 + 1024 + 512);
  CHECK(statistics.reserved == 2 * mebi);
  CHECK(statistics.cached == 2 * mebi - 2048);
  CHECK(statistics.requests == 3);
  CHECK(statistics.hits == 2);
  CHECK(reinterpret_cast<uintptr_t>(b.get()) % 512 == 0);
}

TEST_CASE("block cache: separate blocks are as long as was asked for, and serve the same length again",
          "[core]") {
  FakeMemory memory(100 * mebi);
  BlockCache cache(memory, true);
  Bytes a = cache.allocate(1000, first);
  const Bytes b = cache.allocate(3, first);
  CHECK(memory.segments() == 2);
  CHECK(memory.used() == 1003);
  const std::byte* const place = a.get();
  a.reset();
  const Bytes shorter = cache.allocate(999, first);
  CHECK(memory.segments() == 3);
  CHECK(cache.allocate(1000, first).get() == place);
  CHECK(cache.allocate(1000, second).get() != place);
  cache.release();
  CHECK(memory.used() == 3 + 999);
}

TEST_CASE("block cache: what is handed out and given back is recorded", "[core]") {
  FakeMemory memory(100 * mebi);
  BlockCache cache(memory);
  Bytes a = cache.allocate(1, first);
  const Bytes b = cache.allocate(mebi, first);
  CHECK(memory.recorded == 512 + mebi);
  a.reset();
  CHECK(memory.recorded == mebi);
  CHECK(memory.recorded == cache.statistics().allocated);
}

TEST_CASE("block cache: what is let go merges with its free neighbours", "[core]") {
  FakeMemory memory(100 * mebi);
  BlockCache cache(memory);
  std::vector<Bytes> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(cache.allocate(4 * mebi, first));  // a segment of 20 MiB
  CHECK(memory.used() == 20 * mebi);
  const std::byte* base = blocks[0].get();
  blocks[1].reset();
  blocks[3].reset();
  CHECK(cache.allocate(8 * mebi, first).get() != base + 4 * mebi);  // 4 + 4 MiB, but not neighbours
  cache.release();
  blocks[2].reset();
  const Bytes merged = cache.allocate(12 * mebi, first);
  CHECK(merged.get() == base + 4 * mebi);
  CHECK(memory.used() == 20 * mebi);
}

TEST_CASE("block cache: the best fit is taken, and its rest is kept", "[core]") {
  FakeMemory memory(1000 * mebi);
  BlockCache cache(memory);
  Bytes large = cache.allocate(100 * mebi, first);
  Bytes medium = cache.allocate(40 * mebi, first);
  const std::byte* place = medium.get();
  large.reset();
  medium.reset();
  const Bytes fits = cache.allocate(30 * mebi, first);
  CHECK(fits.get() == place);
  const Bytes rest = cache.allocate(9 * mebi, first);
  CHECK(rest.get() == place + 30 * mebi);
  CHECK(memory.segments() == 2);
}

TEST_CASE("block cache: a rest that nobody would ask for stays with its block", "[core]") {
  FakeMemory memory(100 * mebi);
  BlockCache cache(memory);
  const Bytes block = cache.allocate(11 * mebi, first);  // a segment of 12 MiB
  CHECK(cache.statistics().allocated == 12 * mebi);
  const Bytes other = cache.allocate(mebi, first);
  CHECK(memory.segments() == 2);
}

TEST_CASE("block cache: a block is reused only on its own stream", "[core]") {
  FakeMemory memory(100 * mebi);
  BlockCache cache(memory);
  Bytes block = cache.allocate(12 * mebi, first);
  const std::byte* place = block.get();
  block.reset();
  CHECK(cache.allocate(12 * mebi, second).get() != place);
  CHECK(cache.allocate(12 * mebi, first).get() == place);
  // Default streams of two devices are not the same stream.
  Bytes pinned = cache.allocate(12 * mebi, {0, nullptr});
  place = pinned.get();
  pinned.reset();
  CHECK(cache.allocate(12 * mebi, {1, nullptr}).get() != place);
}

TEST_CASE("block cache: a block that another stream uses waits for that stream's work", "[core]") {
  FakeMemory memory(100 * mebi);
  BlockCache cache(memory);
  Bytes block = cache.allocate(12 * mebi, first);
  const std::byte* place = block.get();
  record_stream(block, first);  // its own: nothing to wait for
  record_stream(block, second);
  record_stream(block, second);
  memory.work(second);
  block.reset();
  CHECK(memory.events() == 1);
  CHECK(cache.statistics().allocated == 0);
  CHECK(cache.allocate(12 * mebi, first).get() != place);
  memory.run(second);
  // The one above came back first: ask for both, so that the waiting block must be among them.
  const Bytes a = cache.allocate(12 * mebi, first);
  const Bytes b = cache.allocate(12 * mebi, first);
  CHECK((a.get() == place || b.get() == place));
  CHECK(memory.events() == 0);
  CHECK(memory.segments() == 2);

  const auto elsewhere = std::make_shared<std::byte>();
  record_stream(elsewhere, second);  // not from a cache: nothing happens
}

TEST_CASE("block cache: when memory runs out, waiting blocks are waited for", "[core]") {
  FakeMemory memory(20 * mebi);
  BlockCache cache(memory);
  Bytes block = cache.allocate(16 * mebi, first);
  record_stream(block, second);
  memory.work(second);
  block.reset();
  const Bytes again = cache.allocate(16 * mebi, first);
  CHECK(memory.waits == 1);
  CHECK(memory.segments() == 1);
  CHECK(cache.statistics().retries == 1);
}

TEST_CASE("block cache: when memory runs out, unused segments of all streams are freed", "[core]") {
  FakeMemory memory(32 * mebi);
  BlockCache cache(memory);
  cache.allocate(12 * mebi, first).reset();
  cache.allocate(14 * mebi, second).reset();
  CHECK(memory.used() == 26 * mebi);
  const Bytes large = cache.allocate(30 * mebi, first);
  CHECK(memory.used() == 30 * mebi);
  CHECK(cache.statistics().reserved == 30 * mebi);
  CHECK(cache.statistics().peak_reserved == 30 * mebi);
}

TEST_CASE("block cache: where a shared segment does not fit, one of the size asked for may", "[core]") {
  FakeMemory memory(16 * mebi);
  BlockCache cache(memory);
  const Bytes medium = cache.allocate(3 * mebi, first);
  CHECK(memory.used() == 3 * mebi);
  const Bytes whole = cache.allocate(13 * mebi, first);  // its segment would have 14 MiB
  CHECK(memory.used() == 16 * mebi);
}

TEST_CASE("block cache: an out-of-memory error has the figures and leaves everything usable", "[core]") {
  FakeMemory memory(64 * mebi);
  BlockCache cache(memory);
  const Bytes kept = cache.allocate(40 * mebi, first);
  try {
    cache.allocate(48 * mebi, first);
    FAIL("there is no room for 48 MiB");
  } catch (const OutOfMemoryError& error) {
    const std::string text = error.what();
    CAPTURE(text);
    CHECK(text.find("48.0 MiB cannot be had on cuda:0") != std::string::npos);
    CHECK(text.find("tensors use 40.0 MiB") != std::string::npos);
    CHECK(text.find("the device is a fake") != std::string::npos);
    CHECK(text.find("smaller batch") != std::string::npos);
  }
  CHECK(cache.statistics().allocated == 40 * mebi);
  CHECK(cache.statistics().retries == 1);
  for (int i = 0; i < 100; ++i) CHECK(cache.allocate(24 * mebi, first) != nullptr);
  CHECK(memory.allocations == 1 + 3 + 1);  // the refused one was tried three times
}

TEST_CASE("block cache: the limit bounds what is kept", "[core]") {
  FakeMemory memory(200 * mebi);
  BlockCache cache(memory);
  cache.set_limit(30 * mebi);
  std::vector<Bytes> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(cache.allocate(20 * mebi, first));
  blocks.clear();
  CHECK(cache.statistics().cached <= 30 * mebi);
  CHECK(cache.statistics().cached >= 20 * mebi);
  cache.set_limit(0);
  CHECK(memory.used() == 0);
  cache.allocate(mebi, first).reset();
  CHECK(memory.used() == 0);
  // What a block in use shares its segment with stays.
  const Bytes used = cache.allocate(512, first);
  cache.allocate(512, first).reset();
  CHECK(memory.used() == 2 * mebi);
}

TEST_CASE("block cache: release gives back what nobody uses, peaks are kept until reset", "[core]") {
  FakeMemory memory(200 * mebi);
  BlockCache cache(memory);
  Bytes large = cache.allocate(50 * mebi, first);
  Bytes waits = cache.allocate(20 * mebi, first);
  const Bytes small = cache.allocate(100, first);
  record_stream(waits, second);
  memory.work(second);
  waits.reset();
  large.reset();
  cache.release();
  CHECK(memory.used() == 2 * mebi);
  CHECK(cache.statistics().peak == 70 * mebi + 512);
  CHECK(cache.statistics().peak_reserved == 72 * mebi);
  cache.reset_peak();
  CHECK(cache.statistics().peak == 512);
  CHECK(cache.statistics().peak_reserved == 2 * mebi);
}

TEST_CASE("block cache: at its end everything goes back to the device", "[core]") {
  FakeMemory memory(200 * mebi);
  {
    BlockCache cache(memory);
    Bytes waits = cache.allocate(20 * mebi, first);
    const Bytes large = cache.allocate(50 * mebi, first);
    const Bytes small = cache.allocate(100, second);
    record_stream(waits, second);
    memory.work(second);
  }
  CHECK(memory.used() == 0);
  CHECK(memory.events() == 0);
  CHECK(memory.wrong_frees == 0);
}

TEST_CASE("block cache: the device is asked for its state only when memory cannot be had", "[core]") {
  FakeMemory memory(20 * mebi);
  BlockCache cache(memory);
  for (int i = 0; i < 3; ++i) cache.allocate(mebi, first);
  CHECK(memory.questions == 0);
  CHECK_THROWS_WITH(cache.allocate(50 * mebi, first), Catch::Matchers::Contains("the device is a fake"));
  CHECK(memory.questions == 1);
}

TEST_CASE("block cache: a block whose events cannot be recorded waits until they can", "[core]") {
  FakeMemory memory(200 * mebi);
  BlockCache cache(memory);
  for (const int failures : {1, 2, 3, 4}) {
    CAPTURE(failures);
    Bytes block = cache.allocate(20 * mebi, first);
    const std::byte* const address = block.get();
    record_stream(block, second);
    record_stream(block, stream(3));
    memory.work(second);
    memory.work(stream(3));
    memory.records_to_fail = failures;
    block.reset();
    memory.run(second);
    // Nobody knows of the third stream yet, or it is not done.
    for (int i = 0; i < 5; ++i) CHECK(cache.allocate(20 * mebi, first).get() != address);
    memory.run(stream(3));
    CHECK(cache.statistics().allocated == 0);
    cache.release();
    CHECK(memory.used() == 0);
    CHECK(memory.events() == 0);
  }
}

TEST_CASE("block cache: threads allocate and free side by side", "[core]") {
  FakeMemory memory(1000 * mebi);
  BlockCache cache(memory);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&cache, t] {
      for (int i = 1; i < 2000; ++i) {
        const Bytes block = cache.allocate(700 * ((i * 7 + t) % 5000 + 1), stream(t));
        if (i % 3 == 0) record_stream(block, stream((t + 1) % 4));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(cache.statistics().allocated == 0);
  CHECK(cache.statistics().requests == 4 * 1999);
  cache.release();
  CHECK(memory.used() == 0);
}

TEST_CASE("block cache: nothing goes back to the device while a graph is captured", "[core]") {
  FakeMemory memory(60 * mebi);
  BlockCache cache(memory);
  cache.set_limit(30 * mebi);
  cache.hold(second);
  Bytes a = cache.allocate(40 * mebi, first);
  memory.capturing = true;
  a.reset();  // over the limit
  CHECK(memory.used() == 40 * mebi);
  CHECK_THROWS_WITH(cache.allocate(30 * mebi, second),
                    Catch::Matchers::Contains("empty_cache() before that"));
  CHECK(cache.allocate(20 * mebi, second));
  memory.capturing = false;
  cache.trim();
  CHECK(memory.used() == 20 * mebi);  // of the graph
  cache.set_limit(0);
  cache.let_go(second);
  CHECK(memory.used() == 0);
  CHECK(memory.wrong_frees == 0);
}
