#include "pleat/core/memory/allocator.h"

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/memory/address_sanitizer.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"

using namespace pleat;

namespace {

/// Puts the cache's limit back, whatever a test does.
class CacheLimit {
 public:
  explicit CacheLimit(int64_t bytes) { set_cache_limit(bytes); }
  ~CacheLimit() { set_cache_limit(int64_t{1} << 30); }
};

}  // namespace

TEST_CASE("blocks are aligned and come back from the cache", "[core]") {
  empty_cache();
  const AllocatorStatistics before = allocator_statistics();
  const std::byte* first = nullptr;
  {
    const auto block = allocate(1000);
    first = block.get();
    CHECK(reinterpret_cast<uintptr_t>(first) % 64 == 0);
    CHECK(allocator_statistics().allocated >= before.allocated + 1000);
    CHECK(allocator_statistics().reserved ==
          allocator_statistics().allocated + allocator_statistics().cached);
    CHECK(allocator_statistics().peak_reserved >= allocator_statistics().reserved);
  }
  CHECK(allocator_statistics().allocated == before.allocated);
  CHECK(allocator_statistics().cached >= 1000);
  const auto again = allocate(1000);
  CHECK(again.get() == first);
  CHECK(allocator_statistics().hits == before.hits + 1);
  CHECK(allocator_statistics().requests == before.requests + 2);
}

TEST_CASE("the cache is bounded and can be emptied", "[core]") {
  empty_cache();
  const CacheLimit limit(1 << 20);
  { const auto large = allocate(4 << 20); }
  CHECK(allocator_statistics().cached == 0);
  { const auto small = allocate(1 << 19); }
  CHECK(allocator_statistics().cached >= 1 << 19);
  empty_cache();
  CHECK(allocator_statistics().cached == 0);
  CHECK_THROWS_AS(set_cache_limit(-1), ValueError);
}

TEST_CASE("sizes that nobody asks for any more make room in the cache for those in use", "[core]") {
  empty_cache();
  const CacheLimit limit(16 << 14);
  {
    std::vector<std::shared_ptr<std::byte>> once;
    for (int i = 0; i < 16; ++i) once.push_back(allocate(1 << 14));
  }
  CHECK(allocator_statistics().cached == 16 << 14);
  const int64_t hits = allocator_statistics().hits;
  for (int step = 0; step < 5; ++step) {
    const auto large = allocate(8 << 14);
    const auto small = allocate(1 << 12);
  }
  CHECK(allocator_statistics().hits == hits + 8);  // all but the first step's
  CHECK(allocator_statistics().cached <= 16 << 14);
  CHECK(allocator_statistics().cached == (8 << 14) + (1 << 12) + (7 << 14));  // no more went than had to
}

TEST_CASE("the cache lets go of what was given back longest ago", "[core]") {
  empty_cache();
  const CacheLimit limit(6 << 14);
  const auto is_hit = [](int64_t size) {
    const int64_t hits = allocator_statistics().hits;
    (void)allocate(size);
    return allocator_statistics().hits > hits;
  };
  CHECK_FALSE(is_hit(1 << 14));
  CHECK_FALSE(is_hit(2 << 14));
  CHECK_FALSE(is_hit(3 << 14));
  CHECK(is_hit(1 << 14));
  CHECK_FALSE(is_hit(1 << 13));  // in the place of the two parts
  CHECK(is_hit(1 << 14));
  CHECK(is_hit(3 << 14));
  CHECK_FALSE(is_hit(2 << 14));  // in the place of the half part
  CHECK(is_hit(3 << 14));
  CHECK(is_hit(1 << 14));
  CHECK_FALSE(is_hit(7 << 14));  // more than the cache may hold: it moves nothing out
  CHECK(is_hit(2 << 14));
  CHECK(allocator_statistics().cached == 6 << 14);

  set_cache_limit(4 << 14);  // without the three parts
  CHECK(allocator_statistics().cached == 3 << 14);
  CHECK(is_hit(1 << 14));
  CHECK(is_hit(2 << 14));
}

TEST_CASE("the peak is remembered until it is reset", "[core]") {
  reset_peak_statistics();
  const int64_t base = allocator_statistics().allocated;
  { const auto block = allocate(1 << 20); }
  CHECK(allocator_statistics().peak >= base + (1 << 20));
  reset_peak_statistics();
  CHECK(allocator_statistics().peak == allocator_statistics().allocated);
}

