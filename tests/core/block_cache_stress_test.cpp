#include <map>
#include <random>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/memory/block_cache.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/core/fake_memory.h"

using namespace pleat;
using pleat::test::FakeMemory;

namespace {

constexpr int64_t mebi = 1 << 20;
constexpr int streams = 3;

StreamId stream(int number) { return {0, reinterpret_cast<void*>(static_cast<intptr_t>(number))}; }

/// Random use of a cache beside an account of what may be where.
class Stress {
 public:
  explicit Stress(unsigned seed) : random_(seed), memory_(300 * mebi), cache_(memory_) {}

  void step() {
    const int action = pick(100);
    if (action < 45)
      allocate();
    else if (action < 80)
      let_go();
    else if (action < 88)
      use_elsewhere();
    else if (action < 97)
      memory_.run(stream(pick(streams)));
    else if (action < 98)
      cache_.release();
    else
      cache_.set_limit(pick(2) == 0 ? 1000 * mebi : pick(100) * mebi);
    check_account();
  }

  void finish() {
    live_.clear();
    cache_.release();
    CHECK(memory_.used() == 0);
    CHECK(memory_.events() == 0);
    CHECK(cache_.statistics().allocated == 0);
    CHECK(cache_.statistics().reserved == 0);
    CHECK(memory_.wrong_frees == 0);
    CHECK(refused_ > 0);  // the walk has been at the limit of memory, too
  }

 private:
  struct Live {
    std::shared_ptr<std::byte> bytes;
    int64_t size;
    StreamId stream;
    std::map<StreamId, int64_t> works;  ///< the last work of each other stream on it
  };
  /// A range that was let go while work on it was not done.
  struct Busy {
    const std::byte* first;
    int64_t size;
    StreamId stream;
    std::map<StreamId, int64_t> works;
  };

  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  int64_t random_size() {
    switch (pick(4)) {
      case 0:
        return pick(4096);
      case 1:
        return pick(static_cast<int>(mebi)) + 1;
      case 2:
        return pick(static_cast<int>(12 * mebi)) + 1;
      default:
        return pick(static_cast<int>(60 * mebi)) + 1;
    }
  }

  void allocate() {
    const int64_t size = random_size();
    const StreamId on = stream(pick(streams));
    Live block{{}, size, on, {}};
    try {
      block.bytes = cache_.allocate(size, on);
    } catch (const OutOfMemoryError&) {
      ++refused_;
      return;
    }
    const std::byte* first = block.bytes.get();
    REQUIRE(reinterpret_cast<uintptr_t>(first) % 512 == 0);
    REQUIRE(memory_.holds(first, size));
    for (const Live& other : live_)
      REQUIRE((first + size <= other.bytes.get() || other.bytes.get() + other.size <= first));
    // Segments that were freed and taken again have new addresses: the fake never uses one twice.
    for (const Busy& busy : busy_) {
      if (first + size <= busy.first || busy.first + busy.size <= first) continue;
      REQUIRE(busy.stream == on);
      for (const auto& [other, work] : busy.works) REQUIRE(memory_.is_done(other, work));
    }
    live_.push_back(std::move(block));
  }

  void let_go() {
    if (live_.empty()) return;
    const auto i = static_cast<std::size_t>(pick(static_cast<int>(live_.size())));
    busy_.push_back({live_[i].bytes.get(), live_[i].size, live_[i].stream, live_[i].works});
    live_[i] = std::move(live_.back());
    live_.pop_back();
  }

  void use_elsewhere() {
    if (live_.empty()) return;
    Live& block = live_[static_cast<std::size_t>(pick(static_cast<int>(live_.size())))];
    const StreamId other = stream(pick(streams));
    if (other == block.stream) return;
    record_stream(block.bytes, other);
    block.works[other] = memory_.work(other);
  }

  void check_account() {
    int64_t least = 0;
    for (const Live& block : live_) least += block.size;
    const AllocatorStatistics statistics = cache_.statistics();
    REQUIRE(statistics.allocated >= least);
    // Rounding costs at most 512 bytes of a small block, and 1 MiB more of a large one, or 2 MiB of a
    // segment's size.
    REQUIRE(statistics.allocated <= least + static_cast<int64_t>(live_.size()) * (2 * mebi + 512));
    REQUIRE(statistics.reserved == memory_.used());
    REQUIRE(statistics.reserved >= statistics.allocated);
    REQUIRE(statistics.peak >= statistics.allocated);
    REQUIRE(memory_.wrong_frees == 0);
    if (busy_.size() > 2000) busy_.erase(busy_.begin(), busy_.begin() + 1000);
  }

  std::mt19937 random_;
  FakeMemory memory_;
  BlockCache cache_;
  std::vector<Live> live_;
  std::vector<Busy> busy_;
  int refused_ = 0;
};

}  // namespace

TEST_CASE("block cache: no two live blocks overlap, and none is reused too early", "[core]") {
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    CAPTURE(seed);
    Stress stress(seed);
    for (int i = 0; i < 4000; ++i) stress.step();
    stress.finish();
  }
}