TEST_CASE("memory that cannot be had is a recoverable error", "[core]") {
  const int64_t before = allocator_statistics().allocated;
  CHECK_THROWS_AS(allocate(int64_t{1} << 60), OutOfMemoryError);
  CHECK_THROWS_AS(zeros({int64_t{1} << 58, 2}), OutOfMemoryError);
  CHECK_THROWS_AS(zeros({int64_t{1} << 62, 8}), ShapeError);  // bytes overflow
  CHECK(allocator_statistics().allocated == before);
  CHECK(zeros({4}).numel() == 4);
}

TEST_CASE("names of devices", "[core]") {
  CHECK(Device("cuda") == Device(DeviceType::cuda, 0));
  CHECK(name(Device("cuda:7")) == "cuda:7");
  CHECK_THROWS_AS(Device("gpu"), ValueError);
  CHECK_THROWS_AS(Device("cuda:x"), ValueError);
  CHECK_THROWS_AS(Device("cpu:1"), ValueError);
}

TEST_CASE("a device's name will do where a device is asked for", "[core]") {
  const Device second = "cuda:1";
  CHECK(second == Device(DeviceType::cuda, 1));
  CHECK(second == "cuda:1");
  CHECK(TensorOptions{.device = "cuda"}.device == Device(DeviceType::cuda));
  CHECK_FALSE(std::is_constructible_v<Device, std::nullptr_t>);

  const Tensor x = zeros({2}, {.dtype = float64, .device = "cpu"});
  CHECK(x.device() == "cpu");
  const std::string name = "cpu";
  for (const Tensor& same : {x.to("cpu"), x.to("cpu:0"), x.to(name), x.to(name.c_str())})
    CHECK(same.data<double>() == x.data<double>());
  CHECK(allocator_statistics("cpu").allocated > 0);
  CHECK_THROWS_WITH(x.to("gpu"), "device: \"cpu\", \"cuda\" or \"cuda:N\" expected, got \"gpu\"");
  if (!cuda::is_available()) {
    CHECK_THROWS_AS(x.to("cuda"), DeviceError);
    CHECK_THROWS_AS(x.to("cuda:1"), DeviceError);
    CHECK_THROWS_AS(zeros({2}, {.device = "cuda"}), DeviceError);
  }
  CHECK(x.to(float32).dtype() == float32);
  CHECK(x.to(MemoryFormat::contiguous).is_contiguous());
}

TEST_CASE("threads allocate and free side by side", "[core]") {
  const int64_t before = allocator_statistics().allocated;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 1; i < 500; ++i) {
        const auto block = allocate(64 * ((i * 7 + t) % 50 + 1));
        block.get()[0] = std::byte{1};
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(allocator_statistics().allocated == before);
}

TEST_CASE("threads that share a cache too small for them keep to its limit", "[core]") {
  empty_cache();
  const CacheLimit limit(1 << 20);
  const int64_t before = allocator_statistics().allocated;
  std::atomic<bool> within{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &within] {
      for (int i = 1; i < 500; ++i) {
        const auto block = allocate(4096 * ((i * 37 + t) % 100 + 1));
        block.get()[0] = std::byte{1};
        const AllocatorStatistics now = allocator_statistics();
        if (now.cached < 0 || now.cached > 1 << 20 || now.reserved != now.allocated + now.cached)
          within = false;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(within);
  CHECK(allocator_statistics().allocated == before);
  empty_cache();
  CHECK(allocator_statistics().cached == 0);
}

#if PLEAT_ADDRESS_SANITIZER
TEST_CASE("AddressSanitizer knows what a block's owner may touch", "[core]") {
  const std::byte* bytes = nullptr;
  {
    const auto block = allocate(1001);
    bytes = block.get();
    CHECK(__asan_address_is_poisoned(bytes) == 0);
    CHECK(__asan_address_is_poisoned(bytes + 1000) == 0);
    CHECK(__asan_address_is_poisoned(bytes + 1001) != 0);
  }
  CHECK(__asan_address_is_poisoned(bytes) != 0);

  const auto larger = allocate(1023);  // from the cache
  REQUIRE(larger.get() == bytes);
  CHECK(__asan_address_is_poisoned(bytes + 1022) == 0);
  CHECK(__asan_address_is_poisoned(bytes + 1023) != 0);
}

TEST_CASE("under AddressSanitizer, memory that nobody has written is not zero", "[core]") {
  { const Tensor written = zeros({100}); }
  const Tensor read = empty({100});
  for (const float value : read.to_vector<float>()) CHECK(std::isnan(value));
}
#endif
